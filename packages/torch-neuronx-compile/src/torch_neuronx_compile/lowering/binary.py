"""Element-wise operators of two and more tensors."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import torch_neuronx_compile.stablehlo as hlo
from torch_neuronx_compile.dim import Dim
from torch_neuronx_compile.lowering.promotion import (
    REDUCED_FLOATS,
    Operand,
    cast,
    compute_dtype,
    float_result_type,
    is_float,
    result_type,
)  # fmt: skip
from torch_neuronx_compile.lowering.registry import Unsupported, lowers
from torch_neuronx_compile.lowering.shape import broadcast, full
from torch_neuronx_compile.lowering.unary import trunc, truth
from torch_neuronx_compile.stablehlo import Parameter, Value


def is_number(operand: Operand) -> bool:
    """Whether an operand is a number of its call: a Python number, or one given at launch."""
    return not isinstance(operand, Value) or (isinstance(operand, Parameter) and operand.role == "scalar")


def apply(function: Callable[..., Value], dtype: str, *operands: Operand) -> Value:
    """function of the operands, converted to `dtype` and broadcast together."""
    return function(*broadcast(*(cast(x, dtype) for x in operands)))


def apply_wide(function: Callable[..., Value], dtype: str, *operands: Operand) -> Value:
    """As `apply`, with bf16 and fp16 always computed in f32: for functions of several steps."""
    wide = compute_dtype(dtype)
    return hlo.convert(function(*broadcast(*(cast(x, wide) for x in operands))), dtype)


def is_one(alpha: Operand) -> bool:
    """Whether a factor is the number 1, known now."""
    return not isinstance(alpha, (Value, Dim)) and alpha == 1


def _scaled(function: Callable[[Value, Value], Value], x: Operand, y: Operand, alpha: Operand) -> Value:
    dtype = result_type(x, y)
    if is_one(alpha):
        return apply(function, dtype, x, y)
    if dtype == "i1":
        return apply(lambda a, b, factor: hlo.or_(a, hlo.and_(b, factor)), dtype, x, y, alpha)
    factor = cast(alpha, dtype)
    return apply_wide(lambda a, b, c: function(a, hlo.multiply(b, c)), dtype, cast(x, dtype), cast(y, dtype), factor)


def _exact_numbers(function: Callable[..., Value], dtype: str, *operands: Operand) -> Value:
    """`apply`, but numbers meet bf16 and fp16 tensors in f32 instead of being rounded first: torch multiplies and divides so."""
    wide = "f32" if dtype in REDUCED_FLOATS and any(map(is_number, operands)) else dtype
    return hlo.convert(apply(function, wide, *operands), dtype)


@lowers("aten::add.Tensor", operands=("alpha",))
@lowers("aten::add.Scalar", operands=("other", "alpha"))
def add(x: Operand, y: Operand, alpha: Operand = 1) -> Value:
    """x + alpha * y; of booleans: or."""
    return _scaled(hlo.or_ if result_type(x, y) == "i1" else hlo.add, x, y, alpha)


@lowers("aten::sub.Tensor", operands=("alpha",))
@lowers("aten::sub.Scalar", operands=("other", "alpha"))
def sub(x: Operand, y: Operand, alpha: Operand = 1) -> Value:
    """x - alpha * y."""
    return _scaled(hlo.subtract, x, y, alpha)


@lowers("aten::rsub.Tensor", operands=("alpha",))
@lowers("aten::rsub.Scalar", operands=("other", "alpha"))
def rsub(x: Operand, y: Operand, alpha: Operand = 1) -> Value:
    """y - alpha * x."""
    return _scaled(hlo.subtract, y, x, alpha)


@lowers("aten::mul.Tensor")
@lowers("aten::mul.Scalar", operands=("other",))
def mul(x: Operand, y: Operand) -> Value:
    dtype = result_type(x, y)
    return apply(hlo.and_, dtype, x, y) if dtype == "i1" else _exact_numbers(hlo.multiply, dtype, x, y)


@lowers("aten::div.Tensor")
@lowers("aten::div.Scalar", operands=("other",))
def div(x: Operand, y: Operand) -> Value:
    return _exact_numbers(hlo.divide, float_result_type(x, y), x, y)


def floor_quotient(x: Value, y: Value) -> Value:
    """floor(x / y) of two values of one type, exactly as Python divides."""
    zero = full(0, x)
    remainder = hlo.remainder(x, y)
    differ = hlo.xor(hlo.compare(y, zero, "LT"), hlo.compare(remainder, zero, "LT"))
    inexact = hlo.and_(hlo.compare(remainder, zero, "NE"), differ)
    if not is_float(x.dtype):
        quotient = hlo.divide(x, y)
        return quotient if x.dtype == "ui8" else hlo.select(inexact, hlo.subtract(quotient, full(1, x)), quotient)
    quotient = hlo.divide(hlo.subtract(x, remainder), y)
    quotient = hlo.select(inexact, hlo.subtract(quotient, full(1, x)), quotient)
    rounded = hlo.floor(quotient)
    rounded = hlo.select(
        hlo.compare(hlo.subtract(quotient, rounded), full(0.5, x), "GT"), hlo.add(rounded, full(1, x)), rounded
    )
    plain = hlo.divide(x, y)
    signed_zero = copy_sign(zero, plain)
    result = hlo.select(hlo.compare(quotient, zero, "EQ"), signed_zero, rounded)
    return hlo.select(hlo.compare(y, zero, "EQ"), plain, result)


def _bits(x: Value) -> Value:
    return hlo.bitcast_convert(x, {"f32": "i32", "f64": "i64"}.get(x.dtype, "i16"))


def copy_sign(magnitude: Value, sign: Value) -> Value:
    """|magnitude| with the sign bit of `sign`; both of one float type."""
    negative = hlo.compare(_bits(sign), full(0, sign, _bits(sign).dtype), "LT")
    positive = hlo.abs(magnitude)
    return hlo.select(negative, hlo.negate(positive), positive)


@lowers("aten::div.Tensor_mode")
@lowers("aten::div.Scalar_mode")
def div_mode(x: Operand, y: Operand, rounding_mode: str | None) -> Value:
    """Division rounded toward zero ("trunc"), down ("floor") or not at all (None)."""
    if rounding_mode is None:
        return div(x, y)
    dtype = result_type(x, y)
    if dtype == "i1":
        raise Unsupported(f'aten::div of booleans with rounding_mode="{rounding_mode}"; convert them to integers first')
    if rounding_mode == "floor":
        return apply_wide(floor_quotient, dtype, x, y)
    if not is_float(dtype):
        return apply(hlo.divide, dtype, x, y)
    return apply_wide(lambda a, b: trunc(hlo.divide(a, b)), dtype, x, y)


@lowers("aten::floor_divide", "aten::floor_divide.Scalar")
def floor_divide(x: Operand, y: Operand) -> Value:
    return div_mode(x, y, "floor")


def floor_remainder(x: Value, y: Value) -> Value:
    """x - y * floor(x / y): the sign of y, as Python's %."""
    remainder = hlo.remainder(x, y)
    if x.dtype == "ui8":
        return remainder
    zero = full(0, x)
    differ = hlo.xor(hlo.compare(y, zero, "LT"), hlo.compare(remainder, zero, "LT"))
    return hlo.select(hlo.and_(hlo.compare(remainder, zero, "NE"), differ), hlo.add(remainder, y), remainder)


