"""Pooling over the last two dimensions: a window is the combination of kernel-size many strided slices."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch_neuronx_compile.stablehlo as hlo
from torch_neuronx_compile.dim import Size
from torch_neuronx_compile.lowering.indexing import scatter_elements
from torch_neuronx_compile.lowering.promotion import compute_dtype, is_float
from torch_neuronx_compile.lowering.registry import Unsupported, lowers
from torch_neuronx_compile.lowering.shape import expand_reduced, full
from torch_neuronx_compile.stablehlo import Value

Pair = tuple[int, int]


def _pair(values: Sequence[int], default: Sequence[int] = ()) -> Pair:
    values = values or default
    return (values[0], values[0]) if len(values) == 1 else (values[0], values[1])


class Windows:
    """Positions of the windows: output sizes, and what has to be padded at the end so that all windows fit."""

    def __init__(self, x: Value, kernel: Pair, stride: Pair, padding: Pair, dilation: Pair, ceil_mode: bool):
        self.kernel, self.stride, self.padding, self.dilation = kernel, stride, padding, dilation
        self.lead = x.shape[:-2]
        self.size = x.shape[-2:]
        self.out: list[Size] = []
        self.tail: list[Size] = []
        for size, k, s, p, d in zip(self.size, kernel, stride, padding, dilation, strict=True):
            span = d * (k - 1) + 1
            if ceil_mode:
                size = int(size)
                count = -(-(size + 2 * p - span) // s) + 1
                count -= (
                    count - 1
                ) * s >= size + p  # the last window must start inside of the input or its left padding
            else:
                count = (size + 2 * p - span) // s + 1
            self.out.append(count)
            over = (count - 1) * s + span - size - p  # elements needed behind the input
            self.tail.append(max(0, over) if isinstance(over, int) else p)

    def padded(self, x: Value, value: float) -> Value:
        """The input with its padding."""
        zeros = (0,) * len(self.lead)
        return hlo.pad(x, hlo.constant(value, x.dtype), (*zeros, *self.padding), (*zeros, *self.tail))

    def offsets(self) -> Iterator[Pair]:
        """Positions in a window, in row-major order."""
        return ((i, j) for i in range(self.kernel[0]) for j in range(self.kernel[1]))

    def slice(self, padded: Value, offset: Pair) -> Value:
        """The elements at one position of every window."""
        starts = [o * d for o, d in zip(offset, self.dilation, strict=True)]
        limits = [a + (n - 1) * s + 1 for a, n, s in zip(starts, self.out, self.stride, strict=True)]
        lead = (0,) * len(self.lead)
        ones = (1,) * len(self.lead)
        return hlo.slice(padded, (*lead, *starts), (*self.lead, *limits), (*ones, *self.stride))

    def start(self, axis: int) -> Value:
        """i64 over the output: where each window starts in the unpadded input."""
        shape = (*self.lead, *self.out)
        index = hlo.iota(shape, "i64", len(self.lead) + axis)
        return hlo.subtract(hlo.multiply(index, full(self.stride[axis], index)), full(self.padding[axis], index))

    def spread(self, grad: Value, offset: Pair) -> Value:
        """The reverse of `slice`: gradients at the elements that one position of the windows covers, zeros elsewhere."""
        low, high, gaps = [0] * grad.rank, [0] * grad.rank, [0] * grad.rank
        for axis in (0, 1):
            d = len(self.lead) + axis
            low[d] = offset[axis] * self.dilation[axis]
            covered = low[d] + (self.out[axis] - 1) * self.stride[axis] + 1
            high[d] = self.padding[axis] + self.size[axis] + self.tail[axis] - covered
            gaps[d] = self.stride[axis] - 1
        return hlo.pad(grad, hlo.constant(0, grad.dtype), low, high, gaps)

    def unpadded(self, x: Value) -> Value:
        """Without the padding again."""
        lead = (0,) * len(self.lead)
        limits = [p + s for p, s in zip(self.padding, self.size, strict=True)]
        return hlo.slice(x, (*lead, *self.padding), (*self.lead, *limits))


@lowers("aten::max_pool2d_with_indices")
def max_pool2d(x: Value, kernel_size: Sequence[int], stride: Sequence[int] = (), padding: Sequence[int] = (0,),
               dilation: Sequence[int] = (1,), ceil_mode: bool = False) -> tuple[Value, Value]:  # fmt: skip
    """(largest element, its i64 index in the flattened plane); a NaN is larger than any number."""
    if not is_float(x.dtype):
        raise Unsupported(f"aten::max_pool2d_with_indices on {x.dtype}; floating types work")
    kernel = _pair(kernel_size)
    windows = Windows(x, kernel, _pair(stride, kernel), _pair(padding), _pair(dilation), ceil_mode)
    padded = windows.padded(x, -math.inf)
    width = windows.size[1]
    starts = [windows.start(axis) for axis in (0, 1)]

    def index(row: Value, column: Value) -> Value:
        return hlo.add(hlo.multiply(row, full(width, row)), column)

    # Where nothing is larger than -inf, the index is that of the window's first element inside of the input.
    inside = []
    for axis, begin in enumerate(starts):
        d = windows.dilation[axis]
        missing = hlo.maximum(hlo.negate(begin), full(0, begin))
        steps = hlo.divide(hlo.add(missing, full(d - 1, begin)), full(d, begin))
        inside.append(hlo.add(begin, hlo.multiply(steps, full(d, begin))))
    chosen = index(*inside)
    best = full(-math.inf, windows.slice(padded, (0, 0)))
    for offset in windows.offsets():
        value = windows.slice(padded, offset)
        larger = hlo.or_(hlo.compare(value, best, "GT"), hlo.compare(value, value, "NE"))
        here = [
            hlo.add(begin, full(o * d, begin)) for begin, o, d in zip(starts, offset, windows.dilation, strict=True)
        ]
        chosen = hlo.select(larger, index(*here), chosen)
        best = hlo.select(larger, value, best)
    return best, chosen


@lowers("aten::max_pool2d_with_indices_backward")
def max_pool2d_backward(grad: Value, x: Value, kernel_size: Sequence[int], stride: Sequence[int],
                        padding: Sequence[int], dilation: Sequence[int], ceil_mode: bool, indices: Value) -> Value:  # fmt: skip
    """Gradients added, in f32, at the elements that were chosen."""
    wide = compute_dtype(x.dtype)
    lead, plane = x.shape[:-2], x.shape[-2] * x.shape[-1]
    flat = (*lead, grad.shape[-2] * grad.shape[-1])
    zeros = hlo.broadcast_in_dim(hlo.constant(0, wide), (*lead, plane), ())
    updates = hlo.reshape(hlo.convert(grad, wide), flat)
    summed = scatter_elements(zeros, len(lead), hlo.reshape(indices, flat), updates, "add")
    return hlo.convert(hlo.reshape(summed, x.shape), x.dtype)


def _divisor(windows: Windows, like: Value, count_include_pad: bool, divisor_override: int | None) -> Value:
    """Number of elements that each window's sum is divided by."""
    if divisor_override is not None:
        return full(divisor_override, like)
    factors = []
    for axis in (0, 1):
        begin = windows.start(axis)
        size, pad = windows.size[axis], windows.padding[axis]
        end = hlo.add(begin, full(windows.kernel[axis], begin))
        end = hlo.minimum(end, full(size + pad, begin))
        if not count_include_pad:
            begin, end = hlo.maximum(begin, full(0, begin)), hlo.minimum(end, full(size, begin))
        factors.append(hlo.subtract(end, begin))
    return hlo.convert(hlo.multiply(*factors), like.dtype)


