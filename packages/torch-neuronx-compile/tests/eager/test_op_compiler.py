"""The op compiler between the device and the store: what is remembered, by whom, and what it costs to ask again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch

from libneuron_runtime import neff
from torch_neuronx._op_compiler import LaunchScalar, OpTraits, TensorSpec
from torch_neuronx_compile import eager, op_compiler
from torch_neuronx_compile.op_compiler import OpCompiler, is_contiguous, signature

from .requests import Call


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TORCH_NEURONX_NEFF_CACHE_DIR", str(tmp_path / "neff_cache"))
    monkeypatch.delenv("TORCH_NEURONX_NEFF_DISABLE_CACHE", raising=False)
    return tmp_path / "neff_cache"


def add(n: int = 3, m: int = 4, dtype: torch.dtype = torch.float32) -> Call:
    x, y = torch.zeros(n, m, dtype=dtype), torch.zeros(n, m, dtype=dtype)
    return Call("aten::add.Tensor", [x, y], outputs=[x])


def test_traits():
    compiler = OpCompiler()
    for _ in range(2):  # the second answer comes from the store
        assert compiler.describe("aten::add_.Tensor") == OpTraits(operands=(2,), random=False)
        assert compiler.describe("aten::uniform_").random
        assert compiler.describe("aten::no_such_operator") is None


@pytest.mark.parametrize("op", ["aten::add.Tensor", "aten::tril"])  # tril's row is a partial function
def test_traits_are_found_on_disk(op: str, monkeypatch: pytest.MonkeyPatch):
    traits = OpCompiler().describe(op)
    OpCompiler().compile(add().request)  # traits are written with the next program
    op_compiler.store._stores.clear()
    monkeypatch.setattr(eager, "traits", None)
    assert OpCompiler().describe(op) == traits


def test_a_program_is_made_once():
    compiler = OpCompiler()
    first = compiler.compile(add().request)
    neff.verify(first)
    assert compiler.compile(add(30, 40).request) == first and compiler.persistent_misses == 1
    assert OpCompiler().compile(add(7, 8).request) == first


def test_a_disabled_store_keeps_nothing(store: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TORCH_NEURONX_NEFF_DISABLE_CACHE", "1")
    compiler = OpCompiler()
    assert compiler.compile(add().request) is not None
    assert not store.exists()


def test_what_is_not_supported_is_remembered_as_such():
    x = torch.zeros(3, dtype=torch.complex64)
    call = Call("aten::add.Tensor", [x, x], outputs=[x])
    compiler = OpCompiler()
    why = "programs have no elements of torch.complex64"
    assert compiler.compile(call.request) == why and compiler.compile(call.request) == why
    assert compiler.persistent_misses == 1
    assert OpCompiler().compile(call.request) == why


def test_an_error_inside_the_compiler_is_raised_and_not_remembered(monkeypatch: pytest.MonkeyPatch):
    def broken(*_):
        raise ZeroDivisionError("a fault of the compiler")

    with monkeypatch.context() as patch:
        patch.setattr(eager, "compile_to_neff", broken)
        with pytest.raises(ZeroDivisionError):
            OpCompiler().compile(add().request)
    assert OpCompiler().compile(add().request) is not None


def test_a_wrong_lowering_is_an_internal_error_that_names_both_sides():
    x = torch.zeros(3, 4)
    call = Call("aten::add.Tensor", [x, x], outputs=[torch.zeros(3, 5)])
    with pytest.raises(AssertionError, match=r"aten::add.Tensor: .*\(3, 4\).*f32.*torch says \(3, 5\)"):
        OpCompiler().compile(call.request)


def test_a_class_with_guards_may_have_several_programs():
    """reshape-like rows look at sizes; each outcome is a program of the same class."""
    compiler = OpCompiler()

    def expand(n: int, m: int) -> Call:
        x, y = torch.zeros(n, 4), torch.zeros(m, 4)
        return Call("aten::cat", [[x, y], 0], outputs=[torch.zeros(n + m, 4)])

    assert compiler.compile(expand(3, 5).request) is not None
    assert compiler.compile(expand(4, 4).request) is not None
    assert compiler.compile(expand(30, 50).request) is not None
    assert compiler.persistent_misses <= 2


SIGNATURES = {
    "another size": (add(3, 4), add(5, 6), True),
    "a size of 1": (add(3, 4), add(1, 4), False),
    "a size of 0": (add(3, 4), add(0, 4), False),
    "another rank": (add(3, 4), Call("aten::add.Tensor", [torch.zeros(3)] * 2, outputs=[torch.zeros(3)]), False),
    "another dtype": (add(), add(dtype=torch.bfloat16), False),
    "another layout": (add(), Call("aten::add.Tensor", [torch.zeros(4, 3).t(), torch.zeros(3, 4)], outputs=[torch.zeros(3, 4)]), False),
    "an expanded operand": (
        Call("aten::add.Tensor", [torch.zeros(4, 3).t(), torch.zeros(3, 4)], outputs=[torch.zeros(3, 4)]),
        Call("aten::add.Tensor", [torch.zeros(4).expand(3, 4), torch.zeros(3, 4)], outputs=[torch.zeros(3, 4)]), False),
    "an alias": (add(), Call("aten::add.Tensor", [torch.zeros(3, 4)] * 2, outputs=[torch.zeros(3, 4)], aliases=[0]), False),
    "0.0 and -0.0": (*(Call("aten::leaky_relu", [torch.zeros(3), z], outputs=[torch.zeros(3)]) for z in (0.0, -0.0)), False),
    "2 and 2.0": (*(Call("aten::pow.Tensor_Scalar", [torch.zeros(3), e], outputs=[torch.zeros(3)]) for e in (2, 2.0)), False),
}  # fmt: skip


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures(name: str):
    a, b, equal = SIGNATURES[name]
    assert (signature(a.request) == signature(b.request)) == equal


def test_a_launch_scalars_value_is_no_part_of_the_signature():
    parts: list[str] = []
    op_compiler._describe([LaunchScalar(0, float), TensorSpec(torch.float64, (), (), None, 0, True, None)], parts)
    assert parts == ["[2", "launch:float", "number:torch.float64", "]"]


@pytest.mark.parametrize(("shape", "strides", "answer"), [
    ((), (), True), ((3,), (1,), True), ((3,), (2,), False), ((1,), (7,), True), ((2, 1, 3), (3, 99, 1), True),
    ((2, 3), (1, 2), False), ((0, 3), (5, 7), True), ((2, 3), (0, 1), False),
])  # fmt: skip
def test_contiguity_is_torchs(shape: tuple, strides: tuple, answer: bool):
    spec = TensorSpec(torch.float32, shape, strides, 0, None, False, None)
    assert (
        is_contiguous(spec) == answer == torch.empty(100)[:0].new_empty(1000).as_strided(shape, strides).is_contiguous()
    )


PROCESS = """
    import sys
    import torch
    before = set(sys.modules)
    from torch_neuronx_compile.op_compiler import OpCompiler
    from torch_neuronx._op_compiler import OpRequest, TensorSpec, LaunchScalar
    compiler = OpCompiler()
    traits = compiler.describe("aten::add.Tensor")
    def spec(buffer): return TensorSpec(torch.float32, (3, 4), (4, 1), buffer, None, False, None)
    request = OpRequest("aten::add.Tensor", (spec(0), spec(1), LaunchScalar(0, int)), (spec(None),), (3, 4, 4, 1) * 3)
    program = compiler.compile(request)
    import json
    print(json.dumps({"modules": sorted(set(sys.modules) - before), "misses": compiler.persistent_misses, "bytes": len(program)}))
"""


def test_what_the_disk_serves_needs_no_compiler(store: Path):
    def process() -> dict:
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(PROCESS)], capture_output=True, text=True, env=dict(os.environ)
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    first, second = process(), process()
    assert first["misses"] == 1 and second["misses"] == 0 and first["bytes"] == second["bytes"]
    assert "torch_neuronx_compile.passes.pipeline" in first["modules"]
    heavy = ("torch_neuronx_compile.passes", "torch_neuronx_compile.lowering", "torch_neuronx_compile.stablehlo",
             "torch._dynamo", "torch._inductor", "torch.fx.")  # fmt: skip
    assert [m for m in second["modules"] if m.startswith(heavy)] == []