@lowers("aten::remainder.Tensor", "aten::remainder.Scalar", "aten::remainder.Scalar_Tensor")
def remainder(x: Operand, y: Operand) -> Value:
    dtype = result_type(x, y)
    return apply_wide(floor_remainder, dtype, cast(x, dtype), cast(y, dtype))


@lowers("aten::fmod.Tensor", "aten::fmod.Scalar")
def fmod(x: Operand, y: Operand) -> Value:
    """The sign of x, as C's fmod."""
    return apply(hlo.remainder, result_type(x, y), x, y)


@lowers("aten::pow.Tensor_Tensor")
@lowers("aten::pow.Scalar", operands=("self",))
def pow_tensor(x: Operand, y: Operand) -> Value:
    dtype = result_type(x, y)
    if dtype == "i1":
        return apply(lambda a, b: hlo.or_(a, hlo.not_(b)), dtype, x, y)
    return apply(hlo.power, dtype, x, y)


_POWERS: dict[float, Callable[[Value], Value]] = {
    0.5: hlo.sqrt,
    2: lambda x: hlo.multiply(x, x),
    3: lambda x: hlo.multiply(hlo.multiply(x, x), x),
    -0.5: hlo.rsqrt,
    -1: lambda x: hlo.divide(full(1, x), x),
    -2: lambda x: hlo.divide(full(1, x), hlo.multiply(x, x)),
}


