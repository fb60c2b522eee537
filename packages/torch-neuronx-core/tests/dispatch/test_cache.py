"""Keys, classes and their bounds: when a program is found, and when another one is made."""

import pytest
import torch

import torch_neuronx
from torch_neuronx import _C


def neuron(*shape, dtype=torch.float32):
    return torch.arange(1, torch.Size(shape).numel() + 1, dtype=dtype).reshape(shape).to("neuron")


def native(op):
    counters = torch_neuronx.op_counters().get(op)
    return counters.native if counters else 0


def misses():
    return _C._get_compilation_cache_stats()["cache_misses"]


def test_second_call_is_a_hit(compiler):
    a, b = neuron(4, 4), neuron(4, 4)
    first, before = a + b, misses()
    second = a + b
    assert misses() == before
    assert len(compiler.requests) == 1
    assert torch.equal(first, second)
    assert torch.equal(second.cpu(), a.cpu() + b.cpu())
    assert torch_neuronx.op_counters()["aten::add.Tensor"] == torch_neuronx.tracking.OpCounters(2, 1, 0)


def test_one_program_serves_every_size_of_a_class(compiler):
    for rows, columns in ((2, 3), (5, 7), (128, 33)):
        a, b = neuron(rows, columns), neuron(rows, columns)
        assert torch.equal((a + b).cpu(), a.cpu() + b.cpu())
    assert len(compiler.requests) == 1
    assert misses() >= 3


CALLS = {
    "float32": lambda: neuron(4, 4) + neuron(4, 4),
    "int32": lambda: neuron(4, 4, dtype=torch.int32) + neuron(4, 4, dtype=torch.int32),
    "int64": lambda: neuron(4, 4, dtype=torch.int64) + neuron(4, 4, dtype=torch.int64),
    "mixed dtypes": lambda: neuron(4, 4) + neuron(4, 4, dtype=torch.int32),
    "row": lambda: neuron(1, 4) + neuron(4, 4),
    "column": lambda: neuron(4, 1) + neuron(4, 4),
    "vector": lambda: neuron(4) + neuron(4, 4),
    "transposed": lambda: neuron(4, 4).t() + neuron(4, 4),
    "both transposed": lambda: neuron(4, 4).t() + neuron(4, 4).t(),
    "expanded": lambda: neuron(4, 1).expand(4, 4) + neuron(4, 4),
    "sliced": lambda: neuron(4, 8)[:, ::2] + neuron(4, 4),
    "offset": lambda: neuron(5, 4)[1:] + neuron(4, 4),
    "float alpha": lambda: torch.add(neuron(4, 4), neuron(4, 4), alpha=2.5),
    "integer alpha": lambda: torch.add(neuron(4, 4), neuron(4, 4), alpha=2),
    "wrapped float": lambda: neuron(4, 4) + 1.5,
    "wrapped integer": lambda: neuron(4, 4) + 2,
    "wrapped float, integers": lambda: neuron(4, 4, dtype=torch.int32) + 1.5,
    "wrapped bool": lambda: neuron(4, 4) + True,
    "host scalar": lambda: neuron(4, 4) + torch.tensor(1.5),
    "host scalar, float64": lambda: neuron(4, 4) + torch.tensor(1.5, dtype=torch.float64),
    "host scalar, int64 on int32": lambda: neuron(4, 4, dtype=torch.int32) + torch.tensor(7),
    "device scalar": lambda: neuron(4, 4) + torch.tensor(1.5).to("neuron"),
    "bfloat16": lambda: neuron(4, 4, dtype=torch.bfloat16) + neuron(4, 4, dtype=torch.bfloat16),
    "three dimensions": lambda: neuron(2, 2, 4) + neuron(2, 2, 4),
    "zero dimensions": lambda: torch.tensor(2.0).to("neuron") + torch.tensor(3.0).to("neuron"),
}


