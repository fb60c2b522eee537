"""Operators computed by ATen's CPU kernels: right, counted, announced, and never by surprise."""

import warnings

import pytest
import torch

import torch_neuronx
from torch_neuronx import NeuronFallbackWarning

pytestmark = pytest.mark.usefixtures("no_compiler")


def test_counted_as_fallback_only():
    a = torch.ones(3, device="neuron")
    torch_neuronx.clear_op_tracking()
    a.relu(), a.relu(), torch.unique(a)
    assert torch_neuronx.get_fallback_ops() == ["aten::_unique2", "aten::relu"]
    assert torch_neuronx.get_executed_ops() == []
    assert torch_neuronx.op_counters()["aten::relu"].fallback == 2
    torch_neuronx.clear_op_tracking()
    assert torch_neuronx.get_fallback_ops() == []


def test_results_are_on_the_device_with_the_strides_of_the_cpu():
    a = torch.randn(3, 4)
    for call in (
        lambda x: x.sort(1).values,
        lambda x: torch.linalg.qr(x).Q,
        lambda x: x.t().relu(),
        lambda x: torch.cumsum(x, 0),
        lambda x: x.nonzero(),
    ):
        expected, got = call(a), call(a.to("neuron"))
        assert got.device.type == "neuron"
        assert got.stride() == expected.stride() and torch.equal(got.cpu(), expected)


def test_in_place_returns_the_same_tensor():
    a = torch.ones(2, 3, device="neuron")
    address = a.data_ptr()
    assert a.cumsum_(0) is a and a.data_ptr() == address
    assert a.tolist() == [[1, 1, 1], [2, 2, 2]]


def test_writes_through_views_reach_the_base():
    base = torch.zeros(4, 6, device="neuron")
    base[1:3, ::2].cumsum_(1).add_(1)
    expected = torch.zeros(4, 6)
    expected[1:3, ::2].cumsum_(1).add_(1)
    assert torch.equal(base.cpu(), expected)


def test_out_is_resized():
    out = torch.empty(0, dtype=torch.int64, device="neuron")
    values = torch.empty(0, device="neuron")
    storage = values.untyped_storage()
    torch.sort(torch.tensor([3.0, 1.0, 2.0]).to("neuron"), out=(values, out))
    assert values.tolist() == [1, 2, 3] and out.tolist() == [1, 2, 0]
    assert values.untyped_storage().data_ptr() == storage.data_ptr() and storage.nbytes() == 12


def test_lists_and_optional_lists():
    a, b = torch.ones(2, 2, device="neuron"), torch.zeros(1, 2, device="neuron")
    assert torch.equal(torch.cat([a, b]).cpu(), torch.cat([a.cpu(), b.cpu()]))
    rows = torch.tensor([1, 0]).to("neuron")
    assert a[:, rows].shape == (2, 2)
    a[rows, None] = 5.0
    assert a.sum().item() == 20
    splits = torch.split_with_sizes_copy(a, [1, 1])
    assert [s.shape for s in splits] == [(1, 2), (1, 2)]


def test_index_tensors_may_be_on_the_cpu():
    a = torch.arange(6.0).reshape(3, 2).to("neuron")
    index = torch.tensor([2, 0])
    assert torch.equal(a[index].cpu(), a.cpu()[index])
    a[index] = torch.tensor(9.0)
    assert a.tolist() == [[9, 9], [2, 3], [9, 9]]
    moved = index.to("neuron")
    why = r"indices should be either on cpu or on the same device as the indexed tensor \(cpu\)"
    with pytest.raises(RuntimeError, match=why):
        torch.ones(3)[moved]
    with pytest.raises(RuntimeError, match=why):
        torch.ones(3)[moved] = 1.0


def test_lists_of_written_tensors():
    tensors = [torch.full((3,), 4.0, device="neuron"), torch.full((2,), 6.0, device="neuron")]
    found = torch.zeros(1, device="neuron")
    torch._amp_foreach_non_finite_check_and_unscale_(tensors, found, torch.tensor([0.5], device="neuron"))
    assert [t.tolist() for t in tensors] == [[2, 2, 2], [3, 3]] and found.item() == 0


