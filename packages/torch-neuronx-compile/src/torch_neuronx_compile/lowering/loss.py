"""Loss functions and their backward forms. reduction: 0 none, 1 mean, 2 sum."""

from __future__ import annotations

from collections.abc import Callable

import torch_neuronx_compile.stablehlo as hlo
from torch_neuronx_compile.dim import product
from torch_neuronx_compile.lowering.indexing import gather, take_rows
from torch_neuronx_compile.lowering.promotion import compute_dtype, result_type
from torch_neuronx_compile.lowering.registry import lowers
from torch_neuronx_compile.lowering.shape import broadcast, broadcast_to, full
from torch_neuronx_compile.stablehlo import Value

NONE, MEAN, SUM = 0, 1, 2


def _reduce(x: Value, reduction: int) -> Value:
    if reduction == NONE:
        return x
    total = hlo.reduce(x, "add", range(x.rank)) if x.rank else x
    return hlo.divide(total, full(product(x.shape), total)) if reduction == MEAN else total


def _elementwise(function: Callable[..., Value], reduction: int, *values: Value) -> Value:
    """The reduced loss of two or more tensors, in f32, rounded once."""
    dtype = result_type(*values)
    wide = compute_dtype(dtype)
    return hlo.convert(_reduce(function(*broadcast(*(hlo.convert(v, wide) for v in values))), reduction), dtype)


def _gradient(function: Callable[..., Value], reduction: int, grad: Value, *values: Value) -> Value:
    """grad * function(values...), divided by the number of elements for a mean."""
    dtype = result_type(*values)
    wide = compute_dtype(dtype)
    converted = broadcast(*(hlo.convert(v, wide) for v in values))
    slope = function(*converted)
    if reduction == MEAN:
        slope = hlo.divide(slope, full(product(slope.shape), slope))
    return hlo.convert(hlo.multiply(slope, broadcast_to(hlo.convert(grad, wide), slope.shape)), dtype)


@lowers("aten::mse_loss")
def mse_loss(x: Value, target: Value, reduction: int = MEAN) -> Value:
    def loss(a: Value, b: Value) -> Value:
        difference = hlo.subtract(a, b)
        return hlo.multiply(difference, difference)

    return _elementwise(loss, reduction, x, target)


@lowers("aten::mse_loss_backward")
def mse_loss_backward(grad: Value, x: Value, target: Value, reduction: int) -> Value:
    return _gradient(lambda a, b: hlo.multiply(hlo.subtract(a, b), full(2, a)), reduction, grad, x, target)


@lowers("aten::smooth_l1_loss")
def smooth_l1_loss(x: Value, target: Value, reduction: int = MEAN, beta: float = 1.0) -> Value:
    def loss(a: Value, b: Value) -> Value:
        distance = hlo.abs(hlo.subtract(a, b))
        if beta == 0:
            return distance
        square = hlo.divide(hlo.multiply(hlo.multiply(full(0.5, a), distance), distance), full(beta, a))
        near = hlo.compare(distance, full(beta, a), "LT")
        return hlo.select(near, square, hlo.subtract(distance, full(0.5 * beta, a)))

    return _elementwise(loss, reduction, x, target)


@lowers("aten::smooth_l1_loss_backward")
def smooth_l1_loss_backward(grad: Value, x: Value, target: Value, reduction: int, beta: float) -> Value:
    def slope(a: Value, b: Value) -> Value:
        difference = hlo.subtract(a, b)
        if beta == 0:
            return hlo.sign(difference)
        near = hlo.compare(hlo.abs(difference), full(beta, a), "LT")
        return hlo.select(near, hlo.divide(difference, full(beta, a)), hlo.sign(difference))

    return _gradient(slope, reduction, grad, x, target)


@lowers("aten::huber_loss")
def huber_loss(x: Value, target: Value, reduction: int = MEAN, delta: float = 1.0) -> Value:
    def loss(a: Value, b: Value) -> Value:
        distance = hlo.abs(hlo.subtract(a, b))
        square = hlo.multiply(hlo.multiply(full(0.5, a), distance), distance)
        line = hlo.multiply(full(delta, a), hlo.subtract(distance, full(0.5 * delta, a)))
        return hlo.select(hlo.compare(distance, full(delta, a), "LE"), square, line)

    return _elementwise(loss, reduction, x, target)


@lowers("aten::huber_loss_backward")
def huber_loss_backward(grad: Value, x: Value, target: Value, reduction: int, delta: float) -> Value:
    def slope(a: Value, b: Value) -> Value:
        difference = hlo.subtract(a, b)
        return hlo.maximum(hlo.minimum(difference, full(delta, a)), full(-delta, a))

    return _gradient(slope, reduction, grad, x, target)


@lowers("aten::binary_cross_entropy")
def binary_cross_entropy(x: Value, target: Value, weight: Value | None = None, reduction: int = MEAN) -> Value:
    """Logarithms are bounded by -100 below."""

    def loss(a: Value, b: Value, *w: Value) -> Value:
        bound = full(-100, a)
        yes, no = hlo.maximum(hlo.log(a), bound), hlo.maximum(hlo.log_plus_one(hlo.negate(a)), bound)
        result = hlo.subtract(hlo.multiply(hlo.subtract(b, full(1, b)), no), hlo.multiply(b, yes))
        return hlo.multiply(result, w[0]) if w else result

    return _elementwise(loss, reduction, x, target, *(() if weight is None else (weight,)))


