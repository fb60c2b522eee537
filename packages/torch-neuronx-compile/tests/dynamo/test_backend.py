"""The backend as torch sees it: registration, options, errors, caches, metrics, artifacts."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch

from torch_neuronx_compile import metrics

PROGRAM = """
    import json, sys, torch
    torch.manual_seed(0)
    block = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.LayerNorm(16), torch.nn.Linear(16, 4)).to("neuron")
    compiled = torch.compile(block, backend="neuron")
    x = torch.arange(16.0).view(2, 8).to("neuron")
    loss = compiled(x).square().sum()
    loss.backward()
    from torch_neuronx_compile.metrics import get_dynamo_metrics
    print(json.dumps({"loss": loss.item(), "grad": block[0].weight.grad.sum().item(), "graphs": get_dynamo_metrics(),
                      "passes": "torch_neuronx_compile.passes.pipeline" in sys.modules}))
"""


def process(program: str, cache: Path, **environment: str) -> dict:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(program)], capture_output=True, text=True,
        env={**os.environ, "TORCH_NEURONX_NEFF_CACHE_DIR": str(cache), **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_dynamo_lists_the_backend():
    assert "neuron" in torch._dynamo.list_backends()


def test_a_second_process_compiles_nothing(tmp_path: Path):
    first = process(PROGRAM, tmp_path / "cache")
    second = process(PROGRAM, tmp_path / "cache")
    assert [g["cached"] for g in first["graphs"]] == [False, False] and [g["cached"] for g in second["graphs"]] == [
        True,
        True,
    ]
    assert (first["loss"], first["grad"]) == (second["loss"], second["grad"])
    assert first["passes"] and not second["passes"], "what the disk serves does not import the passes"


def test_a_disabled_cache_compiles_again(tmp_path: Path):
    for _ in range(2):
        result = process(PROGRAM, tmp_path / "cache", TORCH_NEURONX_NEFF_DISABLE_CACHE="1")
        assert [g["cached"] for g in result["graphs"]] == [False, False]
    assert not (tmp_path / "cache").exists()


def test_metrics_count_graphs():
    metrics.reset_dynamo_metrics()
    torch.compile(lambda x: (x * 2).tanh(), backend="neuron", options={"model_name": "tiny"})(
        torch.ones(3, device="neuron")
    )
    (entry,) = metrics.get_dynamo_metrics()
    assert entry["model"] == "tiny" and entry["nodes"] == 2 and entry["neff_bytes"] > 1024 and not entry["cached"]
    assert torch.neuron.get_dynamo_metrics() == [entry]
    torch.neuron.reset_dynamo_metrics()
    assert metrics.get_dynamo_metrics() == []


def test_artifacts_of_every_stage_are_kept_on_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    import torch_neuronx.neuron_dynamo_backend as backend

    monkeypatch.setenv("TORCH_NEURONX_DEBUG_DIR", str(tmp_path / "debug"))
    monkeypatch.setenv("TORCH_NEURONX_PRESERVE_COMPILATION_ARTIFACTS", "1")
    backend.set_model_name("my model")
    try:
        torch.compile(lambda x: x.exp() + 1, backend="neuron")(torch.ones(3, device="neuron"))
    finally:
        backend.set_model_name("")
    (folder,) = [f for f in (tmp_path / "debug").iterdir() if f.name.startswith("my_model_")]
    names = sorted(f.name for f in folder.iterdir())
    assert names == ["0-fx.txt", "1-stablehlo.mlir", "2-simplify.mlir", "3-layout.txt", "4-fuse.txt", "5-place.txt", "6-emit.txt",
                     "7-program.txt", "8-program.neff"]  # fmt: skip
    assert "stablehlo.exponential" in (folder / "1-stablehlo.mlir").read_text()
    assert "TILE" in (folder / "7-program.txt").read_text()
    assert "exp" in (folder / "0-fx.txt").read_text()


def test_set_model_name_takes_text():
    with pytest.raises(TypeError, match="takes a str, got int"):
        metrics.set_model_name(3)


def test_an_unknown_option_is_an_error():
    with pytest.raises(
        Exception, match="got options speed; it knows model_name, fallback_execution, allow_excess_precision"
    ):
        torch.compile(lambda x: x + 1, backend="neuron", options={"speed": 11})(torch.ones(3, device="neuron"))


def test_another_mode_is_warned_of(caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.WARNING):
        compiled = torch.compile(lambda x: x + 1, backend="neuron", mode="max-autotune")
        assert compiled(torch.ones(3, device="neuron")).tolist() == [2, 2, 2]
    assert "max-autotune" in caplog.text


@torch.library.custom_op("neuron_compile_test::mystery", mutates_args=())
def mystery(x: torch.Tensor) -> torch.Tensor:
    return x.cpu().mul(3).to(x.device)


@mystery.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


def use_mystery(x: torch.Tensor) -> torch.Tensor:
    return mystery(x + 1) * 2  # the line to be named


def test_an_unsupported_operator_is_named_with_the_users_line():
    with pytest.raises(Exception) as caught:
        torch.compile(use_mystery, backend="neuron")(torch.ones(3, 2, device="neuron"))
    text = str(caught.value)
    for part in ("neuron_compile_test::mystery", "f32[3, 2]", Path(__file__).name, "the line to be named"):
        assert part in text


def test_fallback_execution_runs_the_graph_operator_by_operator(monkeypatch: pytest.MonkeyPatch):
    x = torch.ones(3, device="neuron")
    compiled = torch.compile(use_mystery, backend="neuron", options={"fallback_execution": True})
    assert compiled(x).tolist() == [12, 12, 12]
    torch._dynamo.reset()
    monkeypatch.setenv("TORCH_NEURONX_DISABLE_FALLBACK_EXECUTION", "0")
    assert torch.compile(use_mystery, backend="neuron")(x).tolist() == [12, 12, 12]
    torch._dynamo.reset()
    with pytest.raises(Exception, match="mystery"):
        torch.compile(use_mystery, backend="neuron", options={"fallback_execution": False})(x)


def test_a_failed_compilation_is_not_replayed_as_a_hit():
    for _ in range(2):
        torch._dynamo.reset()
        with pytest.raises(Exception, match="mystery"):
            torch.compile(use_mystery, backend="neuron")(torch.ones(3, device="neuron"))


def test_excess_precision_is_a_program_of_its_own():
    def chain(x):
        return (x + x * 0.001) * 1.001 - x

    x = torch.linspace(1, 2, 1000, dtype=torch.bfloat16).to("neuron")
    exact = torch.compile(chain, backend="neuron")(x)
    torch._dynamo.reset()
    loose = torch.compile(chain, backend="neuron", options={"allow_excess_precision": True})(x)
    assert torch.equal(exact.cpu(), chain(x).cpu())
    reference = chain(x.cpu().double())
    assert (loose.cpu().double() - reference).abs().max() < (exact.cpu().double() - reference).abs().max()


def test_the_default_backend_says_which_one_to_use():
    with pytest.raises(Exception, match=r'backend="neuron"'):
        torch.compile(lambda x: x.sin() + 1)(torch.zeros(2, device="neuron"))
    torch._dynamo.reset()
    with pytest.raises(Exception, match=r'backend="neuron"'):
        torch.compile(lambda x: x.softmax(-1))(torch.zeros(2, 3, device="neuron"))


def test_dynamo_asks_the_device_through_its_interface():
    from torch._dynamo.device_interface import get_interface_for_device

    import torch_neuronx_compile.dynamo_backend  # noqa: F401  (as torch.compile does when it looks the backend up)

    interface = get_interface_for_device("neuron")
    assert interface is get_interface_for_device("neuron:0")
    assert interface.device_count() == torch.neuron.device_count() and interface.is_available()
    assert interface.current_device() == interface.Worker.current_device() == torch.neuron.current_device()
    assert interface.exchange_device(0) == interface.maybe_exchange_device(-1) == torch.neuron.current_device()
    assert interface.current_stream() == torch.neuron.current_stream()
    assert interface.get_raw_stream(0) == torch.neuron.current_stream().stream_id
    assert interface.get_device_properties().name == torch.neuron.get_device_properties().name
    assert interface.memory_allocated() == torch.neuron.memory_allocated()
    assert interface.is_dtype_supported(torch.bfloat16) and not interface.is_dtype_supported(torch.complex64)
    interface.synchronize()
    with pytest.raises(RuntimeError, match="NKI"):
        interface.raise_if_triton_unavailable()
