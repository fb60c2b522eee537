"""Selection, bounds and fused arithmetic of three operands."""

from __future__ import annotations

import torch_neuronx_compile.stablehlo as hlo
from torch_neuronx_compile.lowering.binary import apply_wide, is_one
from torch_neuronx_compile.lowering.promotion import Operand, cast, result_type
from torch_neuronx_compile.lowering.registry import lowers
from torch_neuronx_compile.lowering.shape import broadcast, full
from torch_neuronx_compile.lowering.unary import truth
from torch_neuronx_compile.stablehlo import Value


@lowers("aten::where.self")
@lowers("aten::where.ScalarOther", operands=("other",))
@lowers("aten::where.ScalarSelf", operands=("self",))
@lowers("aten::where.Scalar", operands=("self", "other"))
def where(condition: Value, x: Operand, y: Operand) -> Value:
    dtype = result_type(x, y)
    return hlo.select(*broadcast(truth(condition), cast(x, dtype), cast(y, dtype)))


@lowers("aten::masked_fill.Scalar", operands=("value",))
@lowers("aten::masked_fill.Tensor")
def masked_fill(x: Value, mask: Value, value: Operand) -> Value:
    return hlo.select(*broadcast(truth(mask), cast(value, x.dtype), x))


def _bound(x: Value, bound: Operand, direction: str) -> Value:
    """The bound where x lies beyond it ("LT": a lower bound), else x itself, also where they are zeros of different sign."""
    if isinstance(bound, Value):
        return hlo.binary("maximum" if direction == "LT" else "minimum", *broadcast(x, cast(bound, x.dtype)))
    limit = full(bound, x)
    return limit if bound != bound else hlo.select(hlo.compare(x, limit, direction), limit, x)


def bounded(x: Value, low: Operand | None, high: Operand | None) -> Value:
    """min(max(x, low), high) in the common type; NaN anywhere gives NaN."""
    result = cast(x, result_type(*(v for v in (x, low, high) if v is not None)))
    if low is not None:
        result = _bound(result, low, "LT")
    return result if high is None else _bound(result, high, "GT")


@lowers("aten::clamp", "aten::clamp.Tensor")
def clamp(x: Value, low: Operand | None = None, high: Operand | None = None) -> Value:
    return bounded(x, low, high)


@lowers("aten::clamp_min", "aten::clamp_min.Tensor")
def clamp_min(x: Value, low: Operand) -> Value:
    return bounded(x, low, None)


@lowers("aten::clamp_max", "aten::clamp_max.Tensor")
def clamp_max(x: Value, high: Operand) -> Value:
    return bounded(x, None, high)


@lowers("aten::lerp.Tensor")
@lowers("aten::lerp.Scalar", operands=("weight",))
def lerp(x: Value, end: Value, weight: Operand) -> Value:
    """x + weight * (end - x), written from the nearer end so that weights 0 and 1 are exact."""

    def compute(a: Value, b: Value, w: Value) -> Value:
        distance = hlo.subtract(b, a)
        near = hlo.compare(hlo.abs(w), full(0.5, w), "LT")
        from_start = hlo.add(a, hlo.multiply(w, distance))
        from_end = hlo.subtract(b, hlo.multiply(distance, hlo.subtract(full(1, w), w)))
        return hlo.select(near, from_start, from_end)

    return apply_wide(compute, x.dtype, x, end, weight)


@lowers("aten::addcmul", operands=("value",))
def addcmul(x: Value, a: Value, b: Value, value: Operand = 1) -> Value:
    """x + value * a * b."""
    dtype = result_type(x, a, b)
    if is_one(value):
        return apply_wide(lambda x, a, b: hlo.add(x, hlo.multiply(a, b)), dtype, x, a, b)
    return apply_wide(lambda x, a, b, v: hlo.add(x, hlo.multiply(hlo.multiply(v, a), b)), dtype, x, a, b, value)


@lowers("prims::fma")
def fma(a: Value, b: Value, c: Value) -> Value:
    """a * b + c, which Dynamo writes for a product and a sum of one optimizer step. Here the product is rounded, as
    everywhere on the device."""
    return apply_wide(lambda a, b, c: hlo.add(hlo.multiply(a, b), c), a.dtype, a, b, c)


@lowers("aten::addcdiv", operands=("value",))
def addcdiv(x: Value, a: Value, b: Value, value: Operand = 1) -> Value:
    """x + value * a / b."""
    dtype = result_type(x, a, b)
    if is_one(value):
        return apply_wide(lambda x, a, b: hlo.add(x, hlo.divide(a, b)), dtype, x, a, b)
    return apply_wide(lambda x, a, b, v: hlo.add(x, hlo.divide(hlo.multiply(v, a), b)), dtype, x, a, b, value)