def test_running_statistics_are_written():
    layer = torch.nn.BatchNorm1d(3)
    x = torch.randn(5, 3)
    expected = layer(x)
    moved = torch.nn.BatchNorm1d(3).to("neuron")
    got = moved(x.to("neuron"))
    assert torch.allclose(got.cpu(), expected, atol=1e-6)
    assert torch.allclose(moved.running_var.cpu(), layer.running_var) and torch.allclose(
        moved.running_mean.cpu(), layer.running_mean
    )


def test_factories_with_a_device():
    assert torch.tril_indices(3, 3, device="neuron").device.type == "neuron"
    assert torch.arange(4, device="neuron").tolist() == [0, 1, 2, 3]
    assert torch.linspace(0, 1, 3, device="neuron").tolist() == [0, 0.5, 1]


def test_expanded_and_empty_arguments():
    a = torch.ones(1, 3, device="neuron").expand(4, 3)
    assert a.cumsum(0).tolist()[-1] == [4, 4, 4]
    assert torch.cumsum(torch.empty(0, 3, device="neuron"), 0).shape == (0, 3)


def test_wrapped_numbers_keep_the_dtype():
    a = torch.ones(3, dtype=torch.bfloat16, device="neuron")
    assert (a + 1.5).dtype == torch.bfloat16 and (a.int() + 2).dtype == torch.int32


@pytest.mark.parametrize(
    "call",
    [
        lambda a, b: a + b,
        lambda a, b: torch.mm(a, b),
        lambda a, b: torch.cat([a, b]),
        lambda a, b: a.add_(b),
        lambda a, b: torch.add(a, a, out=b),
        lambda a, b: torch.where(a > 0, a, b),
    ],
)
@pytest.mark.parametrize("other", ["cpu", "neuron:1"])
def test_tensors_on_different_devices(call, other):
    if other == "neuron:1" and torch.neuron.device_count() < 2:
        pytest.skip("one core is visible")
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        call(torch.ones(2, 2, device="neuron"), torch.ones(2, 2).to(other))


def test_cpu_scalars_are_read_but_not_written():
    a = torch.ones(2, device="neuron")
    assert (a + torch.tensor(2.0)).tolist() == [3, 3]
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        torch.tensor(2.0).add_(torch.tensor(1.0, device="neuron"))


def test_generators_give_reproducible_numbers():
    generator = torch.Generator("neuron").manual_seed(7)
    a = torch.randperm(50, generator=generator, device="neuron")
    b = torch.randperm(50, generator=generator, device="neuron")
    assert torch.equal(a, torch.randperm(50, generator=generator.manual_seed(7), device="neuron"))
    assert not torch.equal(a, b)
    with pytest.raises(RuntimeError, match="generator"):
        torch.empty(3, device="neuron").normal_(generator=torch.Generator())


def test_random_operators_leave_the_cpu_generator_alone():
    torch.manual_seed(0)
    state, offset = torch.get_rng_state(), torch.neuron.get_rng_state()
    x = torch.ones(1000, device="neuron")
    first = torch.nn.functional.dropout(x, 0.3)
    torch.randn(3, device="neuron"), torch.multinomial(x, 2)
    assert torch.equal(torch.get_rng_state(), state)
    assert not torch.equal(torch.neuron.get_rng_state(), offset)
    torch.manual_seed(0)
    assert torch.equal(first, torch.nn.functional.dropout(x, 0.3))
    kept = first != 0
    assert 600 < kept.sum().item() < 800 and torch.allclose(first[kept].cpu(), torch.tensor(1 / 0.7))


def test_results_that_the_device_cannot_hold():
    with pytest.raises(RuntimeError, match="strided"):
        torch.ones(2, 2, device="neuron").to_sparse()


def test_errors_are_those_of_the_cpu_and_leave_the_device_usable():
    a = torch.ones(2, 3, device="neuron")
    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied"):
        a @ a
    with pytest.raises(IndexError, match="index 5 is out of bounds"):
        a[torch.tensor([5]).to("neuron")]
    assert a.sum().item() == 6


def test_warning_once_an_operator():
    a = torch.ones(3, device="neuron")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        a.erfinv(), a.erfinv()
    (warning,) = [w for w in caught if issubclass(w.category, NeuronFallbackWarning)]
    assert "aten::erfinv ran on the CPU" in str(warning.message)
    assert "get_fallback_ops()" in str(warning.message)


