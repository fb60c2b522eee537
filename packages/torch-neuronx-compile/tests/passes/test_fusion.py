"""What shares an instruction, and that sharing changes no bit."""

from __future__ import annotations

import pytest
import torch

import torch_neuronx_compile.stablehlo as hlo
from torch_neuronx_compile.stablehlo import Value

from .programs import compiled, opcodes, run, tensor


def rows(x: Value, dims: list[int], body: str) -> Value:
    """A reduction, broadcast to the operand's sizes again."""
    kept = [d for d in range(x.rank) if d not in dims]
    return hlo.broadcast_in_dim(hlo.reduce(x, body, dims), x.shape, kept)


def number(value: float, like: Value) -> Value:
    return hlo.broadcast_in_dim(hlo.constant(value, like.dtype), like.shape, ())


def softmax(x: Value, dim: int = -1) -> Value:
    e = hlo.exponential(hlo.subtract(x, rows(x, [dim % x.rank], "maximum")))
    return hlo.divide(e, rows(e, [dim % x.rank], "add"))


def layer_norm(x: Value, weight: Value, bias: Value) -> Value:
    last = [x.rank - 1]
    scale = number(1 / x.shape[-1], x)
    centred = hlo.subtract(x, hlo.multiply(rows(x, last, "add"), scale))
    variance = hlo.multiply(rows(hlo.multiply(centred, centred), last, "add"), scale)
    normal = hlo.multiply(centred, hlo.rsqrt(hlo.add(variance, number(1e-5, x))))
    return hlo.add(
        hlo.multiply(normal, hlo.broadcast_in_dim(weight, x.shape, last)), hlo.broadcast_in_dim(bias, x.shape, last)
    )


def gelu(x: Value) -> Value:
    half = hlo.multiply(x, number(0.5, x))
    return hlo.multiply(half, hlo.add(number(1.0, x), hlo.erf(hlo.multiply(x, number(0.5**0.5, x)))))


def test_softmax_is_one_tile():
    x = tensor(0, (6, 4, 33))
    program = compiled([x], [softmax(x)])
    assert opcodes(program) == ["TILE"]
    data = torch.randn(6, 4, 33)
    (got,) = run([x], [softmax(x)], [data])
    torch.testing.assert_close(got, data.softmax(-1))


def test_a_reduction_of_sizes_of_one_does_not_join_another_one():
    x = tensor(0, (1, 5))
    total = hlo.reduce(hlo.divide(hlo.reduce(x, "add", (1,)), hlo.constant(5, "f32", (1,))), "add", (0,))
    data = torch.randn(1, 5)
    (got,) = run([x], [total], [data])
    torch.testing.assert_close(got, data.mean())


def test_layer_norm_is_one_tile():
    x, w, b = tensor(0, (5, 7, 64)), tensor(1, (64,)), tensor(2, (64,))
    assert opcodes(compiled([x, w, b], [layer_norm(x, w, b)])) == ["TILE"]
    data = [torch.randn(5, 7, 64), torch.randn(64), torch.randn(64)]
    (got,) = run([x, w, b], [layer_norm(x, w, b)], data)
    torch.testing.assert_close(got, torch.nn.functional.layer_norm(data[0], [64], data[1], data[2]))


def test_what_is_the_same_along_a_row_is_stored_at_every_element():
    x = tensor(0, (5, 7))
    total = rows(x, [1], "add")
    results = [hlo.multiply(total, number(2.0, x)), hlo.subtract(x, total)]
    assert opcodes(compiled([x], results)) == ["TILE"]
    data = torch.arange(35.0).view(5, 7)
    got = run([x], results, [data])
    assert torch.equal(got[0], (data.sum(1, keepdim=True) * 2).expand(5, 7)) and torch.equal(
        got[1], data - data.sum(1, keepdim=True)
    )


@pytest.mark.parametrize("dims", [[0], [1], [0, 1]])
def test_a_reduction_of_something_repeated(dims: list[int]):
    x = tensor(0, (5,))
    data = torch.arange(5.0)
    (got,) = run([x], [hlo.reduce(hlo.broadcast_in_dim(x, (5, 7), [0]), "add", dims)], [data])
    assert torch.equal(got, data[:, None].expand(5, 7).sum(dims))


