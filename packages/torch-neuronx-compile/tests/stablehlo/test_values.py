"""Values, type rules and their errors."""

from __future__ import annotations

import pytest

import torch_neuronx_compile.stablehlo as hlo
from torch_neuronx_compile.dim import ShapeEnv
from torch_neuronx_compile.stablehlo import HloTypeError, Operation, Parameter, TensorType, Value


def tensor(*shape, dtype="f32", number=0) -> Parameter:
    return Parameter(number, TensorType(shape, dtype))


X, Y, INDEX, B = (
    tensor(2, 3),
    tensor(2, 3, number=1),
    tensor(2, 3, dtype="i64", number=2),
    tensor(2, 3, dtype="i1", number=3),
)


def test_values_are_equal_by_operation_and_index():
    z = hlo.add(X, Y)
    assert z == Value(z.operation, 0, z.type) and hash(z) == hash(Value(z.operation, 0, z.type))
    assert z != hlo.add(X, Y) and X != tensor(2, 3) and len({z, X, Y, X}) == 3


def test_topological_order_is_operands_first_and_without_repetition():
    a = hlo.add(X, Y)
    b = hlo.multiply(a, a)
    c = hlo.add(b, a)
    order = hlo.topological([c, b])
    assert [o.name for o in order] == ["add", "multiply", "add"] and order[0] is a.operation
    assert hlo.parameters([c, X]) == [X, Y]


def test_a_deep_chain_needs_no_deep_stack():
    value = X
    for _ in range(20000):
        value = hlo.negate(value)
    assert len(hlo.topological([value])) == 20000


def test_location_names_operations():
    with hlo.location("outer"):
        a = hlo.negate(X)
        with hlo.location("inner"):
            b = hlo.negate(a)
        c = hlo.negate(b)
    assert [v.operation.location for v in (a, b, c)] == ["outer", "inner", "outer"]
    assert hlo.current_location() == ""


def test_launch_scalars_have_rank_0():
    scalar = Parameter(0, TensorType((), "f64"), "scalar", wrapped=True)
    assert scalar.wrapped and scalar.role == "scalar" and not hlo.negate(scalar).wrapped
    for type in (TensorType((1,), "f64"), TensorType((), "f32")):
        with pytest.raises(ValueError, match="launch scalar of type"):
            Parameter(0, type, "scalar")
    with pytest.raises(ValueError, match="role 'output'"):
        Parameter(0, TensorType((), "f32"), "output")


def test_unknown_element_type():
    with pytest.raises(ValueError, match="unknown element type 'f8'; known: f32, bf16"):
        TensorType((2,), "f8")


def test_symbolic_shapes_compare_with_guards():
    env = ShapeEnv()
    n, m = env.symbol("n", 4), env.symbol("m", 4)
    a, b = tensor(n, 3), tensor(m, 3, number=1)
    assert hlo.add(a, b).shape == (n, 3)
    assert [str(g) for g in env.guards] == ["n == m"]
    assert str(a.type) == "tensor<(n)x3xf32>"


SHORT = tensor(3, number=4)
IX = tensor(4, dtype="i64", number=5)