def test_warning_as_error():
    with warnings.catch_warnings():
        warnings.simplefilter("error", NeuronFallbackWarning)
        with pytest.raises(NeuronFallbackWarning, match="aten::lgamma"):
            torch.ones(3, device="neuron").lgamma()


NO_COMPILER = """
import torch
from torch_neuronx import _op_compiler
class NoCompiler:
    describe = compile = lambda self, op: None
_op_compiler.install(NoCompiler())
"""


def test_disabled_fallback_says_what_was_asked(python):
    done = python(
        NO_COMPILER + "torch.empty(2, 3, device='neuron').add_(torch.empty(3, device='neuron'))",
        NEURON_FALLBACK_ENABLED="0",
    )
    assert done.returncode == 1
    error = done.stderr.strip().splitlines()[-1]
    assert error.startswith("NotImplementedError: aten::add_.Tensor(self: float32[2, 3], other: float32[3], alpha: 1)")
    assert "no lowering is registered for it" in error and ".cpu()" in error and "NEURON_FALLBACK_ENABLED=0" in error


REFUSING = """
import sys, warnings, torch, torch_neuronx
from torch_neuronx import _op_compiler
class Refusing:
    def describe(self, op):
        return _op_compiler.OpTraits()
    def compile(self, request):
        return "it takes no odd sizes"
_op_compiler.install(Refusing())
x = torch.empty(3, device="neuron")
"""


def test_the_warning_names_the_compilers_reason_and_the_users_line(python):
    program = """
with warnings.catch_warnings(record=True) as given:
    warnings.simplefilter("always")
    torch.nn.functional.silu(x)
for w in given:
    print(w.filename, str(w.message).split(". ")[0])
"""
    done = python(REFUSING + program)
    assert done.stdout.splitlines() == [
        "<string> aten::silu ran on the CPU: its lowering does not support these arguments (it takes no odd sizes)"
    ], done.stderr


def test_the_error_names_the_compilers_reason_and_the_users_line(python):
    done = python(REFUSING + "torch.nn.functional.silu(x)", NEURON_FALLBACK_ENABLED="0")
    error = done.stderr.strip().splitlines()[-1]
    assert error.startswith(
        "NotImplementedError: aten::silu(self: float32[3]), called at <string>:11, does not run natively"
    )
    assert "its lowering does not support these arguments (it takes no odd sizes)" in error


def test_without_host_visible_memory(python):
    code = (
        NO_COMPILER
        + """
from torch_neuronx import _C
assert not _C.host_visible()
base = torch.zeros(4, 6, device="neuron")
base[1:3, ::2].cumsum_(1).add_(1)
expected = torch.zeros(4, 6)
expected[1:3, ::2].cumsum_(1).add_(1)
assert torch.equal(base.cpu(), expected)
values, order = torch.empty(0, device="neuron"), torch.empty(0, dtype=torch.int64, device="neuron")
torch.sort(torch.tensor([3.0, 1.0, 2.0]).to("neuron"), out=(values, order))
assert values.tolist() == [1, 2, 3] and order.tolist() == [1, 2, 0]
view = torch.arange(12.0).to("neuron")[4:8]
torch.cumsum(torch.ones(6, device="neuron"), 0, out=view.resize_(0))
assert view.tolist() == [1, 2, 3, 4, 5, 6]
layer = torch.nn.Sequential(torch.nn.Conv2d(2, 3, 3), torch.nn.BatchNorm2d(3), torch.nn.ReLU()).to("neuron")
layer(torch.randn(2, 2, 6, 6).to("neuron")).sum().backward()
assert all(p.grad is not None for p in layer.parameters()) and layer[1].running_mean.abs().sum().item() > 0
tensors = [torch.full((3,), 4.0, device="neuron"), torch.full((2,), 6.0, device="neuron")]
torch._amp_foreach_non_finite_check_and_unscale_(tensors, torch.zeros(1, device="neuron"), torch.tensor([0.5], device="neuron"))
assert [t.tolist() for t in tensors] == [[2, 2, 2], [3, 3]]
"""
    )
    done = python(code, NEURON_SIM_HOST_VISIBLE="0")
    assert done.returncode == 0, done.stderr
