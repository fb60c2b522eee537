"""Element-wise operations: every operand has the result's shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch_neuronx_compile.stablehlo.ops import OpSpec, check_count, check_kinds, define, kinds_in_words, make, refuse
from torch_neuronx_compile.stablehlo.value import DTYPES, TensorType, Value

DIRECTIONS = ("EQ", "NE", "LT", "LE", "GT", "GE")

_BITS = {"f64": 64, "f32": 32, "bf16": 16, "f16": 16, "i1": 1, "ui8": 8, "i8": 8, "i16": 16, "i32": 32, "i64": 64}


def _unary(spec: OpSpec, operands: tuple[Value, ...], attributes: Mapping[str, Any]) -> tuple[TensorType, ...]:
    check_count(spec, operands, 1)
    check_kinds(spec, operands)
    return (operands[0].type,)


def _binary(spec: OpSpec, operands: tuple[Value, ...], attributes: Mapping[str, Any]) -> tuple[TensorType, ...]:
    if len(operands) != 2 or operands[0].type != operands[1].type:
        raise refuse(spec, operands, f"two tensors of one type ({kinds_in_words(spec.accepts)})")
    check_kinds(spec, operands)
    return (operands[0].type,)


def _is_finite(spec: OpSpec, operands: tuple[Value, ...], attributes: Mapping[str, Any]) -> tuple[TensorType, ...]:
    check_count(spec, operands, 1)
    check_kinds(spec, operands)
    return (TensorType(operands[0].shape, "i1"),)


def _compare(spec: OpSpec, operands: tuple[Value, ...], attributes: Mapping[str, Any]) -> tuple[TensorType, ...]:
    (result,) = _binary(spec, operands, attributes)
    if attributes["direction"] not in DIRECTIONS:
        raise refuse(spec, operands, f"direction {', '.join(DIRECTIONS)}, not {attributes['direction']!r}")
    return (TensorType(result.shape, "i1"),)


def _select(spec: OpSpec, operands: tuple[Value, ...], attributes: Mapping[str, Any]) -> tuple[TensorType, ...]:
    check_count(spec, operands, 3)
    predicate, on_true, on_false = operands
    if predicate.dtype != "i1" or on_true.type != on_false.type or predicate.shape not in ((), on_true.shape):
        raise refuse(spec, operands, "an i1 tensor (of rank 0 or of the result's shape) and two tensors of one type")
    return (on_true.type,)


def _clamp(spec: OpSpec, operands: tuple[Value, ...], attributes: Mapping[str, Any]) -> tuple[TensorType, ...]:
    check_count(spec, operands, 3)
    check_kinds(spec, operands)
    low, value, high = operands
    bounds_fit = all(b.dtype == value.dtype and b.shape in ((), value.shape) for b in (low, high))
    if not bounds_fit:
        raise refuse(
            spec, operands, "(low, value, high) of one element type, the bounds of rank 0 or of the value's shape"
        )
    return (value.type,)


def _convert(spec: OpSpec, operands: tuple[Value, ...], attributes: Mapping[str, Any]) -> tuple[TensorType, ...]:
    check_count(spec, operands, 1)
    if attributes["dtype"] not in DTYPES:
        raise refuse(spec, operands, f"a target among {', '.join(DTYPES)}, not {attributes['dtype']!r}")
    return (TensorType(operands[0].shape, attributes["dtype"]),)


def _bitcast(spec: OpSpec, operands: tuple[Value, ...], attributes: Mapping[str, Any]) -> tuple[TensorType, ...]:
    (result,) = _convert(spec, operands, attributes)
    if _BITS[result.dtype] != _BITS[operands[0].dtype]:
        raise refuse(spec, operands, f"an element type as wide as {result.dtype}")
    return (result,)


for _name, _accepts in {
    "abs": "fi", "negate": "fi", "sign": "fi", "not": "ib", "floor": "f", "ceil": "f", "round_nearest_even": "f",
    "exponential": "f", "exponential_minus_one": "f", "log": "f", "log_plus_one": "f", "sqrt": "f", "rsqrt": "f",
    "tanh": "f", "logistic": "f", "sine": "f", "cosine": "f", "tan": "f",
}.items():  # fmt: skip
    define(_name, f"stablehlo.{_name}", _unary, _accepts, style="same_type")
for _name in (
    "erf",
    "erfc",
    "erf_inv",
    "lgamma",
    "digamma",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "asinh",
    "acosh",
    "atanh",
):
    define(_name, f"chlo.{_name}", _unary, "f", style="generic")
for _name, _accepts in {
    "add": "fib", "subtract": "fi", "multiply": "fib", "divide": "fi", "remainder": "fi", "power": "fi",
    "maximum": "fib", "minimum": "fib", "atan2": "f", "and": "ib", "or": "ib", "xor": "ib",
    "shift_left": "i", "shift_right_arithmetic": "i", "shift_right_logical": "i",
}.items():  # fmt: skip
    define(_name, f"stablehlo.{_name}", _binary, _accepts, style="same_type")
define("is_finite", "stablehlo.is_finite", _is_finite, "f", style="arrow")
define("compare", "stablehlo.compare", _compare, attributes=("direction",), style="compare")
define("select", "stablehlo.select", _select, style="generic")
define("clamp", "stablehlo.clamp", _clamp, "fi", style="generic")
define("convert", "stablehlo.convert", _convert, attributes=("dtype",), style="arrow")
define("bitcast_convert", "stablehlo.bitcast_convert", _bitcast, attributes=("dtype",), style="arrow")


def unary(name: str, x: Value) -> Value:
    """Apply a one-operand operation by its name in the table, for example "tanh" or "erf"."""
    return make(name, (x,))


def binary(name: str, x: Value, y: Value) -> Value:
    """Apply a two-operand operation by its name in the table, for example "add"; both operands have one type."""
    return make(name, (x, y))


def _unary_function(name: str):
    def function(x: Value) -> Value:
        return make(name, (x,))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Element-wise `{name}`; the result has the operand's type."
    return function


def _binary_function(name: str):
    def function(x: Value, y: Value) -> Value:
        return make(name, (x, y))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Element-wise `{name}` of two tensors of one type."
    return function


abs = _unary_function("abs")
negate = _unary_function("negate")
sign = _unary_function("sign")
not_ = _unary_function("not")
floor = _unary_function("floor")
ceil = _unary_function("ceil")
round_nearest_even = _unary_function("round_nearest_even")
exponential = _unary_function("exponential")
exponential_minus_one = _unary_function("exponential_minus_one")
log = _unary_function("log")
log_plus_one = _unary_function("log_plus_one")
sqrt = _unary_function("sqrt")
rsqrt = _unary_function("rsqrt")
tanh = _unary_function("tanh")
logistic = _unary_function("logistic")
sine = _unary_function("sine")
cosine = _unary_function("cosine")
tan = _unary_function("tan")
erf = _unary_function("erf")
erfc = _unary_function("erfc")
erf_inv = _unary_function("erf_inv")
add = _binary_function("add")
subtract = _binary_function("subtract")
multiply = _binary_function("multiply")
divide = _binary_function("divide")
remainder = _binary_function("remainder")
power = _binary_function("power")
maximum = _binary_function("maximum")
minimum = _binary_function("minimum")
atan2 = _binary_function("atan2")
and_ = _binary_function("and")
or_ = _binary_function("or")
xor = _binary_function("xor")
shift_left = _binary_function("shift_left")
shift_right_arithmetic = _binary_function("shift_right_arithmetic")
shift_right_logical = _binary_function("shift_right_logical")


def is_finite(x: Value) -> Value:
    """i1: neither an infinity nor NaN."""
    return make("is_finite", (x,))


def compare(x: Value, y: Value, direction: str) -> Value:
    """i1 of x `direction` y; direction: EQ, NE, LT, LE, GT or GE. Comparisons with NaN are false, NE is true."""
    return make("compare", (x, y), {"direction": direction})


def select(predicate: Value, on_true: Value, on_false: Value) -> Value:
    """Per element on_true where the i1 predicate (of rank 0 or of their shape) holds, else on_false."""
    return make("select", (predicate, on_true, on_false))


def clamp(low: Value, value: Value, high: Value) -> Value:
    """min(max(value, low), high); the bounds have rank 0 or the value's shape. NaN stays NaN."""
    return make("clamp", (low, value, high))


def convert(x: Value, dtype: str) -> Value:
    """Change the element type: floats to nearest even, float to integer toward zero, to i1: not equal to zero.

    Returns `x` itself when it has that element type.
    """
    return x if x.dtype == dtype else make("convert", (x,), {"dtype": dtype})


def bitcast_convert(x: Value, dtype: str) -> Value:
    """Read the same bits as another element type of the same width."""
    return make("bitcast_convert", (x,), {"dtype": dtype})
