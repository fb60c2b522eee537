"""Normalisations and their backward forms. Statistics are computed in f32, in two passes."""

from __future__ import annotations

from collections.abc import Sequence

import torch_neuronx_compile.stablehlo as hlo
from torch_neuronx_compile.dim import Size, product
from torch_neuronx_compile.lowering.promotion import compute_dtype
from torch_neuronx_compile.lowering.reduction import count_of, moments
from torch_neuronx_compile.lowering.registry import lowers
from torch_neuronx_compile.lowering.shape import expand_reduced, full, keep
from torch_neuronx_compile.stablehlo import TensorType, Value

Optional = Value | None


def _wide(x: Value) -> Value:
    return hlo.convert(x, compute_dtype(x.dtype))


def _sum(x: Value, dims: Sequence[int]) -> Value:
    return hlo.reduce(x, "add", dims) if dims else x


def _trailing(x: Value, shape: Sequence[Size]) -> Value:
    """A parameter of the normalised dimensions, under the input's shape."""
    return hlo.broadcast_in_dim(x, shape, range(len(shape) - x.rank, len(shape)))


def _inverse_deviation(variance: Value, eps: float) -> Value:
    return hlo.rsqrt(hlo.add(variance, full(eps, variance)))


@lowers("aten::native_layer_norm", outputs=True)
def layer_norm(x: Value, normalized_shape: Sequence[Size], weight: Optional, bias: Optional, eps: float,
               outputs: Sequence[TensorType]) -> tuple[Value, Value, Value]:  # fmt: skip
    """(normalised, mean, 1 / deviation), the statistics with the normalised dimensions as size 1."""
    dims = tuple(range(x.rank - len(normalized_shape), x.rank))
    wide = _wide(x)
    variance, mean = moments(wide, dims, 0)
    inverse = _inverse_deviation(variance, eps)
    result = hlo.multiply(
        hlo.subtract(wide, expand_reduced(mean, dims, x.shape)), expand_reduced(inverse, dims, x.shape)
    )
    if weight is not None:
        result = hlo.multiply(result, _trailing(hlo.convert(weight, wide.dtype), x.shape))
    if bias is not None:
        result = hlo.add(result, _trailing(hlo.convert(bias, wide.dtype), x.shape))
    statistics = [hlo.convert(keep(s, dims, x.rank), outputs[1].dtype) for s in (mean, inverse)]
    return hlo.convert(result, x.dtype), *statistics


def _input_gradient(grad: Value, normalised: Value, inverse: Value, dims: Sequence[int]) -> Value:
    """inverse * (grad - mean(grad) - normalised * mean(grad * normalised)), the means over `dims`."""
    shape = grad.shape
    first = _sum(grad, dims)
    second = _sum(hlo.multiply(grad, normalised), dims)
    count = full(count_of(grad, dims), first)
    first, second = (expand_reduced(hlo.divide(s, count), dims, shape) for s in (first, second))
    inner = hlo.subtract(hlo.subtract(grad, first), hlo.multiply(normalised, second))
    return hlo.multiply(expand_reduced(inverse, dims, shape), inner)


@lowers("aten::native_layer_norm_backward")
def layer_norm_backward(grad: Value, x: Value, normalized_shape: Sequence[Size], mean: Value, rstd: Value,
                        weight: Optional, bias: Optional, output_mask: Sequence[bool]) -> tuple[Optional, ...]:  # fmt: skip
    """Gradients of input, weight and bias; those that output_mask leaves out are None."""
    outer, dims = tuple(range(x.rank - len(normalized_shape))), tuple(range(x.rank - len(normalized_shape), x.rank))
    wide = compute_dtype(x.dtype)
    kept = tuple(x.shape[d] for d in outer)
    grad, source = hlo.convert(grad, wide), hlo.convert(x, wide)
    mean, inverse = (hlo.reshape(hlo.convert(s, wide), kept) for s in (mean, rstd))
    centred = hlo.subtract(source, expand_reduced(mean, dims, x.shape))
    normalised = hlo.multiply(centred, expand_reduced(inverse, dims, x.shape))
    results: list[Optional] = [None, None, None]
    if output_mask[0]:
        scaled = grad if weight is None else hlo.multiply(grad, _trailing(hlo.convert(weight, wide), x.shape))
        results[0] = hlo.convert(_input_gradient(scaled, normalised, inverse, dims), x.dtype)
    if output_mask[1] and weight is not None:
        results[1] = hlo.convert(_sum(hlo.multiply(grad, normalised), outer), weight.dtype)
    if output_mask[2] and bias is not None:
        results[2] = hlo.convert(_sum(grad, outer), bias.dtype)
    return tuple(results)