@lowers("aten::pow.Tensor_Scalar")
def pow_scalar(x: Value, exponent: bool | int | float) -> Value:
    """The exponent belongs to the program: small ones are multiplications, 0.5 is a square root."""
    dtype = result_type(x, exponent)
    if exponent == 0:
        return full(1, x, dtype)
    if exponent == 1:
        return cast(x, dtype)
    if not is_float(dtype) and exponent < 0:
        raise ValueError("Integers to negative integer powers are not allowed.")
    special = _POWERS.get(exponent)
    if dtype == "f16" and abs(exponent) == 0.5:  # torch has no square root here; pow(-inf, 0.5) is inf
        special = None
    if special is not None:
        return apply_wide(special, dtype, x)
    return apply_wide(hlo.power, dtype, x, exponent)


@lowers("aten::atan2")
def atan2(x: Value, y: Value) -> Value:
    return apply(hlo.atan2, float_result_type(x, y), x, y)


def _extremum(name: str, x: Value, y: Value) -> Value:
    return apply(partial(hlo.binary, name), result_type(x, y), x, y)


lowers("aten::maximum")(partial(_extremum, "maximum"))
lowers("aten::minimum")(partial(_extremum, "minimum"))


def _number_extremum(name: str, x: Value, y: Value) -> Value:
    """The larger or smaller of two; a number beats NaN."""
    dtype = result_type(x, y)

    def compute(a: Value, b: Value) -> Value:
        result = hlo.binary(name, a, b)
        if not is_float(dtype):
            return result
        return hlo.select(hlo.compare(a, a, "NE"), b, hlo.select(hlo.compare(b, b, "NE"), a, result))

    return apply(compute, dtype, x, y)


lowers("aten::fmax")(partial(_number_extremum, "maximum"))
lowers("aten::fmin")(partial(_number_extremum, "minimum"))


def _bitwise(name: str, x: Operand, y: Operand) -> Value:
    return apply(partial(hlo.binary, name), result_type(x, y), x, y)


for _aten, _name in {"bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor"}.items():
    lowers(f"aten::{_aten}.Tensor")(partial(_bitwise, _name))
    lowers(f"aten::{_aten}.Scalar", operands=("other",))(partial(_bitwise, _name))


def _shift(left: bool, x: Operand, y: Operand) -> Value:
    """A shift outside of the width gives 0 (left) or the sign (right), which StableHLO leaves to the machine."""
    dtype = result_type(x, y)
    width = {"ui8": 8, "i8": 8, "i16": 16, "i32": 32, "i64": 64}[dtype]

    def compute(a: Value, b: Value) -> Value:
        outside = hlo.compare(b, full(width - 1, b), "GT")
        if dtype != "ui8":
            outside = hlo.or_(outside, hlo.compare(b, full(0, b), "LT"))
        amount = hlo.select(outside, full(width - 1, b), b)
        if left:
            return hlo.select(outside, full(0, a), hlo.shift_left(a, amount))
        if dtype == "ui8":
            return hlo.select(outside, full(0, a), hlo.shift_right_logical(a, amount))
        return hlo.shift_right_arithmetic(a, amount)

    return apply(compute, dtype, x, y)


