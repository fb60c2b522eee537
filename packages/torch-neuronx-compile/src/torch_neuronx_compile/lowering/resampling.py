"""Padding by the tensor's own elements, nearest-neighbour resizing, and moving channels into space and back."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch_neuronx_compile.stablehlo as hlo
from torch_neuronx_compile.dim import Size
from torch_neuronx_compile.lowering.indexing import take_rows
from torch_neuronx_compile.lowering.promotion import compute_dtype
from torch_neuronx_compile.lowering.registry import lowers
from torch_neuronx_compile.lowering.shape import full
from torch_neuronx_compile.stablehlo import Value


def _amounts(padding: Sequence[int]) -> list[tuple[int, int]]:
    """(from the last dimension, low, high), last dimension first."""
    return [(padding[2 * n], padding[2 * n + 1]) for n in range(len(padding) // 2)]


def _source(mode: str, size: Size, low: int, high: int) -> Value:
    """i64: for each element of the padded dimension the element that it repeats."""
    length = size + low + high
    index = hlo.iota((length,), "i64", 0)
    place = hlo.subtract(index, full(low, index))
    last = full(size - 1, place)
    if mode == "reflection":
        return hlo.subtract(last, hlo.abs(hlo.subtract(last, hlo.abs(place))))
    return hlo.minimum(hlo.maximum(place, full(0, place)), last)


def _pad(mode: str, x: Value, padding: Sequence[int]) -> Value:
    for number, (low, high) in enumerate(_amounts(padding)):
        d = x.rank - 1 - number
        if low or high:
            x = take_rows(x, _source(mode, x.shape[d], low, high), d)
    return x


def _pad_backward(mode: str, grad: Value, x: Value, padding: Sequence[int]) -> Value:
    """Gradients of the copies added, in f32, to the elements that were copied."""
    wide = hlo.convert(grad, compute_dtype(grad.dtype))
    for number, (low, high) in enumerate(_amounts(padding)):
        d = x.rank - 1 - number
        if not low and not high:
            continue
        shape = (*wide.shape[:d], x.shape[d], *wide.shape[d + 1 :])
        zeros = hlo.broadcast_in_dim(hlo.constant(0, wide.dtype), shape, ())
        wide = hlo.scatter(
            zeros, _source(mode, x.shape[d], low, high), wide, body="add",
            update_window_dims=[i for i in range(x.rank) if i != d], inserted_window_dims=(d,),
            scatter_dims_to_operand_dims=(d,), index_vector_dim=1,
        )  # fmt: skip
    return hlo.convert(wide, x.dtype)


for _mode in ("reflection", "replication"):
    for _rank in (1, 2, 3):
        lowers(f"aten::{_mode}_pad{_rank}d")(partial(_pad, _mode))
        lowers(f"aten::{_mode}_pad{_rank}d_backward")(partial(_pad_backward, _mode))


def _nearest(x: Value, output_size: Sequence[int], *scales: float | None) -> Value:
    """Each element of the result is the input's at floor(index * scale)."""
    first = x.rank - len(output_size)
    for number, (length, scale) in enumerate(zip(output_size, scales, strict=True)):
        d = first + number
        index = hlo.iota((length,), "i64", 0)
        position = hlo.convert(index, "f32")
        if scale is None or scale <= 0:
            step = hlo.divide(full(x.shape[d], position), full(length, position))
        else:
            step = full(1.0 / scale, position)
        source = hlo.convert(hlo.floor(hlo.multiply(position, step)), "i64")
        x = take_rows(x, hlo.minimum(source, full(x.shape[d] - 1, index)), d)
    return x


for _rank in (1, 2, 3):
    lowers(f"aten::upsample_nearest{_rank}d")(_nearest)


@lowers("aten::pixel_shuffle")
def pixel_shuffle(x: Value, factor: int) -> Value:
    """(..., C r r, H, W) -> (..., C, H r, W r)."""
    *lead, channels, height, width = x.shape
    split = hlo.reshape(x, (*lead, channels // (factor * factor), factor, factor, height, width))
    n = len(lead)
    turned = hlo.transpose(split, (*range(n), n, n + 3, n + 1, n + 4, n + 2))
    return hlo.reshape(turned, (*lead, channels // (factor * factor), height * factor, width * factor))


@lowers("aten::pixel_unshuffle")
def pixel_unshuffle(x: Value, factor: int) -> Value:
    """(..., C, H r, W r) -> (..., C r r, H, W)."""
    *lead, channels, height, width = x.shape
    split = hlo.reshape(x, (*lead, channels, height // factor, factor, width // factor, factor))
    n = len(lead)
    turned = hlo.transpose(split, (*range(n), n, n + 2, n + 4, n + 1, n + 3))
    return hlo.reshape(turned, (*lead, channels * factor * factor, height // factor, width // factor))


@lowers("aten::channel_shuffle")
def channel_shuffle(x: Value, groups: int) -> Value:
    batch, channels, *space = x.shape
    split = hlo.reshape(x, (batch, groups, channels // groups, *space))
    return hlo.reshape(hlo.transpose(split, (0, 2, 1, *range(3, split.rank))), x.shape)
