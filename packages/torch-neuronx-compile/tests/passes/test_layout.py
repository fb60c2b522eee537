"""Views are access patterns; only what strides cannot say is copied."""

from __future__ import annotations

import pytest
import torch

import torch_neuronx_compile.stablehlo as hlo

from .programs import compiled, opcodes, run, tensor

# name, StableHLO of a 4x6x10 tensor, torch's expression
VIEWS = {
    "transpose": (lambda x: hlo.transpose(x, [2, 0, 1]), lambda t: t.permute(2, 0, 1)),
    "reverse": (lambda x: hlo.reverse(x, [0, 2]), lambda t: t.flip(0, 2)),
    "slice": (lambda x: hlo.slice(x, [1, 0, 2], [4, 6, 9], [2, 1, 3]), lambda t: t[1:4:2, :, 2:9:3]),
    "broadcast": (lambda x: hlo.broadcast_in_dim(x, (4, 3, 6, 10), [0, 2, 3]), lambda t: t[:, None].expand(4, 3, 6, 10)),
    "split": (lambda x: hlo.reshape(x, (4, 2, 3, 10)), lambda t: t.reshape(4, 2, 3, 10)),
    "merge": (lambda x: hlo.reshape(x, (24, 10)), lambda t: t.reshape(24, 10)),
    "regroup": (lambda x: hlo.reshape(x, (8, 30)), lambda t: t.reshape(8, 30)),
    "ones": (lambda x: hlo.reshape(x, (1, 4, 1, 60, 1)), lambda t: t.reshape(1, 4, 1, 60, 1)),
    "transposed rows split": (
        lambda x: hlo.reshape(hlo.transpose(x, [1, 0, 2]), (6, 4, 2, 5)), lambda t: t.transpose(0, 1).reshape(6, 4, 2, 5)),
    "slice of transpose of reverse": (
        lambda x: hlo.slice(hlo.transpose(hlo.reverse(x, [1]), [1, 2, 0]), [1, 2, 3], [5, 10, 4]),
        lambda t: t.flip(1).permute(1, 2, 0)[1:5, 2:10, 3:4]),
    "empty": (lambda x: hlo.slice(x, [4, 0, 0], [4, 6, 10]), lambda t: t[4:]),
}  # fmt: skip


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_is_part_of_the_reader(name: str):
    build, reference = VIEWS[name]
    x = tensor(0, (4, 6, 10))
    result = hlo.negate(build(x))
    assert opcodes(compiled([x], [result])) == ["TILE"]
    data = torch.randn(4, 6, 10)
    (got,) = run([x], [result], [data])
    assert torch.equal(got, -reference(data))


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_of_a_computed_value_needs_no_further_pass(name: str):
    """The one reader computes what it sees through the view."""
    build, reference = VIEWS[name]
    if name == "broadcast":
        pytest.skip("repeating the computation for every copy would cost more than memory")
    x = tensor(0, (4, 6, 10))
    result = hlo.negate(build(hlo.sqrt(x)))
    assert opcodes(compiled([x], [result])) == ["TILE"]
    data = torch.rand(4, 6, 10)
    (got,) = run([x], [result], [data])
    assert torch.equal(
        got, -reference(data.double().sqrt().float())
    )  # torch's own float32 sqrt is off by a unit at times


def test_what_strides_cannot_say_is_copied_once():
    """A product reads its operand by strides; an element-wise reader takes the loops of the operand."""
    x, w = tensor(0, (4, 6, 10)), tensor(1, (8, 3))
    flat = hlo.reshape(hlo.transpose(x, [2, 0, 1]), (30, 8))
    product = hlo.dot_general(flat, w, contracting=((1,), (0,)))
    assert opcodes(compiled([x, w], [product, hlo.negate(flat)])) == ["DMA", "MATMUL", "TILE"]
    assert opcodes(compiled([x], [hlo.negate(hlo.reshape(flat, (240,)))])) == ["TILE"]
    data = [torch.randn(4, 6, 10), torch.randn(8, 3)]
    got = run([x, w], [product, hlo.negate(flat)], data)
    want = data[0].permute(2, 0, 1).reshape(30, 8)
    torch.testing.assert_close(got[0], want @ data[1])
    assert torch.equal(got[1], -want)


def test_a_transposed_result_is_stored_where_it_belongs():
    x = tensor(0, (4, 6, 10))
    result = hlo.transpose(hlo.exponential(hlo.reduce(x, "add", [2])), [1, 0])
    assert opcodes(compiled([x], [result])) == ["TILE"]