@pytest.mark.parametrize(
    "build, message",
    [
        (lambda: hlo.add(X, SHORT), r"stablehlo\.add: got tensor<2x3xf32>, tensor<3xf32>; accepted: two tensors of one type"),
        (lambda: hlo.add(X, INDEX), r"stablehlo\.add: got tensor<2x3xf32>, tensor<2x3xi64>"),
        (lambda: hlo.subtract(B, B), r"stablehlo\.subtract: got .*accepted: float or integer element types"),
        (lambda: hlo.tanh(INDEX), r"stablehlo\.tanh: got tensor<2x3xi64>; accepted: float element types"),
        (lambda: hlo.erf(INDEX), r"chlo\.erf: got tensor<2x3xi64>"),
        (lambda: hlo.and_(X, X), r"stablehlo\.and: got .*integer or boolean"),
        (lambda: hlo.compare(X, Y, "LESS"), r"direction EQ, NE, LT, LE, GT, GE, not 'LESS'"),
        (lambda: hlo.select(INDEX, X, Y), r"stablehlo\.select: .*an i1 tensor"),
        (lambda: hlo.clamp(SHORT, X, SHORT), r"stablehlo\.clamp: .*the bounds of rank 0"),
        (lambda: hlo.make("convert", (X,), {"dtype": "f8"}), r"a target among f32"),
        (lambda: hlo.bitcast_convert(X, "i64"), r"an element type as wide as i64"),
        (lambda: hlo.constant((1, 2), "f32", (3,)), r"3 elements for tensor<3xf32>, not 2"),
        (lambda: hlo.iota((2,), "i64", 1), r"a dimension of tensor<2xi64>"),
        (lambda: hlo.broadcast_in_dim(X, (2, 4), (0, 1)), r"each of size 1 or the target's"),
        (lambda: hlo.broadcast_in_dim(X, (2, 3), (1, 1)), r"one target dimension a dimension"),
        (lambda: hlo.reshape(X, (5,)), r"as many elements as tensor<5xf32>"),
        (lambda: hlo.transpose(X, (0, 0)), r"a permutation of its dimensions, not \(0, 0\)"),
        (lambda: hlo.reverse(X, (2,)), r"distinct dimensions of the operand, not \(2,\)"),
        (lambda: hlo.slice(X, (0, 2), (2, 4)), r"0 <= start <= limit <= size"),
        (lambda: hlo.slice(X, (0,), (2,)), r"start, limit and stride of rank 2"),
        (lambda: hlo.concatenate([X, SHORT], 0), r"equal but for dimension 0"),
        (lambda: hlo.concatenate([], 0), r"got no operands"),
        (lambda: hlo.pad(X, hlo.constant(0, "f32"), (-1, 0), (0, 0)), r"padding of at least 0"),
        (lambda: hlo.pad(X, hlo.constant(0, "i64"), (0, 0), (0, 0)), r"a scalar of its element type"),
        (lambda: hlo.dynamic_slice(X, [hlo.constant(0, "i64")], (1, 1)), r"one start index a dimension"),
        (lambda: hlo.dynamic_slice(X, [hlo.constant(0, "i64")] * 2, (3, 3)), r"a size a dimension, not larger"),
        (lambda: hlo.dynamic_update_slice(X, SHORT, [hlo.constant(0, "i64")] * 2), r"an update of the operand's rank"),
        (lambda: hlo.reduce(X, "mean", (0,)), r"a body among add, multiply.*not 'mean'"),
        (lambda: hlo.reduce(B, "add", (0,)), r"float or integer elements for the body add"),
        (lambda: hlo.reduce(X, "add", (1, 0)), r"ascending distinct dimensions"),
        (lambda: hlo.reduce(X, "argmax", (0, 1)), r"one dimension for the body argmax"),
        (lambda: hlo.scan(X, "add", 2), r"a dimension of the operand, not 2"),
        (lambda: hlo.scan(X, "or", 0), r"not 'or'"),
        (lambda: hlo.dot_general(X, Y, contracting=((1,), (0,))), r"contracting dimensions \(1,\), \(0,\) agree"),
        (lambda: hlo.dot_general(X, Y, contracting=((1,), (1,)), dtype="i64"), r"a result of that kind, not i64"),
        (lambda: hlo.random_bits(X, X, (3,)), r"seed and offset, each i64 of rank 0"),
        (lambda: hlo.custom_call("k", [X], [TensorType((2,), "f32")], aliases=[(0, 0)]), r"aliased operands"),
        (lambda: _gather(slice_sizes=(1, 4)), r"not larger than it: \(1, 4\)"),
        (lambda: _gather(slice_sizes=(2, 3)), r"slice size 1 in the collapsed"),
        (lambda: _gather(offset_dims=()), r"1 offset dimensions, not \(\)"),
        (lambda: _gather(out_of_range="wrap"), r'out_of_range "error" or "clamp", not \'wrap\''),
        (lambda: _gather(start_index_map=(0, 1)), r"2 components an index, not 1"),
        (lambda: _scatter(body="divide"), r"not 'divide'"),
        (lambda: _scatter(update_window_dims=(0,)), r"updates of sizes"),
    ],
)  # fmt: skip
def test_type_rules_refuse(build, message):
    with pytest.raises(HloTypeError, match=message):
        build()


def _gather(**changes):
    numbers = dict(
        offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,), index_vector_dim=1, slice_sizes=(1, 3)
    )
    return hlo.gather(X, IX, **{**numbers, **changes})


def _scatter(**changes):
    numbers = dict(
        body="add",
        update_window_dims=(1,),
        inserted_window_dims=(0,),
        scatter_dims_to_operand_dims=(0,),
        index_vector_dim=1,
    )
    return hlo.scatter(X, IX, tensor(4, 3, number=6), **{**numbers, **changes})


def test_identities_make_no_operation():
    assert hlo.convert(X, "f32") is X and hlo.reshape(X, (2, 3)) is X and hlo.transpose(X, (0, 1)) is X


def test_verify_finds_forged_operations():
    z = hlo.add(X, Y).operation
    hlo.verify(z)
    with pytest.raises(HloTypeError, match="its rule gives"):
        hlo.verify(Operation("add", z.operands, {}, (TensorType((2, 3), "i64"),)))
    with pytest.raises(HloTypeError, match="unknown operation 'plus'"):
        hlo.verify(Operation("plus", z.operands, {}, z.types))
    with pytest.raises(HloTypeError, match=r"got attributes \['axis'\]; accepted: \[\]"):
        hlo.verify(Operation("add", z.operands, {"axis": 1}, z.types))
