"""Operators that write their arguments: in place, `out=`, lists, and arguments that share memory."""

import warnings

import pytest
import torch

import torch_neuronx


def neuron(*shape, dtype=torch.float32):
    return torch.arange(1, torch.Size(shape).numel() + 1, dtype=dtype).reshape(shape).to("neuron")


def only_native():
    return not torch_neuronx.get_fallback_ops()


def test_in_place(compiler):
    a, b = neuron(3, 4), neuron(3, 4)
    expected = a.cpu().add_(b.cpu(), alpha=3)
    address, version = a.data_ptr(), a._version
    assert a.add_(b, alpha=3) is a
    assert (a.data_ptr(), a._version) == (address, version + 1)
    assert torch.equal(a.cpu(), expected)
    (request,) = compiler.requests
    assert request.op == "aten::add_.Tensor" and request.outputs[0].alias == 0
    assert only_native()


def test_in_place_on_a_view(compiler):
    base = neuron(4, 6)
    expected = base.cpu()
    expected[:, ::2].mul_(expected[:, 1::2])
    base[:, ::2].mul_(base[:, 1::2])
    assert torch.equal(base.cpu(), expected)
    assert only_native()


def test_in_place_with_itself(compiler):
    a = neuron(3, 4)
    expected = a.cpu()
    expected.mul_(expected)
    a.mul_(a)
    assert torch.equal(a.cpu(), expected)
    assert only_native()


def test_in_place_keeps_the_shape(compiler):
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        neuron(3).add_(neuron(2, 3))
    with pytest.raises(RuntimeError, match="can't be cast"):
        neuron(3, dtype=torch.int32).add_(neuron(3))


def test_out(compiler):
    a, b = neuron(3, 4), neuron(3, 4)
    out = torch.empty(3, 4, device="neuron")
    assert torch.add(a, b, out=out) is out
    assert torch.equal(out.cpu(), a.cpu() + b.cpu())
    (request,) = compiler.requests
    assert request.op == "aten::add.out" and len(request.args) == 3 and request.outputs[0].alias is None
    assert only_native()


def test_out_with_strides_and_another_dtype(compiler):
    a, b = neuron(3, 4, dtype=torch.int32), neuron(3, 4, dtype=torch.int32)
    out = torch.empty(4, 3, device="neuron").t()
    torch.add(a, b, out=out)
    assert torch.equal(out.cpu(), (a.cpu() + b.cpu()).float()) and out.stride() == (1, 3)
    assert only_native()


def test_out_that_is_an_argument(compiler):
    a, b = neuron(3, 4), neuron(3, 4)
    expected = a.cpu() + b.cpu()
    torch.add(a, b, out=a)
    assert torch.equal(a.cpu(), expected)
    assert compiler.requests[-1].outputs[0].alias == 0
    expected = a.cpu() + a.cpu()
    torch.add(a, a, out=a)
    assert torch.equal(a.cpu(), expected)
    assert only_native()


def test_empty_out_is_resized_in_silence(compiler):
    out = torch.empty(0, device="neuron")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.add(neuron(2, 3), neuron(2, 3), out=out)
    assert torch.equal(out.cpu(), neuron(2, 3).cpu() * 2)


def test_out_of_another_size_is_resized_with_torchs_warning(compiler):
    for _ in range(2):  # the second time the entry of the resized call exists
        out = torch.empty(5, device="neuron")
        with pytest.warns(UserWarning, match="An output with one or more elements was resized"):
            torch.add(neuron(2, 3), neuron(2, 3), out=out)
        assert torch.equal(out.cpu(), neuron(2, 3).cpu() * 2)


def test_out_refuses_a_cast_that_loses(compiler):
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type"):
        torch.add(neuron(3), neuron(3), out=torch.empty(3, dtype=torch.int32, device="neuron"))


PARTIAL = "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location"
INTERNAL = "more than one element of the written-to tensor refers to a single memory location"


