"""Softmax, its logarithm, and their backward forms; computed in f32 and rounded once."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

import torch_neuronx_compile.stablehlo as hlo
from torch_neuronx_compile.lowering.promotion import compute_dtype, hlo_dtype
from torch_neuronx_compile.lowering.registry import lowers
from torch_neuronx_compile.lowering.shape import dimension, expand_reduced, full
from torch_neuronx_compile.stablehlo import Value


def along(function: Callable[..., Value], dim: int, *values: Value) -> Value:
    """function(values..., d) with a 0-d tensor treated as one of size 1."""
    d = dimension(dim, values[0].rank)
    if values[0].rank:
        return function(*values, d)
    return hlo.reshape(function(*(hlo.reshape(v, (1,)) for v in values), 0), ())


def spread(x: Value, body: str, d: int) -> Value:
    """The reduction of `x` along d, under the shape of `x`."""
    return expand_reduced(hlo.reduce(x, body, (d,)), (d,), x.shape)


def _softmax(x: Value, d: int) -> Value:
    exponentials = hlo.exponential(hlo.subtract(x, spread(x, "maximum", d)))
    return hlo.divide(exponentials, spread(exponentials, "add", d))


def _safe_softmax(x: Value, d: int) -> Value:
    """Softmax whose rows of nothing but -inf are zeros, not NaN."""
    masked = hlo.compare(spread(x, "maximum", d), full(-math.inf, x), "EQ")
    return hlo.select(masked, full(0, x), _softmax(x, d))


def _log_softmax(x: Value, d: int) -> Value:
    shifted = hlo.subtract(x, spread(x, "maximum", d))
    total = hlo.reduce(hlo.exponential(shifted), "add", (d,))
    return hlo.subtract(shifted, expand_reduced(hlo.log(total), (d,), x.shape))


def _softmax_backward(grad: Value, output: Value, d: int) -> Value:
    weighted = hlo.multiply(grad, output)
    return hlo.subtract(weighted, hlo.multiply(output, spread(weighted, "add", d)))


def _log_softmax_backward(grad: Value, output: Value, d: int) -> Value:
    return hlo.subtract(grad, hlo.multiply(hlo.exponential(output), spread(grad, "add", d)))


def _forward(function: Callable[..., Value]) -> Callable[[Value, int, bool], Value]:
    def row(x: Value, dim: int, half_to_float: bool) -> Value:
        wide = hlo.convert(x, compute_dtype(x.dtype))
        return hlo.convert(along(function, dim, wide), "f32" if half_to_float else x.dtype)

    return row


def _backward(function: Callable[..., Value]) -> Callable[[Value, Value, int, torch.dtype], Value]:
    def row(grad: Value, output: Value, dim: int, input_dtype: torch.dtype) -> Value:
        wide = compute_dtype(grad.dtype)
        result = along(function, dim, hlo.convert(grad, wide), hlo.convert(output, wide))
        return hlo.convert(result, hlo_dtype(input_dtype))

    return row


@lowers("aten::_safe_softmax")
def safe_softmax(x: Value, dim: int, dtype: torch.dtype | None) -> Value:
    result = x.dtype if dtype is None else hlo_dtype(dtype)
    wide = hlo.convert(hlo.convert(x, result), compute_dtype(result))
    return hlo.convert(along(_safe_softmax, dim, wide), result)


lowers("aten::_softmax")(_forward(_softmax))
lowers("aten::_log_softmax")(_forward(_log_softmax))
lowers("aten::_softmax_backward_data")(_backward(_softmax_backward))
lowers("aten::_log_softmax_backward_data")(_backward(_log_softmax_backward))
