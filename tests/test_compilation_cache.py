"""What one process compiled, the next one finds on disk, and finds without importing a compiler."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

EAGER = """
import json, sys, torch, torch_neuronx
x = torch.arange(12.0).reshape(3, 4).to("neuron").requires_grad_()
y = torch.softmax(x @ x.T, -1).relu().sum()
y.backward()
result = [y.item(), x.grad.cpu().tolist()]
"""
COMPILED = """
import json, sys, torch, torch_neuronx
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.Linear(8, 2)).to("neuron")
step = torch.compile(lambda x: model(x).square().mean(), backend="neuron")
loss = step(torch.ones(3, 4, device="neuron"))
loss.backward()
result = [loss.item(), model[0].weight.grad.cpu().tolist()]
"""
REPORT = """
watched = "torch._dynamo", "torch._inductor", "torch_neuronx_compile.lowering", "torch_neuronx_compile.passes"
modules = [name for name in watched if name in sys.modules]
made = torch_neuronx._C._get_compilation_cache_stats()["persistent_misses"]
if "torch._dynamo" in sys.modules:
    made += sum(not graph["cached"] for graph in torch.neuron.get_dynamo_metrics())
print(json.dumps({"result": result, "modules": modules, "fallbacks": torch_neuronx.get_fallback_ops(), "made": made}))
"""


def run(program: str, cache: Path) -> dict:
    environment = {**os.environ, "TORCH_NEURONX_NEFF_CACHE_DIR": str(cache)}
    command = [sys.executable, "-c", program + REPORT]
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout.splitlines()[-1])


@pytest.mark.parametrize("program", [EAGER, COMPILED], ids=["eager", "compiled"])
def test_a_second_process_compiles_nothing(program: str, tmp_path: Path):
    first, second = run(program, tmp_path), run(program, tmp_path)
    assert first["made"] > 0
    assert second["made"] == 0
    assert second["result"] == first["result"]
    assert second["fallbacks"] == []


@pytest.mark.xfail(reason="torch's meta kernel of relu is written in Python and imports torch._dynamo")
def test_an_eager_process_that_the_disk_serves_imports_no_compiler(tmp_path: Path):
    run(EAGER, tmp_path)
    assert run(EAGER, tmp_path)["modules"] == []
