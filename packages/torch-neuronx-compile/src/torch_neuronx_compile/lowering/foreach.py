"""Operators on lists of tensors: the row of one tensor, applied to each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch_neuronx_compile.stablehlo as hlo
from torch_neuronx_compile.lowering import binary, reduction, ternary, unary
from torch_neuronx_compile.lowering.creation import copy, zero
from torch_neuronx_compile.lowering.promotion import Number, Operand
from torch_neuronx_compile.lowering.registry import lowers
from torch_neuronx_compile.stablehlo import Value

Values = Sequence[Value]


def _each(function: Callable[[Value], Value], tensors: Values) -> list[Value]:
    return [function(x) for x in tensors]


for _name, _function in {
    "sqrt": partial(unary._float_op, "sqrt"), "rsqrt": partial(unary._float_op, "rsqrt"),
    "exp": partial(unary._float_op, "exponential"), "log": partial(unary._float_op, "log"),
    "tanh": partial(unary._float_op, "tanh"), "sigmoid": partial(unary._float_op, "logistic"),
    "neg": unary.neg, "abs": unary.absolute, "sign": unary.sign, "reciprocal": unary.reciprocal, "zero": zero,
}.items():  # fmt: skip
    lowers(f"aten::_foreach_{_name}")(partial(_each, _function))


def _with_lists(function: Callable[..., Value], tensors: Values, others: Sequence[Operand]) -> list[Value]:
    return [function(x, y) for x, y in zip(tensors, others, strict=True)]


def _with_one(function: Callable[..., Value], tensors: Values, other: Operand) -> list[Value]:
    return [function(x, other) for x in tensors]


def _with_lists_scaled(
    function: Callable[..., Value], tensors: Values, others: Values, alpha: Operand = 1
) -> list[Value]:
    return [function(x, y, alpha) for x, y in zip(tensors, others, strict=True)]


def _with_one_scaled(function: Callable[..., Value], tensors: Values, other: Value, alpha: Operand = 1) -> list[Value]:
    return [function(x, other, alpha) for x in tensors]


for _name, _function in {"add": binary.add, "sub": binary.sub}.items():
    lowers(f"aten::_foreach_{_name}.List", operands=("alpha",))(partial(_with_lists_scaled, _function))
lowers("aten::_foreach_add.Tensor", operands=("alpha",))(partial(_with_one_scaled, binary.add))
for _name, _function in {"mul": binary.mul, "div": binary.div}.items():
    lowers(f"aten::_foreach_{_name}.List")(partial(_with_lists, _function))
    lowers(f"aten::_foreach_{_name}.Tensor")(partial(_with_one, _function))
for _name, _function in {"add": binary.add, "sub": binary.sub, "mul": binary.mul, "div": binary.div}.items():
    lowers(f"aten::_foreach_{_name}.Scalar", operands=("scalar",))(partial(_with_one, _function))
    lowers(f"aten::_foreach_{_name}.ScalarList", operands=("scalars",))(partial(_with_lists, _function))


def _larger(x: Value, y: Operand) -> Value:
    return ternary.clamp_min(x, y)


def _smaller(x: Value, y: Operand) -> Value:
    return ternary.clamp_max(x, y)


for _name, _function in {"maximum": _larger, "minimum": _smaller, "clamp_min": _larger, "clamp_max": _smaller}.items():
    lowers(f"aten::_foreach_{_name}.List")(partial(_with_lists, _function))
    lowers(f"aten::_foreach_{_name}.Scalar")(partial(_with_one, _function))
    lowers(f"aten::_foreach_{_name}.ScalarList")(partial(_with_lists, _function))


def _fused(function: Callable[..., Value], tensors: Values, a: Values, b: Values, values: Any = 1) -> list[Value]:
    """addcmul and addcdiv with one number or one for each tensor."""
    each = values if isinstance(values, (list, tuple)) else [values] * len(tensors)
    return [function(*operands) for operands in zip(tensors, a, b, each, strict=True)]


def _fused_with_tensor(
    function: Callable[..., Value], tensors: Values, a: Values, b: Values, scalars: Value
) -> list[Value]:
    """The factors are the elements of a 1-d tensor."""
    each = [hlo.reshape(hlo.slice(scalars, (i,), (i + 1,)), ()) for i in range(len(tensors))]
    return _fused(function, tensors, a, b, each)


for _name, _function in {"addcmul": ternary.addcmul, "addcdiv": ternary.addcdiv}.items():
    lowers(f"aten::_foreach_{_name}.Scalar", operands=("value",))(partial(_fused, _function))
    lowers(f"aten::_foreach_{_name}.ScalarList", operands=("scalars",))(partial(_fused, _function))
    lowers(f"aten::_foreach_{_name}.Tensor")(partial(_fused_with_tensor, _function))


@lowers("aten::_foreach_lerp.Scalar", operands=("weight",))
def foreach_lerp(tensors: Values, ends: Values, weight: Operand) -> list[Value]:
    return [ternary.lerp(x, end, weight) for x, end in zip(tensors, ends, strict=True)]


@lowers("aten::_foreach_lerp.List")
@lowers("aten::_foreach_lerp.ScalarList", operands=("weight",))
def foreach_lerp_each(tensors: Values, ends: Values, weights: Sequence[Operand]) -> list[Value]:
    return [ternary.lerp(x, end, weight) for x, end, weight in zip(tensors, ends, weights, strict=True)]


@lowers("aten::_foreach_pow.Scalar")
def foreach_pow(tensors: Values, exponent: Number) -> list[Value]:
    return [binary.pow_scalar(x, exponent) for x in tensors]


@lowers("aten::_foreach_pow.ScalarList")
def foreach_pow_each(tensors: Values, exponents: Sequence[Number]) -> list[Value]:
    return [binary.pow_scalar(x, exponent) for x, exponent in zip(tensors, exponents, strict=True)]


@lowers("aten::_foreach_pow.List")
def foreach_pow_list(tensors: Values, exponents: Values) -> list[Value]:
    return [binary.pow_tensor(x, exponent) for x, exponent in zip(tensors, exponents, strict=True)]


@lowers("aten::_foreach_pow.ScalarAndTensor", operands=("self",))
def foreach_pow_of(base: Operand, exponents: Values) -> list[Value]:
    return [binary.pow_tensor(base, exponent) for exponent in exponents]


@lowers("aten::_foreach_norm.Scalar")
def foreach_norm(tensors: Values, ord: float, dtype: Any = None) -> list[Value]:
    return [reduction.vector_norm(x, ord, dtype=dtype) for x in tensors]


@lowers("aten::_foreach_copy")
def foreach_copy(tensors: Values, sources: Values, non_blocking: bool = False) -> list[Value]:
    return [copy(x, source, non_blocking) for x, source in zip(tensors, sources, strict=True)]