@pytest.mark.parametrize("device", ["cpu", "neuron"])
def test_partial_overlap_is_an_error(compiler, device):
    a = torch.ones(10).to(device)
    with pytest.raises(RuntimeError, match=PARTIAL):
        a[1:].add_(a[:-1])
    with pytest.raises(RuntimeError, match=PARTIAL):
        torch.add(a[:-1], 1, out=a[1:])


@pytest.mark.parametrize("device", ["cpu", "neuron"])
def test_internal_overlap_is_an_error(compiler, device):
    a = torch.ones(1, 4).to(device).expand(3, 4)
    with pytest.raises(RuntimeError, match=INTERNAL):
        a.add_(1)
    with pytest.raises(RuntimeError, match=INTERNAL):
        torch.add(a, 1, out=a)


def test_overlap_errors_need_no_fallback(python):
    code = f"""
import torch
from torch_neuronx import _op_compiler
class Compiler:
    describe = lambda self, op: _op_compiler.OpTraits() if op == "aten::add_.Tensor" else None
_op_compiler.install(Compiler())
a = torch.empty(10, device="neuron")
for call, text in ((lambda: a[1:].add_(a[:-1]), {PARTIAL!r}), (lambda: a[:1].expand(4).add_(1), {INTERNAL!r})):
    try:
        call()
    except RuntimeError as error:
        assert text in str(error), error
    else:
        raise AssertionError("no error")
"""
    done = python(code, NEURON_FALLBACK_ENABLED="0")
    assert done.returncode == 0, done.stderr


def test_transposed_overlap_is_an_error(compiler):
    for device in ("cpu", "neuron"):
        a = torch.ones(4, 4).to(device)
        with pytest.raises(RuntimeError, match=PARTIAL):
            a.add_(a.t())


def test_strided_overlap_reads_the_old_values(compiler):
    a = neuron(8)
    expected = a.cpu()
    expected[1::2].add_(expected[::2].clone())
    a[1::2].add_(a[::2])
    assert torch.equal(a.cpu(), expected)
    assert only_native()


def test_lists_that_are_written(compiler):
    tensors = [neuron(3), neuron(2, 2)]
    expected = [t.cpu() * 0.5 for t in tensors]
    found = torch.zeros(1).to("neuron")
    torch._amp_foreach_non_finite_check_and_unscale_(tensors, found, torch.tensor([0.5]).to("neuron"))
    assert all(torch.equal(t.cpu(), e) for t, e in zip(tensors, expected, strict=True))
    (request,) = compiler.requests
    assert [o.alias for o in request.outputs] == [0, 1, 2]
    assert [t.buffer for t in request.args[0]] == [0, 1]
    assert only_native()


def test_a_tensor_twice_in_a_list_is_written_twice(compiler):
    def run(device):
        a, b = torch.full((3,), 8.0).to(device), torch.full((2,), 8.0).to(device)
        torch._amp_foreach_non_finite_check_and_unscale_(
            [a, b, a], torch.zeros(1).to(device), torch.tensor([0.5]).to(device)
        )
        return a.cpu(), b.cpu()

    for got, expected in zip(run("neuron"), run("cpu"), strict=True):
        assert torch.equal(got, expected)
    assert only_native()


def test_operand_scalars_must_fit(compiler):
    a = neuron(3, dtype=torch.uint8)
    a.fill_(200)
    assert a.tolist() == [200] * 3
    with pytest.raises(RuntimeError, match="value cannot be converted to type uint8_t without overflow"):
        a.fill_(300)
    with pytest.raises(
        RuntimeError, match="For integral input tensors, argument alpha must not be a floating point number"
    ):
        torch.add(a, a, alpha=1.5)
    assert a.tolist() == [200] * 3
    half = torch.ones(2, dtype=torch.float16).to("neuron")
    half.fill_(float("inf"))
    with pytest.raises(RuntimeError, match="without overflow"):
        half.fill_(1e6)
    assert half.tolist() == [float("inf")] * 2
