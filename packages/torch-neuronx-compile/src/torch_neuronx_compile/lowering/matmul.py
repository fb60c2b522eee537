"""Matrix products: accumulated in f32 (floats) or exactly, rounded once, additions included."""

from __future__ import annotations

import torch_neuronx_compile.stablehlo as hlo
from torch_neuronx_compile.lowering.promotion import Number, cast, compute_dtype
from torch_neuronx_compile.lowering.registry import lowers
from torch_neuronx_compile.lowering.shape import broadcast_to, full
from torch_neuronx_compile.stablehlo import Value


def product(x: Value, y: Value, dtype: str) -> Value:
    """Matrix product of two matrices, or of two batches of them; vectors contract their only dimension."""
    batch = tuple(range(min(x.rank, y.rank) - 2))
    return hlo.dot_general(x, y, batch=(batch, batch), contracting=((x.rank - 1,), (max(y.rank - 2, 0),)), dtype=dtype)


@lowers("aten::mm", "aten::bmm", "aten::mv", "aten::dot", "aten::vdot")
def mm(x: Value, y: Value) -> Value:
    return product(x, y, x.dtype)


def _scaled(x: Value, factor: Number) -> Value:
    return x if factor == 1 else hlo.multiply(x, full(factor, x))


def _scaled_product(x: Value, factor: Number) -> Value:
    """As in BLAS, a factor of 0 gives zeros whatever the product holds."""
    return full(0, x) if factor == 0 else _scaled(x, factor)


@lowers("aten::addmm", "aten::baddbmm", "aten::addmv")
def addmm(x: Value, a: Value, b: Value, beta: Number = 1, alpha: Number = 1) -> Value:
    """beta * x + alpha * (a @ b); with beta 0, NaNs of `x` do not count."""
    wide = compute_dtype(a.dtype)
    result = _scaled_product(product(a, b, wide), alpha)
    if beta != 0:
        result = hlo.add(broadcast_to(_scaled(cast(x, wide), beta), result.shape), result)
    return cast(result, a.dtype)


@lowers("aten::addbmm")
def addbmm(x: Value, a: Value, b: Value, beta: Number = 1, alpha: Number = 1) -> Value:
    """beta * x + alpha * sum over the batch of a @ b: one product that contracts the batch too."""
    wide = compute_dtype(a.dtype)
    result = _scaled_product(hlo.dot_general(a, b, contracting=((0, 2), (0, 1)), dtype=wide), alpha)
    if beta != 0:
        result = hlo.add(broadcast_to(_scaled(cast(x, wide), beta), result.shape), result)
    return cast(result, a.dtype)


@lowers("aten::addr")
def addr(x: Value, a: Value, b: Value, beta: Number = 1, alpha: Number = 1) -> Value:
    """beta * x + alpha * outer(a, b)."""
    wide = compute_dtype(a.dtype)
    shape = (a.shape[0], b.shape[0])
    left = hlo.broadcast_in_dim(_scaled(cast(a, wide), alpha), shape, (0,))
    result = hlo.multiply(left, hlo.broadcast_in_dim(cast(b, wide), shape, (1,)))
    if beta != 0:
        result = hlo.add(broadcast_to(_scaled(cast(x, wide), beta), result.shape), result)
    return cast(result, a.dtype)