@lowers("aten::binary_cross_entropy_backward")
def binary_cross_entropy_backward(grad: Value, x: Value, target: Value, weight: Value | None = None,
                                  reduction: int = MEAN) -> Value:  # fmt: skip
    def slope(a: Value, b: Value, *w: Value) -> Value:
        spread = hlo.maximum(hlo.multiply(hlo.subtract(full(1, a), a), a), full(1e-12, a))
        result = hlo.divide(hlo.subtract(a, b), spread)
        return hlo.multiply(result, w[0]) if w else result

    return _gradient(slope, reduction, grad, x, target, *(() if weight is None else (weight,)))


@lowers("aten::binary_cross_entropy_with_logits")
def binary_cross_entropy_with_logits(x: Value, target: Value, weight: Value | None = None,
                                     pos_weight: Value | None = None, reduction: int = MEAN) -> Value:  # fmt: skip
    """(1 - t) * x + (1 + (pos_weight - 1) * t) * log(1 + exp(-x))."""
    extra = [w for w in (weight, pos_weight) if w is not None]

    def loss(a: Value, b: Value, *w: Value) -> Value:
        negative_part = hlo.maximum(hlo.negate(a), full(0, a))
        curve = hlo.add(hlo.log_plus_one(hlo.exponential(hlo.negate(hlo.abs(a)))), negative_part)
        if pos_weight is not None:
            factor = hlo.add(hlo.multiply(hlo.subtract(w[-1], full(1, b)), b), full(1, b))
            curve = hlo.multiply(curve, factor)
        result = hlo.add(hlo.multiply(hlo.subtract(full(1, b), b), a), curve)
        return hlo.multiply(result, w[0]) if weight is not None else result

    return _elementwise(loss, reduction, x, target, *extra)


# Negative log likelihood: classes are dimension 1, or the only dimension.


def _class_weights(x: Value, target: Value, weight: Value | None, ignore_index: int, wide: str) -> tuple[Value, Value]:
    """(weight of each target, 0 for the ignored; targets with the ignored ones replaced by class 0)."""
    kept = hlo.compare(target, full(ignore_index, target), "NE")
    safe = hlo.select(kept, target, full(0, target))
    if weight is None:
        return hlo.convert(kept, wide), safe
    picked = take_rows(hlo.convert(weight, wide), safe, 0)
    return hlo.select(kept, picked, full(0, picked)), safe


@lowers("aten::nll_loss_forward", "aten::nll_loss2d_forward")
def nll_loss(x: Value, target: Value, weight: Value | None, reduction: int, ignore_index: int) -> tuple[Value, Value]:
    """(loss, sum of the targets' weights; 0 without reduction, except for a single target)."""
    d = 1 if x.rank > 1 else 0
    wide = compute_dtype(x.dtype)
    weights, safe = _class_weights(x, target, weight, ignore_index, wide)
    index = hlo.reshape(safe, (*target.shape[:d], 1, *target.shape[d:]))
    picked = hlo.reshape(hlo.convert(gather(x, d, index), wide), target.shape)
    kept = hlo.compare(target, full(ignore_index, target), "NE")
    losses = hlo.select(kept, hlo.negate(hlo.multiply(picked, weights)), full(0, picked))
    if reduction == NONE and target.rank:
        return hlo.convert(losses, x.dtype), hlo.constant(0, x.dtype)
    everything = range(target.rank)
    total, total_weight = (hlo.reduce(v, "add", everything) if target.rank else v for v in (losses, weights))
    if reduction == MEAN:
        total = hlo.divide(total, total_weight)
    return hlo.convert(total, x.dtype), hlo.convert(total_weight, x.dtype)


@lowers("aten::nll_loss_backward", "aten::nll_loss2d_backward")
def nll_loss_backward(grad: Value, x: Value, target: Value, weight: Value | None, reduction: int, ignore_index: int,
                      total_weight: Value) -> Value:  # fmt: skip
    """-weight * grad at each target's class, zeros elsewhere."""
    d = 1 if x.rank > 1 else 0
    wide = compute_dtype(x.dtype)
    weights, _ = _class_weights(x, target, weight, ignore_index, wide)
    slope = hlo.negate(hlo.multiply(weights, broadcast_to(hlo.convert(grad, wide), target.shape)))
    if reduction == MEAN:
        slope = hlo.divide(slope, broadcast_to(hlo.convert(total_weight, wide), slope.shape))
    others = [i for i in range(x.rank) if i != d]
    classes = hlo.iota(x.shape, target.dtype, d)
    chosen = hlo.compare(classes, hlo.broadcast_in_dim(target, x.shape, others), "EQ")
    spread = hlo.broadcast_in_dim(slope, x.shape, others)
    return hlo.convert(hlo.select(chosen, spread, full(0, spread)), x.dtype)
