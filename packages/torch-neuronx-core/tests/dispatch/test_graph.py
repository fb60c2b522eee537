"""Compiled graphs: loading, binding, checking and running them."""

import gc

import pytest
import torch

from libneuron_runtime import neff
from libneuron_runtime.program import Dtype, Kind, Micro, Micros, Opcode, Program
from torch_neuronx import _C


def program(shape=(4, 6), alias=None, scalar=False):
    """y = x0 + x1 [* scalar], frozen."""
    p, m = Program(scalar_count=int(scalar)), Micros()
    dims = [p.const(n) for n in shape]
    strides = [p.const(n) for n in torch.empty(shape).stride()]
    buffers = [
        p.input("x0", Dtype.FP32, dims),
        p.input("x1", Dtype.FP32, dims),
        p.output("y", Dtype.FP32, dims, alias=alias),
    ]
    second = m.load(1, Kind.F32)
    if scalar:
        second = m.op(Micro.MUL, Kind.F32, second, m.scalar(Kind.F32, 0))
    m.store(2, m.op(Micro.ADD, Kind.F32, m.load(0, Kind.F32), second))
    p.instruction(Opcode.TILE, dims, [p.pattern(b, Dtype.FP32, strides) for b in buffers], m)
    return neff.pack(p.to_bytes(), name="sum")


SPEC = ((4, 6), (6, 1), torch.float32)


def tensors(count=2, shape=(4, 6)):
    return [torch.randn(shape).to("neuron") for _ in range(count)]


def test_runs():
    graph = _C.load(program()).graph([SPEC])
    a, b = tensors()
    (y,) = graph([a, b], [])
    assert y.device == a.device and y.shape == (4, 6)
    assert torch.equal(y.cpu(), a.cpu() + b.cpu())
    (z,) = graph([y, b])
    assert torch.equal(z.cpu(), y.cpu() + b.cpu())


def test_scalars():
    graph = _C.load(program(scalar=True)).graph([SPEC])
    a, b = tensors()
    (y,) = graph([a, b], [0.5])
    assert torch.equal(y.cpu(), a.cpu() + b.cpu() * 0.5)
    with pytest.raises(RuntimeError, match="takes 1 scalars, got 0"):
        graph([a, b], [])
    with pytest.raises(TypeError, match="Scalar 0 of the graph must be an int or a float, got str"):
        graph([a, b], ["x"])


def test_an_aliased_output_is_written_in_place():
    graph = _C.load(program(alias=0)).graph([SPEC])
    a, b = tensors()
    expected = a.cpu() + b.cpu()
    assert graph([a, b], []) == []
    assert torch.equal(a.cpu(), expected)


def test_inputs_at_an_offset():
    graph = _C.load(program()).graph([SPEC])
    a = torch.randn(5, 6).to("neuron")
    (y,) = graph([a[1:], a[:4]], [])
    assert torch.equal(y.cpu(), a.cpu()[1:] + a.cpu()[:4])


def test_the_graph_outlives_its_model():
    model = _C.load(program())
    graph = model.graph([SPEC])
    del model
    gc.collect()
    a, b = tensors()
    assert torch.equal(graph([a, b], [])[0].cpu(), a.cpu() + b.cpu())


@pytest.mark.parametrize(
    ("inputs", "text"),
    [
        (lambda a, b: [a], "takes 2 tensors, got 1"),
        (lambda a, b: [a, b.cpu()], "Input 1 of the graph must be on a neuron device, got cpu"),
        (lambda a, b: [a, b[:3]], r"Input 1 of the graph has size \[3, 6\], but it was compiled for \[4, 6\]"),
        (lambda a, b: [a.int(), b], "Input 0 of the graph has dtype Int"),
        (lambda a, b: [a, b[:, :1].expand(4, 6)], "Input 1 of the graph spans 76 bytes"),
    ],
)
def test_wrong_inputs_are_named(inputs, text):
    graph = _C.load(program()).graph([SPEC])
    with pytest.raises(RuntimeError, match=text):
        graph(inputs(*tensors()), [])


def test_wrong_types_are_named():
    graph = _C.load(program()).graph([SPEC])
    with pytest.raises(TypeError, match="Input 1 of the graph must be a tensor, got float"):
        graph([tensors()[0], 1.0], [])


def test_strides_are_checked_when_they_are_described():
    graph = _C.load(program((4, 4))).graph([((4, 4), (4, 1), torch.float32)], [((4, 4), (4, 1), torch.float32)] * 2)
    a, b = tensors(shape=(4, 4))
    assert torch.equal(graph([a, b], [])[0].cpu(), a.cpu() + b.cpu())
    with pytest.raises(
        RuntimeError, match=r"Input 1 of the graph has strides \[1, 4\], but it was compiled for \[4, 1\]"
    ):
        graph([a, b.t()], [])


@pytest.mark.parametrize(
    ("specs", "text"),
    [
        ([], "has 1 outputs, but 0 were described"),
        ([((4, 6), (6, 1), torch.int32)], "Output 0 of the program takes 96 bytes of dtype code 10"),
        ([((4, 5), (5, 1), torch.float32)], "but was described as"),
        ([((4, 6), (6,), torch.float32)], "needs as many strides"),
    ],
)
def test_wrong_descriptions_are_refused(specs, text):
    with pytest.raises(RuntimeError, match=text):
        _C.load(program()).graph(specs)


def test_malformed_neff():
    with pytest.raises(RuntimeError, match="Cannot load a NEFF"):
        _C.load(b"not a NEFF")
    good = program()
    with pytest.raises(RuntimeError, match="Cannot load a NEFF"):
        _C.load(good[: len(good) // 2])


def test_other_device():
    if torch.neuron.device_count() < 2:
        pytest.skip("one core is visible")
    graph = _C.load(program()).graph([SPEC])
    a, b = (t.to("neuron:1") for t in tensors())
    (y,) = graph([a, b], [])
    assert y.device == a.device and torch.equal(y.cpu(), a.cpu() + b.cpu())
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        graph([a, b.to("neuron:0")], [])