def test_pieces_of_a_concatenation_are_computed_in_place():
    x, y = tensor(0, (4, 6)), tensor(1, (3, 6))
    joined = hlo.concatenate([hlo.tanh(x), hlo.exponential(y), x], 0)
    program = compiled([x, y], [joined])
    assert sorted(opcodes(program)) == ["DMA", "TILE", "TILE"]
    assert {w.buffer.kind for i in program.instructions for w in i.windows} == {"INPUT", "OUTPUT"}
    data = [torch.zeros(4, 6), torch.zeros(3, 6)]
    (got,) = run([x, y], [joined], data)
    assert torch.equal(got, torch.cat([data[0], torch.ones(3, 6), data[0]]))


def test_pieces_with_a_dimension_of_one_are_computed_in_place():
    x, y = tensor(0, (8, 16, 4)), tensor(1, (8, 16, 4))
    heads = [hlo.reshape(hlo.transpose(f(t), (1, 0, 2)), (1, 16, 32)) for f, t in ((hlo.tanh, x), (hlo.exponential, y))]
    joined = hlo.concatenate(heads, 2)
    program = compiled([x, y], [joined])
    assert opcodes(program) == ["TILE", "TILE"]
    data = [torch.randn(8, 16, 4), torch.randn(8, 16, 4)]
    (got,) = run([x, y], [joined], data)
    parts = [f(t).transpose(0, 1).reshape(1, 16, 32) for f, t in ((torch.tanh, data[0]), (torch.exp, data[1]))]
    torch.testing.assert_close(got, torch.cat(parts, 2))


def test_a_value_joined_with_itself_fills_every_part():
    a, b = tensor(0, (4, 3)), tensor(1, (3, 5))
    product = hlo.dot_general(a, b, contracting=((1,), (0,)))
    result = hlo.concatenate([product, product, hlo.negate(product), product], 1)
    x, y = torch.randn(4, 3), torch.randn(3, 5)
    (got,) = run([a, b], [result], [x, y])
    expected = got[:, :5]
    torch.testing.assert_close(expected, x @ y)
    assert torch.equal(got, torch.cat([expected, expected, -expected, expected], 1))


def test_pad_with_gaps():
    x = tensor(0, (3, 4))
    padded = hlo.pad(x, hlo.constant(7.0, "f32"), [1, 2], [0, 1], [2, 1])
    data = torch.randn(3, 4)
    (got,) = run([x], [padded], [data])
    want = torch.full((8, 10), 7.0)
    want[1::3, 2:9:2] = data
    assert torch.equal(got, want)


def test_bitcast_reads_the_same_memory():
    x = tensor(0, (3, 5))
    (got,) = run([x], [hlo.bitcast_convert(hlo.negate(x), "i32")], [torch.ones(3, 5)])
    assert torch.equal(got, (-torch.ones(3, 5)).view(torch.int32))


@pytest.mark.parametrize("shape", [(), (1,), (0, 3), (2, 0, 4), (1, 1, 1)])
def test_odd_shapes(shape: tuple[int, ...]):
    x = tensor(0, shape)
    data = torch.randn(shape)
    results = [hlo.negate(x), hlo.reduce(x, "add", range(len(shape))) if shape else hlo.abs(x)]
    got = run([x], results, [data])
    assert torch.equal(got[0], -data)
    torch.testing.assert_close(got[1], data.sum() if shape else data.abs())


def test_eight_dimensions_that_do_not_merge():
    x = tensor(0, (2, 3, 2, 3, 2, 3, 2, 3))
    order = [7, 5, 3, 1, 0, 2, 4, 6]
    data = torch.randn(x.shape)
    (got,) = run([x], [hlo.negate(hlo.transpose(x, order))], [data])
    assert torch.equal(got, -data.permute(order))


def test_a_dimension_of_size_one_moves_while_a_part_is_stored():
    """The same elements in the same order, but not in the same dimensions: the strides of a part follow the dimension."""
    x = tensor(0, (1, 5))
    columns = [hlo.reshape(hlo.multiply(x, x), (5, 1)), hlo.reshape(hlo.exponential(x), (5, 1))]
    data = torch.randn(1, 5)
    (got,) = run([x], [hlo.concatenate(columns, 1)], [data])
    torch.testing.assert_close(got, torch.stack([data[0] ** 2, data[0].exp()], 1))