for _aten, _left in {
    "bitwise_left_shift": True,
    "bitwise_right_shift": False,
    "__lshift__": True,
    "__rshift__": False,
}.items():
    _suffix = "Tensor_Scalar" if _aten.startswith("bitwise") else "Scalar"
    lowers(f"aten::{_aten}.Tensor")(partial(_shift, _left))
    lowers(f"aten::{_aten}.{_suffix}", operands=("other",))(partial(_shift, _left))


def _logical(name: str, x: Value, y: Value) -> Value:
    return hlo.binary(name, *broadcast(truth(x), truth(y)))


for _aten, _name in {"logical_and": "and", "logical_or": "or", "logical_xor": "xor"}.items():
    lowers(f"aten::{_aten}")(partial(_logical, _name))


@lowers("aten::copysign.Tensor")
@lowers("aten::copysign.Scalar", operands=("other",))
def copysign(x: Operand, y: Operand) -> Value:
    return apply(copy_sign, float_result_type(x, y), x, y)


@lowers("aten::xlogy.Tensor")
@lowers("aten::xlogy.Scalar_Other", operands=("other",))
@lowers("aten::xlogy.Scalar_Self", operands=("self",))
def xlogy(x: Operand, y: Operand) -> Value:
    """x * log(y), 0 where x is 0 and y is not NaN."""

    def compute(a: Value, b: Value) -> Value:
        result = hlo.select(hlo.compare(a, full(0, a), "EQ"), full(0, a), hlo.multiply(a, hlo.log(b)))
        return hlo.select(hlo.compare(b, b, "NE"), b, result)

    return apply_wide(compute, float_result_type(x, y), x, y)


@lowers("aten::logaddexp")
def logaddexp(x: Value, y: Value) -> Value:
    """log(exp(x) + exp(y)); two equal infinities give that infinity."""
    return _log_of_sum(1.0, x, y)


@lowers("aten::logaddexp2")
def logaddexp2(x: Value, y: Value) -> Value:
    """log2(2**x + 2**y)."""
    return _log_of_sum(math.log(2.0), x, y)


def _log_of_sum(unit: float, x: Value, y: Value) -> Value:
    """log(exp(unit * x) + exp(unit * y)) / unit."""

    def compute(a: Value, b: Value) -> Value:
        larger = hlo.maximum(a, b)
        distance = hlo.negate(hlo.abs(hlo.subtract(a, b)))
        scale = full(unit, a)
        curve = hlo.log_plus_one(hlo.exponential(hlo.multiply(distance, scale)))
        sum = hlo.add(larger, hlo.divide(curve, scale))
        same = hlo.and_(hlo.compare(hlo.abs(a), full(math.inf, a), "EQ"), hlo.compare(a, b, "EQ"))
        return hlo.select(same, a, sum)

    return apply_wide(compute, float_result_type(x, y), x, y)


@lowers("aten::hypot")
def hypot(x: Value, y: Value) -> Value:
    """sqrt(x^2 + y^2), scaled so that the squares stay in range."""

    def compute(a: Value, b: Value) -> Value:
        a, b = hlo.abs(a), hlo.abs(b)
        large, small = hlo.maximum(a, b), hlo.minimum(a, b)
        ratio = hlo.select(hlo.compare(large, full(0, a), "EQ"), full(0, a), hlo.divide(small, large))
        result = hlo.multiply(large, hlo.sqrt(hlo.add(full(1, a), hlo.multiply(ratio, ratio))))
        infinite = hlo.or_(*(hlo.compare(v, full(math.inf, v), "EQ") for v in (a, b)))
        return hlo.select(infinite, full(math.inf, a), result)

    return apply_wide(compute, result_type(x, y), x, y)


@lowers("aten::heaviside")
def heaviside(x: Value, values: Value) -> Value:
    def compute(a: Value, b: Value) -> Value:
        zero = full(0, a)
        positive = hlo.convert(hlo.compare(a, zero, "GT"), a.dtype)
        return hlo.select(hlo.compare(a, zero, "EQ"), b, positive)

    return apply(compute, result_type(x, values), x, values)