def on_cpu(call):
    """The same expression with CPU tensors."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.Tensor, "to", lambda tensor, _device: tensor)
        return call()


def check(call):
    expected, got = on_cpu(call), call()
    assert got.dtype == expected.dtype and got.stride() == expected.stride()
    assert torch.equal(got.cpu(), expected)


def test_calls_that_differ_never_share_an_entry(compiler):
    # Twice, in opposite orders: each call meets the entries of all the others.
    for calls in (CALLS.values(), reversed(CALLS.values())):
        for call in calls:
            check(call)
    assert not torch_neuronx.get_fallback_ops()


def test_scalar_operands_are_no_part_of_the_key(compiler):
    a, b = neuron(4, 4), neuron(4, 4)
    a.add(b, alpha=0.5)
    before = misses()
    for alpha in (0.25, 3.5, -7.125):
        assert torch.equal(torch.add(a, b, alpha=alpha).cpu(), torch.add(a.cpu(), b.cpu(), alpha=alpha))
    assert misses() == before
    assert len(compiler.requests) == 1


def test_host_scalars_are_no_part_of_the_key(compiler):
    a = neuron(4, 4)
    a + 1.5
    before = misses()
    for number in (2.5, -0.0, float("inf"), 1e-30):
        assert torch.equal((a + number).cpu(), a.cpu() + number)
    assert misses() == before


def test_the_type_of_a_scalar_is_part_of_the_key(compiler):
    a = neuron(4, 4, dtype=torch.int32)
    results = [a + 2, a + 2.0, a + True, a + 3]
    assert [r.dtype for r in results] == [torch.int32, torch.float32, torch.int32, torch.int32]
    assert [r[0, 0].item() for r in results] == [3, 3, 2, 4]


def test_request_of_the_compiler(compiler):
    a, b = neuron(4, 1), neuron(3, 4).t()
    torch.add(a, b, alpha=2)
    (request,) = compiler.requests
    first, second, alpha = request.args
    assert request.op == "aten::add.Tensor"
    assert (first.dtype, first.shape, first.strides, first.buffer, first.scalar) == (
        torch.float32,
        (4, 1),
        (1, 1),
        0,
        None,
    )
    assert (second.shape, second.strides, second.buffer) == ((4, 3), (1, 4), 1)
    assert (alpha.scalar, alpha.type) == (0, int)
    (output,) = request.outputs
    assert (output.shape, output.alias, output.buffer) == ((4, 3), None, None)
    assert request.slots == (4, 1, 1, 1, 4, 3, 1, 4, *output.shape, *output.strides)


def test_request_with_host_scalars(compiler):
    torch.add(neuron(2, 2), 3, alpha=0.5)
    _, other, alpha = compiler.requests[0].args
    assert (other.scalar, other.wrapped, other.dtype, other.buffer) == (0, True, torch.int64, None)
    assert (alpha.scalar, alpha.type) == (1, float)


def test_traits_are_asked_once(compiler):
    for _ in range(3):
        neuron(2) * neuron(2)
        neuron(2).abs()
    assert compiler.described.count("aten::mul.Tensor") == 1
    assert compiler.described.count("aten::abs.out") + compiler.described.count("aten::abs") == 1


def test_a_broken_guard_adds_a_program(compiler):
    compiler.guard = True
    a, b = neuron(4, 4), neuron(6, 6)
    a.relu(), b.relu()
    assert len(compiler.requests) == 2
    _C_entries_before = misses()
    torch.relu(neuron(4, 4)), torch.relu(neuron(6, 6))
    assert len(compiler.requests) == 2
    assert misses() == _C_entries_before


def test_unsupported_is_remembered(compiler):
    compiler.refuse = lambda request: True
    a = neuron(4, 4)
    for _ in range(3):
        assert torch.equal(a.relu().cpu(), a.cpu().relu())
    neuron(5, 5).relu()
    assert len(compiler.requests) == 1
    assert torch_neuronx.get_fallback_ops() == ["aten::relu"]


def test_multiple_results(compiler):
    a = torch.tensor([-3.0, 0.0, 5.0])
    output = torch.nn.functional.logsigmoid(a.to("neuron"))
    assert torch.allclose(output.cpu(), torch.nn.functional.logsigmoid(a))
    assert native("aten::log_sigmoid_forward") == 1


def test_empty_results_run_nothing(compiler):
    result = neuron(0, 4) + neuron(0, 4)
    assert result.shape == (0, 4)
    assert not compiler.requests
    assert native("aten::add.Tensor") == 1


def test_entries_are_bounded(compiler):
    for rows in range(1, 12_000):
        torch.empty(rows, 1, device="neuron").relu()
    stats = _C._get_compilation_cache_stats()
    assert 4096 <= stats["total_entries"] <= 8192
    assert torch.equal(neuron(3, 3).relu().cpu(), neuron(3, 3).cpu())


def test_programs_are_bounded(python):
    code = """
import torch, torch_neuronx
from torch_neuronx import _C
for rank in range(1, 7):
    for dtype in (torch.float32, torch.int32):
        torch.ones([2] * rank, dtype=dtype, device="neuron").relu()
stats = _C._get_compilation_cache_stats()
assert stats["loaded_programs"] <= 4, stats
assert torch.ones(2, device="neuron").relu().sum().item() == 2
"""
    done = python(code, NEURON_EAGER_MODEL_CACHE_SIZE="4")
    assert done.returncode == 0, done.stderr


def test_statistics(compiler):
    a = neuron(4)
    before = _C._get_compilation_cache_stats()
    for _ in range(4):
        a * a
    after = _C._get_compilation_cache_stats()
    assert after["cache_misses"] - before["cache_misses"] == 1
    assert after["cache_hits"] - before["cache_hits"] == 3
    assert after["total_compilations"] - before["total_compilations"] == 1
    assert after["total_entries"] == 1 and after["loaded_programs"] == 1
    assert after["memory_usage_bytes"] > 0 and after["total_compilation_time_ms"] > 0
    assert 0 <= after["hit_rate"] <= 1
    _C._clear_compilation_cache()
    assert _C._get_compilation_cache_stats()["total_entries"] == 0
    a * a
    assert len(compiler.requests) == 2
