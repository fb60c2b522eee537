"""Element-wise operators of one tensor."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import torch_neuronx_compile.stablehlo as hlo
from torch_neuronx_compile.lowering.promotion import cast, compute_dtype, default_float, is_float
from torch_neuronx_compile.lowering.registry import Unsupported, lowers
from torch_neuronx_compile.lowering.shape import full
from torch_neuronx_compile.stablehlo import Value


def to_float(x: Value) -> Value:
    """Integers and booleans become the default float."""
    return x if is_float(x.dtype) else hlo.convert(x, default_float())


def in_compute(function: Callable[..., Value], x: Value, *others: object) -> Value:
    """function(x, ...) with a bf16 or fp16 `x` computed in f32 and rounded once."""
    wide = compute_dtype(x.dtype)
    if wide == x.dtype:
        return function(x, *others)
    converted = [hlo.convert(o, wide) if isinstance(o, Value) and o.dtype == x.dtype else o for o in others]
    return hlo.convert(function(hlo.convert(x, wide), *converted), x.dtype)


def _float_op(name: str, x: Value) -> Value:
    return hlo.unary(name, to_float(x))


for _aten, _name in {
    "exp": "exponential", "expm1": "exponential_minus_one", "log": "log", "log1p": "log_plus_one", "sqrt": "sqrt",
    "rsqrt": "rsqrt", "tanh": "tanh", "sigmoid": "logistic", "sin": "sine", "cos": "cosine", "tan": "tan", "erf": "erf",
    "erfc": "erfc", "erfinv": "erf_inv", "lgamma": "lgamma", "digamma": "digamma", "asin": "asin", "acos": "acos",
    "atan": "atan", "sinh": "sinh", "cosh": "cosh", "asinh": "asinh", "acosh": "acosh", "atanh": "atanh",
}.items():  # fmt: skip
    lowers(f"aten::{_aten}")(partial(_float_op, _name))


def _integer_is_itself(name: str, x: Value) -> Value:
    return hlo.unary(name, x) if is_float(x.dtype) else x


for _aten, _name in {"floor": "floor", "ceil": "ceil", "round": "round_nearest_even"}.items():
    lowers(f"aten::{_aten}")(partial(_integer_is_itself, _name))


@lowers("aten::trunc")
def trunc(x: Value) -> Value:
    """Toward zero; -0.5 gives -0.0."""
    if not is_float(x.dtype):
        return x
    negative = hlo.compare(x, full(0, x), "LT")
    return hlo.select(negative, hlo.ceil(x), hlo.floor(x))


@lowers("aten::frac")
def frac(x: Value) -> Value:
    return hlo.subtract(x, trunc(x))


@lowers("aten::abs")
def absolute(x: Value) -> Value:
    return x if x.dtype == "ui8" else hlo.abs(x)


@lowers("aten::neg")
def neg(x: Value) -> Value:
    return hlo.negate(x)


@lowers("aten::sinc")
def sinc(x: Value) -> Value:
    """sin(pi x) / (pi x), 1 at 0."""

    def compute(v: Value) -> Value:
        angle = hlo.multiply(v, full(math.pi, v))
        quotient = hlo.divide(hlo.sine(angle), angle)
        return hlo.select(hlo.compare(v, full(0, v), "EQ"), full(1, v), quotient)

    return in_compute(compute, to_float(x))


@lowers("aten::positive", "aten::conj_physical", "aten::detach", "aten::alias", "aten::lift_fresh_copy", "aten::lift", "aten::lift_fresh",
        "aten::detach_copy", "aten::alias_copy", "aten::real")  # fmt: skip
def identity(x: Value) -> Value:
    return x


@lowers("aten::sign", "aten::sgn")
def sign(x: Value) -> Value:
    """-1, 0 or 1; as in torch, NaN gives 0."""
    if x.dtype == "i1":
        return x
    if x.dtype == "ui8":
        return hlo.convert(hlo.compare(x, full(0, x), "GT"), "ui8")
    if not is_float(x.dtype):
        return hlo.sign(x)
    zero, one = full(0, x), full(1, x)
    return hlo.subtract(
        hlo.select(hlo.compare(x, zero, "GT"), one, zero), hlo.select(hlo.compare(x, zero, "LT"), one, zero)
    )


@lowers("aten::reciprocal")
def reciprocal(x: Value) -> Value:
    x = to_float(x)
    return hlo.divide(full(1, x), x)


@lowers("aten::exp2")
def exp2(x: Value) -> Value:
    x = to_float(x)
    return hlo.power(full(2, x), x)


def _scaled_log(base: float, x: Value) -> Value:
    def scaled(wide: Value) -> Value:
        return hlo.divide(hlo.log(wide), full(math.log(base), wide))

    return in_compute(scaled, to_float(x))


lowers("aten::log2")(partial(_scaled_log, 2.0))
lowers("aten::log10")(partial(_scaled_log, 10.0))


@lowers("aten::logit")
def logit(x: Value, eps: float | None) -> Value:
    def compute(wide: Value) -> Value:
        if eps is not None:
            # Not a clamp: with eps above 0.5 the bounds cross, and torch asks for the lower one first.
            low, high = full(eps, wide), full(1 - eps, wide)
            upper = hlo.select(hlo.compare(wide, high, "GT"), high, wide)
            wide = hlo.select(hlo.compare(wide, low, "LT"), low, upper)
        return hlo.log(hlo.divide(wide, hlo.subtract(full(1, wide), wide)))

    return in_compute(compute, to_float(x))


@lowers("aten::bitwise_not")
def bitwise_not(x: Value) -> Value:
    return hlo.not_(x)


def truth(x: Value) -> Value:
    """i1: not equal to zero; NaN is true."""
    return x if x.dtype == "i1" else hlo.compare(x, full(0, x), "NE")


@lowers("aten::logical_not")
def logical_not(x: Value) -> Value:
    return hlo.not_(x) if x.dtype == "i1" else hlo.compare(x, full(0, x), "EQ")


@lowers("aten::isnan")
def isnan(x: Value) -> Value:
    return hlo.compare(x, x, "NE") if is_float(x.dtype) else full(False, x, "i1")


@lowers("aten::isfinite")
def isfinite(x: Value) -> Value:
    return hlo.is_finite(x) if is_float(x.dtype) else full(True, x, "i1")


@lowers("aten::isinf")
def isinf(x: Value) -> Value:
    if not is_float(x.dtype):
        return full(False, x, "i1")
    return hlo.compare(hlo.abs(x), full(math.inf, x), "EQ")


def _is_infinity(value: float, x: Value) -> Value:
    return hlo.compare(x, full(value, x), "EQ") if is_float(x.dtype) else full(False, x, "i1")


lowers("aten::isposinf")(partial(_is_infinity, math.inf))
lowers("aten::isneginf")(partial(_is_infinity, -math.inf))


@lowers("aten::signbit")
def signbit(x: Value) -> Value:
    """True for negative numbers, -0.0 and NaNs whose sign is set."""
    if x.dtype in ("i1", "ui8"):
        return full(False, x, "i1")
    if is_float(x.dtype):
        x = hlo.convert(x, "f64") if x.dtype == "f64" else hlo.convert(x, "f32")
        x = hlo.bitcast_convert(x, "i64" if x.dtype == "f64" else "i32")
    return hlo.compare(x, full(0, x), "LT")


_LARGEST = {"f32": 3.4028234663852886e38, "f64": 1.7976931348623157e308, "f16": 65504.0, "bf16": 3.3895313892515355e38}


@lowers("aten::nan_to_num")
def nan_to_num(x: Value, nan: float | None, posinf: float | None, neginf: float | None) -> Value:
    if not is_float(x.dtype):
        return x
    largest = _LARGEST[x.dtype]
    high, low = largest if posinf is None else posinf, -largest if neginf is None else neginf
    result = hlo.select(isnan(x), full(nan or 0.0, x), x)
    result = hlo.select(hlo.compare(x, full(math.inf, x), "EQ"), full(high, x), result)
    return hlo.select(hlo.compare(x, full(-math.inf, x), "EQ"), full(low, x), result)


@lowers("aten::round.decimals")
def round_decimals(x: Value, decimals: int) -> Value:
    if not is_float(x.dtype):
        if decimals >= 0:
            return x
        raise Unsupported(f"aten::round.decimals of {x.dtype} to {decimals} places; floats work")
    scale = 10.0 ** abs(decimals)

    def compute(wide: Value) -> Value:
        factor = full(scale, wide)
        if decimals >= 0:
            return hlo.divide(hlo.round_nearest_even(hlo.multiply(wide, factor)), factor)
        return hlo.multiply(hlo.round_nearest_even(hlo.divide(wide, factor)), factor)

    return in_compute(compute, x)


def to_copy_dtype(x: Value, dtype: str) -> Value:
    """Change the element type as torch's copy does; float to uint8 goes through a wider integer, so that it wraps."""
    if dtype == "i1":
        return truth(x)
    if dtype == "ui8" and is_float(x.dtype):
        return hlo.convert(hlo.convert(x, "i32"), "ui8")
    return cast(x, dtype)