def _channels(x: Value, shape: Sequence[Size]) -> Value:
    """A value a channel (dimension 1), under the input's shape."""
    return hlo.broadcast_in_dim(x, shape, (1,))


def _all_but_channels(x: Value) -> tuple[int, ...]:
    return (0, *range(2, x.rank))


@lowers("aten::native_batch_norm", "aten::_native_batch_norm_legit_functional", outputs=True)
def batch_norm(x: Value, weight: Optional, bias: Optional, running_mean: Optional, running_var: Optional, training: bool,
               momentum: float, eps: float, outputs: Sequence[TensorType]) -> tuple[Optional, ...]:  # fmt: skip
    """(normalised, mean, 1 / deviation), then the new running statistics, if there are any.

    In training the statistics of the batch are used, and the running variance is updated with the unbiased one;
    otherwise the running ones are used, and the second and third results are those or empty, as torch asks (compiled, eager).
    """
    dims, wide = _all_but_channels(x), compute_dtype(x.dtype)
    source = hlo.convert(x, wide)
    new_mean, new_var = running_mean, running_var
    if training:
        variance, mean = moments(source, dims, 0)
        inverse = _inverse_deviation(variance, eps)
        count = count_of(x, dims)

        def updated(running: Optional, now: Value) -> Optional:
            if running is None:
                return None
            old = hlo.multiply(hlo.convert(running, wide), full(1 - momentum, now))
            return hlo.convert(hlo.add(hlo.multiply(now, full(momentum, now)), old), running.dtype)

        numerator, denominator = full(count, variance), full(count - 1, variance)
        new_mean = updated(running_mean, mean)
        new_var = updated(running_var, hlo.multiply(variance, hlo.divide(numerator, denominator)))
        saved: tuple[Value, Value] = (mean, inverse)
    else:
        assert running_mean is not None and running_var is not None
        mean = hlo.convert(running_mean, wide)
        inverse = _inverse_deviation(hlo.convert(running_var, wide), eps)
        saved = (mean, inverse) if outputs[1].shape[0] != 0 else (hlo.constant((), wide, (0,)),) * 2
    saved_type = outputs[1].dtype
    result = hlo.multiply(hlo.subtract(source, _channels(mean, x.shape)), _channels(inverse, x.shape))
    if weight is not None:
        result = hlo.multiply(result, _channels(hlo.convert(weight, wide), x.shape))
    if bias is not None:
        result = hlo.add(result, _channels(hlo.convert(bias, wide), x.shape))
    return hlo.convert(result, x.dtype), *(hlo.convert(s, saved_type) for s in saved), new_mean, new_var


@lowers("aten::_native_batch_norm_legit.no_stats", outputs=True)
def batch_norm_without_statistics(x: Value, weight: Optional, bias: Optional, training: bool, momentum: float,
                                  eps: float, outputs: Sequence[TensorType]) -> tuple[Optional, ...]:  # fmt: skip
    return batch_norm(x, weight, bias, None, None, True, momentum, eps, outputs)


@lowers("aten::_native_batch_norm_legit_no_training", outputs=True)
def batch_norm_inference(x: Value, weight: Optional, bias: Optional, running_mean: Value, running_var: Value,
                         momentum: float, eps: float, outputs: Sequence[TensorType]) -> tuple[Optional, ...]:  # fmt: skip
    return batch_norm(x, weight, bias, running_mean, running_var, False, momentum, eps, outputs)[:3]