def test_linear_and_gelu_are_one_matmul():
    x, w, b = tensor(0, (4, 9, 16)), tensor(1, (24, 16)), tensor(2, (24,))
    dot = hlo.dot_general(x, w, contracting=((2,), (1,)))
    result = gelu(hlo.add(dot, hlo.broadcast_in_dim(b, dot.shape, [2])))
    program = compiled([x, w, b], [result])
    assert opcodes(program) == ["MATMUL"]
    assert [len(i.extents) for i in program.instructions] == [3], "the two dimensions of rows are one loop"
    data = [torch.randn(4, 9, 16), torch.randn(24, 16), torch.randn(24)]
    (got,) = run([x, w, b], [result], data)
    torch.testing.assert_close(got, torch.nn.functional.gelu(torch.nn.functional.linear(*data)))


def test_softmax_over_another_dimension_keeps_summing_in_columns():
    x = tensor(0, (6, 33, 4))
    program = compiled([x], [softmax(x, 1)])
    assert {i.params[0] for i in program.instructions if i.opcode == "TILE" and i.params[1]} == {2}, "COLUMN"
    data = torch.randn(6, 33, 4)
    (got,) = run([x], [softmax(x, 1)], [data])
    torch.testing.assert_close(got, data.softmax(1))


def test_an_elementwise_chain_reads_and_writes_once():
    x, y = tensor(0, (64, 64)), tensor(1, (64, 64))
    value = x
    for _ in range(20):
        value = hlo.tanh(hlo.add(hlo.multiply(value, y), x))
    (instruction,) = compiled([x, y], [value]).instructions
    assert len(instruction.windows) == 3


def test_two_products_are_two_instructions_and_their_sum_rides_along():
    x, w = tensor(0, (8, 8)), tensor(1, (8, 8))
    both = hlo.add(hlo.dot_general(x, w, contracting=((1,), (0,))), hlo.dot_general(w, x, contracting=((1,), (0,))))
    assert opcodes(compiled([x, w], [both])) == ["MATMUL", "MATMUL"]
    data = [torch.randn(8, 8), torch.randn(8, 8)]
    (got,) = run([x, w], [both], data)
    torch.testing.assert_close(got, data[0] @ data[1] + data[1] @ data[0])


def test_a_circle_through_another_kernel_is_not_fused():
    """exp(x) feeds a product and, together with that product, an addition: the addition cannot join the first TILE."""
    x = tensor(0, (8, 8))
    e = hlo.exponential(x)
    result = hlo.add(e, hlo.dot_general(e, e, contracting=((1,), (0,))))
    assert opcodes(compiled([x], [result])) == ["TILE", "MATMUL"]
    data = torch.randn(8, 8)
    (got,) = run([x], [result], [data])
    torch.testing.assert_close(got, data.exp() + data.exp() @ data.exp())


def test_masks_made_of_indices_cost_no_memory():
    x = tensor(0, (2, 16, 16))
    row, column = (hlo.iota((16, 16), "i32", d) for d in (0, 1))
    mask = hlo.broadcast_in_dim(hlo.compare(row, column, "GE"), x.shape, [1, 2])
    result = hlo.select(mask, x, number(float("-inf"), x))
    (instruction,) = compiled([x], [softmax(result)]).instructions
    assert len(instruction.windows) == 2
    data = torch.randn(2, 16, 16)
    (got,) = run([x], [softmax(result)], [data])
    want = data.masked_fill(~torch.ones(16, 16).tril().bool(), float("-inf")).softmax(-1)
    torch.testing.assert_close(got, want)


def chain(name: str, x: Value) -> Value:
    return {"softmax": softmax, "gelu": gelu, "sum": lambda v: rows(v, [v.rank - 1], "add"),
            "sum0": lambda v: rows(v, [0], "add")}[name](x)  # fmt: skip


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16"])
@pytest.mark.parametrize("first", ["gelu", "softmax", "sum", "sum0"])
@pytest.mark.parametrize("second", ["gelu", "softmax", "sum", "sum0"])
def test_fused_is_bit_equal_to_one_by_one(first: str, second: str, dtype: str):
    """One program for two operations, and two programs that pass the value on through memory."""
    torch_dtype = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}[dtype]
    shape = (37, 70)
    data = torch.randn(shape).to(torch_dtype)
    x = tensor(0, shape, dtype)
    (together,) = run([x], [chain(second, chain(first, x))], [data])
    (middle,) = run([x], [chain(first, x)], [data])
    (apart,) = run([x], [chain(second, x)], [middle])
    assert torch.equal(together, apart)


def test_excess_precision_leaves_out_the_rounding_between_operations():
    x = tensor(0, (8, 64), "bf16")
    result = hlo.multiply(hlo.add(x, x), x)
    rounded = [m.op for m in compiled([x], [result]).instructions[0].micro]
    free = [m.op for m in compiled([x], [result], excess_precision=True).instructions[0].micro]
    assert rounded.count("ROUND_BF16") == 2 and free.count("ROUND_BF16") == 0