def _average_windows(x: Value, kernel_size: Sequence[int], stride: Sequence[int], padding: Sequence[int],
                     ceil_mode: bool) -> Windows:  # fmt: skip
    kernel = _pair(kernel_size)
    return Windows(x, kernel, _pair(stride, kernel), _pair(padding), (1, 1), ceil_mode)


@lowers("aten::avg_pool2d")
def avg_pool2d(x: Value, kernel_size: Sequence[int], stride: Sequence[int] = (), padding: Sequence[int] = (0,),
               ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None) -> Value:  # fmt: skip
    """The mean of each window, summed in f32 in row-major order."""
    windows = _average_windows(x, kernel_size, stride, padding, ceil_mode)
    padded = windows.padded(hlo.convert(x, compute_dtype(x.dtype)), 0)
    total = None
    for offset in windows.offsets():
        part = windows.slice(padded, offset)
        total = part if total is None else hlo.add(total, part)
    assert total is not None
    return hlo.convert(hlo.divide(total, _divisor(windows, total, count_include_pad, divisor_override)), x.dtype)


@lowers("aten::avg_pool2d_backward")
def avg_pool2d_backward(grad: Value, x: Value, kernel_size: Sequence[int], stride: Sequence[int],
                        padding: Sequence[int], ceil_mode: bool, count_include_pad: bool,
                        divisor_override: int | None) -> Value:  # fmt: skip
    windows = _average_windows(x, kernel_size, stride, padding, ceil_mode)
    wide = hlo.convert(grad, compute_dtype(grad.dtype))
    share = hlo.divide(wide, _divisor(windows, wide, count_include_pad, divisor_override))
    total = None
    for offset in windows.offsets():
        part = windows.spread(share, offset)
        total = part if total is None else hlo.add(total, part)
    assert total is not None
    return hlo.convert(windows.unpadded(total), x.dtype)


def _cells(x: Value, size: Sequence[int]) -> tuple[tuple[Size, ...], Pair]:
    """(..., out, cell, out, cell) and the cell's sizes, where the output divides the input."""
    height, width = int(x.shape[-2]), int(x.shape[-1])
    if height % size[0] or width % size[1]:
        raise Unsupported(
            f"adaptive average pooling of {height}x{width} to {size[0]}x{size[1]}; sizes that divide the input work"
        )
    cell = (height // size[0], width // size[1])
    return (*x.shape[:-2], size[0], cell[0], size[1], cell[1]), cell


@lowers("aten::_adaptive_avg_pool2d")
def adaptive_avg_pool2d(x: Value, output_size: Sequence[int]) -> Value:
    shape, cell = _cells(x, output_size)
    rank = len(shape)
    wide = hlo.reshape(hlo.convert(x, compute_dtype(x.dtype)), shape)
    total = hlo.reduce(wide, "add", (rank - 3, rank - 1))
    return hlo.convert(hlo.divide(total, full(cell[0] * cell[1], total)), x.dtype)


@lowers("aten::_adaptive_avg_pool2d_backward")
def adaptive_avg_pool2d_backward(grad: Value, x: Value) -> Value:
    shape, cell = _cells(x, [int(s) for s in grad.shape[-2:]])
    rank = len(shape)
    wide = hlo.convert(grad, compute_dtype(grad.dtype))
    share = hlo.divide(wide, full(cell[0] * cell[1], wide))
    return hlo.convert(hlo.reshape(expand_reduced(share, (rank - 3, rank - 1), shape), x.shape), x.dtype)