@lowers("aten::native_batch_norm_backward")
def batch_norm_backward(grad: Value, x: Value, weight: Optional, running_mean: Optional, running_var: Optional,
                        save_mean: Optional, save_invstd: Optional, train: bool, eps: float,
                        output_mask: Sequence[bool]) -> tuple[Optional, ...]:  # fmt: skip
    """Gradients of input, weight and bias."""
    dims, wide = _all_but_channels(x), compute_dtype(x.dtype)
    if train:
        assert save_mean is not None and save_invstd is not None
        mean, inverse = hlo.convert(save_mean, wide), hlo.convert(save_invstd, wide)
    else:
        assert running_mean is not None and running_var is not None
        mean = hlo.convert(running_mean, wide)
        inverse = _inverse_deviation(hlo.convert(running_var, wide), eps)
    grad, source = hlo.convert(grad, wide), hlo.convert(x, wide)
    normalised = hlo.multiply(hlo.subtract(source, _channels(mean, x.shape)), _channels(inverse, x.shape))
    results: list[Optional] = [None, None, None]
    parameter_type = x.dtype if weight is None else weight.dtype
    if output_mask[0]:
        scaled = grad if weight is None else hlo.multiply(grad, _channels(hlo.convert(weight, wide), x.shape))
        if train:
            results[0] = _input_gradient(scaled, normalised, inverse, dims)
        else:
            results[0] = hlo.multiply(scaled, _channels(inverse, x.shape))
        results[0] = hlo.convert(results[0], x.dtype)
    if output_mask[1]:
        results[1] = hlo.convert(_sum(hlo.multiply(grad, normalised), dims), parameter_type)
    if output_mask[2]:
        results[2] = hlo.convert(_sum(grad, dims), parameter_type)
    return tuple(results)


def _grouped(x: Value, n: Size, groups: int) -> Value:
    """(N, C, ...) as (N, groups, elements of a group)."""
    return hlo.reshape(x, (n, groups, product(x.shape) // (n * groups)))


@lowers("aten::native_group_norm")
def group_norm(x: Value, weight: Optional, bias: Optional, n: Size, c: Size, hw: Size, groups: int,
               eps: float) -> tuple[Value, Value, Value]:  # fmt: skip
    """(normalised, mean, 1 / deviation) over groups of channels."""
    wide = _grouped(_wide(x), n, groups)
    variance, mean = moments(wide, (2,), 0)
    inverse = _inverse_deviation(variance, eps)
    centred = hlo.subtract(wide, expand_reduced(mean, (2,), wide.shape))
    result = hlo.reshape(hlo.multiply(centred, expand_reduced(inverse, (2,), wide.shape)), x.shape)
    if weight is not None:
        result = hlo.multiply(result, _channels(hlo.convert(weight, wide.dtype), x.shape))
    if bias is not None:
        result = hlo.add(result, _channels(hlo.convert(bias, wide.dtype), x.shape))
    return tuple(hlo.convert(v, x.dtype) for v in (result, mean, inverse))


@lowers("aten::native_group_norm_backward")
def group_norm_backward(grad: Value, x: Value, mean: Value, rstd: Value, weight: Optional, n: Size, c: Size, hw: Size,
                        groups: int, output_mask: Sequence[bool]) -> tuple[Optional, ...]:  # fmt: skip
    """Gradients of input, weight and bias."""
    wide = compute_dtype(x.dtype)
    dims = _all_but_channels(x)
    grad, source = hlo.convert(grad, wide), _grouped(hlo.convert(x, wide), n, groups)
    mean, inverse = hlo.convert(mean, wide), hlo.convert(rstd, wide)
    centred = hlo.subtract(source, expand_reduced(mean, (2,), source.shape))
    normalised = hlo.multiply(centred, expand_reduced(inverse, (2,), source.shape))
    results: list[Optional] = [None, None, None]
    if output_mask[0]:
        scaled = grad if weight is None else hlo.multiply(grad, _channels(hlo.convert(weight, wide), x.shape))
        inner = _input_gradient(_grouped(scaled, n, groups), normalised, inverse, (2,))
        results[0] = hlo.convert(hlo.reshape(inner, x.shape), x.dtype)
    if output_mask[1]:
        products = hlo.multiply(grad, hlo.reshape(normalised, x.shape))
        results[1] = hlo.convert(_sum(products, dims), x.dtype if weight is None else weight.dtype)
    if output_mask[2]:
        results[2] = hlo.convert(_sum(grad, dims), x.dtype if weight is None else weight.dtype)
    return tuple(results)
