"""Views, as they stand in graphs, and rearrangements of elements."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch

import torch_neuronx_compile.stablehlo as hlo
from torch_neuronx_compile.dim import Size, ceil_div, product
from torch_neuronx_compile.lowering.promotion import Number, cast, hlo_dtype, result_type
from torch_neuronx_compile.lowering.registry import Unsupported, lowers
from torch_neuronx_compile.lowering.shape import broadcast_to, dimension, full
from torch_neuronx_compile.stablehlo import Value


def _complete(sizes: Sequence[Size], count: Size) -> list[Size]:
    """Sizes with a -1 replaced by what makes `count` elements."""
    sizes = list(sizes)
    for d, size in enumerate(sizes):
        if isinstance(size, int) and size == -1:
            sizes[d] = count // product([*sizes[:d], *sizes[d + 1 :]])
    return sizes


@lowers("aten::view", "aten::_unsafe_view", "aten::reshape", "aten::_reshape_copy", "aten::view_copy")
def view(x: Value, size: Sequence[Size]) -> Value:
    return hlo.reshape(x, _complete(size, product(x.shape)))


@lowers("aten::_reshape_alias", "aten::_reshape_alias_copy")
def reshape_alias(x: Value, size: Sequence[Size], stride: Sequence[Size]) -> Value:
    return hlo.reshape(x, size)


_BYTES = {"f64": 8, "i64": 8, "f32": 4, "i32": 4, "bf16": 2, "f16": 2, "i16": 2, "i1": 1, "ui8": 1, "i8": 1}


@lowers("aten::view.dtype", "aten::view_copy.dtype")
def view_dtype(x: Value, dtype: torch.dtype) -> Value:
    target = hlo_dtype(dtype)
    if target == x.dtype:
        return x
    if _BYTES[target] != _BYTES[x.dtype] or "i1" in (target, x.dtype):
        raise Unsupported(f"aten::view of {x.dtype} as {target}; element types of equal width work")
    return hlo.bitcast_convert(x, target)


@lowers("aten::permute", "aten::permute_copy")
def permute(x: Value, dims: Sequence[int]) -> Value:
    return hlo.transpose(x, [dimension(d, x.rank) for d in dims])


@lowers("aten::transpose.int", "aten::transpose_copy.int")
def transpose(x: Value, a: int, b: int) -> Value:
    if x.rank == 0:
        return x
    order = list(range(x.rank))
    a, b = dimension(a, x.rank), dimension(b, x.rank)
    order[a], order[b] = order[b], order[a]
    return hlo.transpose(x, order)


@lowers("aten::t", "aten::t_copy")
def t(x: Value) -> Value:
    return hlo.transpose(x, range(x.rank)[::-1])


@lowers("aten::expand", "aten::expand_copy")
def expand(x: Value, size: Sequence[Size], implicit: bool = False) -> Value:
    offset = len(size) - x.rank
    return broadcast_to(x, tuple(
        x.shape[d - offset] if isinstance(s, int) and s == -1 else s for d, s in enumerate(size)
    ))  # fmt: skip


def _bounds(size: Size, start: Size | None, end: Size | None) -> tuple[Size, Size]:
    """Slice bounds as Python's slices resolve them: negative ones from the end, all inside of the dimension."""

    def inside(bound: Size) -> Size:
        if bound < 0:
            bound = bound + size
        return 0 if bound < 0 else size if bound > size else bound

    first = inside(0 if start is None else start)
    last = size if end is None else inside(end)
    return first, last if first <= last else first


def _slice(x: Value, d: int, start: Size, end: Size, step: Size = 1) -> Value:
    low, high, stride = [0] * x.rank, list(x.shape), [1] * x.rank
    low[d], high[d], stride[d] = start, end, step
    return hlo.slice(x, low, high, stride)


@lowers("aten::slice.Tensor", "aten::slice_copy.Tensor")
def slice_tensor(x: Value, dim: int = 0, start: Size | None = None, end: Size | None = None, step: Size = 1) -> Value:
    d = dimension(dim, x.rank)
    first, last = _bounds(x.shape[d], start, end)
    return _slice(x, d, first, last, step)


def _index(x: Value, d: int, index: Size) -> Size:
    size = x.shape[d]
    if not -size <= index < size:
        raise IndexError(f"select(): index {index} out of range for tensor of size {list(x.shape)} at dimension {d}")
    return index + size if index < 0 else index


@lowers("aten::select.int", "aten::select_copy.int")
def select(x: Value, dim: int, index: Size) -> Value:
    d = dimension(dim, x.rank)
    i = _index(x, d, index)
    return squeeze_dims(_slice(x, d, i, i + 1), (d,))


@lowers("aten::squeeze", "aten::squeeze_copy")
def squeeze(x: Value) -> Value:
    return hlo.reshape(x, [s for s in x.shape if not (isinstance(s, int) and s == 1)])


@lowers("aten::squeeze.dim", "aten::squeeze.dims", "aten::squeeze_copy.dim", "aten::squeeze_copy.dims")
def squeeze_dims(x: Value, dims: Sequence[int] | int) -> Value:
    chosen = {dimension(d, x.rank) for d in ((dims,) if isinstance(dims, int) else dims)}
    return hlo.reshape(x, [s for d, s in enumerate(x.shape) if d not in chosen or not (isinstance(s, int) and s == 1)])


@lowers("aten::unsqueeze", "aten::unsqueeze_copy")
def unsqueeze(x: Value, dim: int) -> Value:
    d = dimension(dim, x.rank + 1)
    return hlo.reshape(x, (*x.shape[:d], 1, *x.shape[d:]))


@lowers("aten::split_with_sizes", "aten::split_with_sizes_copy")
def split_with_sizes(x: Value, sizes: Sequence[Size], dim: int = 0) -> list[Value]:
    d, start, parts = dimension(dim, x.rank), 0, []
    for size in sizes:
        parts.append(_slice(x, d, start, start + size))
        start = start + size
    return parts


@lowers("aten::split.Tensor", "aten::split_copy.Tensor")
def split(x: Value, size: int, dim: int = 0) -> list[Value]:
    d = dimension(dim, x.rank)
    length = int(x.shape[d])
    if length == 0 or size == 0:
        return [x]
    return [_slice(x, d, start, min(start + size, length)) for start in range(0, length, size)]


@lowers("aten::unbind.int", "aten::unbind_copy.int")
def unbind(x: Value, dim: int = 0) -> list[Value]:
    return [select(x, dim, index) for index in range(x.shape[dimension(dim, x.rank)])]


@lowers("aten::diagonal", "aten::diagonal_copy")
def diagonal(x: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Value:
    """A strided slice of the two dimensions joined into one."""
    a, b = dimension(dim1, x.rank), dimension(dim2, x.rank)
    rest = [d for d in range(x.rank) if d not in (a, b)]
    x = hlo.transpose(x, [*rest, a, b])
    rows, columns = int(x.shape[-2]), int(x.shape[-1])
    count = max(0, min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns))
    first = offset if offset >= 0 else -offset * columns
    flat = hlo.reshape(x, (*x.shape[:-2], rows * columns))
    first, last = (first, first + (count - 1) * (columns + 1) + 1) if count else (0, 0)
    return _slice(flat, flat.rank - 1, first, last, columns + 1)


def _positions(shape: Sequence[Size], stride: Sequence[Size], offset: Size) -> Value:
    """offset + sum(index[d] * stride[d]), for each element of a view."""
    index = hlo.broadcast_in_dim(hlo.constant(offset, "i64"), shape, ())
    for d, step in enumerate(stride):
        along = hlo.multiply(hlo.iota(shape, "i64", d), hlo.broadcast_in_dim(hlo.constant(step, "i64"), shape, ()))
        index = hlo.add(index, along)
    return index


@lowers("aten::as_strided", "aten::as_strided_copy")
def as_strided(x: Value, size: Sequence[Size], stride: Sequence[Size], storage_offset: Size | None = None) -> Value:
    """The operand's elements, in order, are its storage: a graph sees to that."""
    flat = hlo.reshape(x, (product(x.shape),))
    shape = tuple(size)
    index = _positions(shape, stride, storage_offset or 0)
    return hlo.gather(flat, index, offset_dims=(), collapsed_slice_dims=(0,), start_index_map=(0,),
                      index_vector_dim=len(shape), slice_sizes=(1,))  # fmt: skip


@lowers("aten::as_strided_scatter")
def as_strided_scatter(x: Value, source: Value, size: Sequence[Size], stride: Sequence[Size],
                       storage_offset: Size | None = None) -> Value:  # fmt: skip
    """`x` with the elements of a view of its storage replaced."""
    shape = tuple(size)
    count = product(shape)
    flat, updates = hlo.reshape(x, (product(x.shape),)), hlo.reshape(broadcast_to(source, shape), (count,))
    index = hlo.reshape(_positions(shape, stride, storage_offset or 0), (count,))
    written = hlo.scatter(flat, index, updates, body="set", update_window_dims=(), inserted_window_dims=(0,),
                          scatter_dims_to_operand_dims=(0,), index_vector_dim=1)  # fmt: skip
    return hlo.reshape(written, x.shape)


@lowers("aten::unfold", "aten::unfold_copy")
def unfold(x: Value, dim: int, size: int, step: int) -> Value:
    """Windows along a dimension; the window is the result's last dimension."""
    if x.rank == 0:
        return _slice(hlo.reshape(x, (1,)), 0, 0, size)
    d = dimension(dim, x.rank)
    count = (x.shape[d] - size) // step + 1
    positions = hlo.multiply(
        hlo.iota((count,), "i64", 0), hlo.broadcast_in_dim(hlo.constant(step, "i64"), (count,), ())
    )
    sizes = [size if i == d else s for i, s in enumerate(x.shape)]
    offsets = [i for i in range(x.rank + 1) if i != d]
    windows = hlo.gather(x, positions, offset_dims=offsets, collapsed_slice_dims=(), start_index_map=(d,),
                         index_vector_dim=1, slice_sizes=sizes)  # fmt: skip
    # The window's own dimension stands behind the positions; it moves to the end.
    order = [i for i in range(windows.rank) if i != d + 1]
    return hlo.transpose(windows, [*order, d + 1])


# Writing into views, as functional graphs do it.


def _placed(x: Value, part: Value, d: int, start: Size, end: Size, step: int) -> Value:
    """`x` with the elements start, start + step, ... of a dimension replaced."""
    if part.shape[d] == 0:
        return x
    if isinstance(step, int) and step == 1:
        pieces = [_slice(x, d, 0, start), part, _slice(x, d, end, x.shape[d])]
        return hlo.concatenate([p for p in pieces if not (isinstance(p.shape[d], int) and p.shape[d] == 0)], d)
    last = start + (part.shape[d] - 1) * step + 1
    low, high, gaps = [0] * x.rank, [0] * x.rank, [0] * x.rank
    low[d], high[d], gaps[d] = start, x.shape[d] - last, step - 1
    spread = hlo.pad(part, hlo.constant(0, x.dtype), low, high, gaps)
    inside = hlo.pad(full(True, part, "i1"), hlo.constant(False, "i1"), low, high, gaps)
    return hlo.select(inside, spread, x)


@lowers("aten::slice_scatter")
def slice_scatter(x: Value, source: Value, dim: int = 0, start: Size | None = None, end: Size | None = None,
                  step: int = 1) -> Value:  # fmt: skip
    d = dimension(dim, x.rank)
    first, last = _bounds(x.shape[d], start, end)
    shape = (*x.shape[:d], ceil_div(last - first, step), *x.shape[d + 1 :])
    return _placed(x, broadcast_to(cast(source, x.dtype), shape), d, first, last, step)


@lowers("aten::select_scatter")
def select_scatter(x: Value, source: Value, dim: int, index: Size) -> Value:
    d = dimension(dim, x.rank)
    i = _index(x, d, index)
    shape = (*x.shape[:d], *x.shape[d + 1 :])
    part = hlo.reshape(broadcast_to(cast(source, x.dtype), shape), (*shape[:d], 1, *shape[d:]))
    return _placed(x, part, d, i, i + 1, 1)


@lowers("aten::slice_backward")
def slice_backward(grad: Value, sizes: Sequence[Size], dim: int, start: Size, end: Size, step: int) -> Value:
    d = dimension(dim, len(sizes))
    first, _ = _bounds(sizes[d], start, end)
    count = grad.shape[d]
    last = first if count == 0 else first + (count - 1) * step + 1
    low, high, gaps = [0] * len(sizes), [0] * len(sizes), [0] * len(sizes)
    low[d], high[d], gaps[d] = first, sizes[d] - last, step - 1
    return hlo.pad(grad, hlo.constant(0, grad.dtype), low, high, gaps)


@lowers("aten::select_backward")
def select_backward(grad: Value, sizes: Sequence[Size], dim: int, index: Size) -> Value:
    d = dimension(dim, len(sizes))
    return slice_backward(unsqueeze(grad, d), sizes, d, index if index >= 0 else index + sizes[d], sizes[d], 1)


@lowers("aten::diagonal_scatter")
def diagonal_scatter(x: Value, source: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Value:
    """Where the two indices lie on the diagonal, the element comes from `source`, spread along the second dimension."""
    a, b = dimension(dim1, x.rank), dimension(dim2, x.rank)
    rest = [d for d in range(x.rank) if d not in (a, b)]
    order = [*rest, a, b]
    turned = hlo.transpose(x, order)
    rows = int(turned.shape[-2])
    row, column = hlo.iota(turned.shape, "i64", turned.rank - 2), hlo.iota(turned.shape, "i64", turned.rank - 1)
    on_diagonal = hlo.compare(hlo.add(row, full(offset, row)), column, "EQ")
    low = [0] * len(rest) + [max(0, -offset)]
    high = [0] * len(rest) + [rows - max(0, -offset) - int(source.shape[-1])]
    padded = hlo.pad(cast(source, x.dtype), hlo.constant(0, x.dtype), low, high)
    spread = hlo.broadcast_in_dim(padded, turned.shape, range(turned.rank - 1))
    result = hlo.select(on_diagonal, spread, turned)
    return hlo.transpose(result, [order.index(d) for d in range(x.rank)])


# Rearrangements.


@lowers("aten::cat")
def cat(tensors: Sequence[Value], dim: int = 0) -> Value:
    """In the common dtype; as torch has it, 1-d tensors without elements do not count."""
    dtype = result_type(*tensors)
    kept = [x for x in tensors if not (x.rank == 1 and isinstance(x.shape[0], int) and x.shape[0] == 0)] or tensors[:1]
    return hlo.concatenate([cast(x, dtype) for x in kept], dimension(dim, kept[0].rank))


@lowers("aten::stack")
def stack(tensors: Sequence[Value], dim: int = 0) -> Value:
    d = dimension(dim, tensors[0].rank + 1)
    dtype = result_type(*tensors)
    return hlo.concatenate([unsqueeze(cast(x, dtype), d) for x in tensors], d)


@lowers("aten::flip")
def flip(x: Value, dims: Sequence[int]) -> Value:
    return hlo.reverse(x, sorted({dimension(d, x.rank) for d in dims})) if x.rank and dims else x


@lowers("aten::roll")
def roll(x: Value, shifts: Sequence[Size], dims: Sequence[int] = ()) -> Value:
    if not dims:
        return hlo.reshape(roll(hlo.reshape(x, (product(x.shape),)), shifts, (0,)), x.shape)
    for shift, dim in zip(shifts, dims, strict=True):
        d = dimension(dim, x.rank)
        size = x.shape[d]
        if size == 0:
            continue
        start = (-shift) % size
        x = hlo.concatenate([_slice(x, d, start, size), _slice(x, d, 0, start)], d)
    return x


@lowers("aten::repeat")
def repeat(x: Value, repeats: Sequence[Size]) -> Value:
    """Each dimension becomes (repeat, size), broadcast, and joined again."""
    sizes = (1,) * (len(repeats) - x.rank) + tuple(x.shape)
    pairs = [s for pair in zip(repeats, sizes, strict=True) for s in pair]
    offset = len(repeats) - x.rank
    spread = hlo.broadcast_in_dim(x, pairs, [2 * (offset + d) + 1 for d in range(x.rank)])
    return hlo.reshape(spread, [a * b for a, b in zip(repeats, sizes, strict=True)])


@lowers("aten::constant_pad_nd")
def constant_pad(x: Value, pad: Sequence[Size], value: Number = 0) -> Value:
    """`pad` holds (low, high) of the last dimension first; negative amounts crop."""
    low, high = [0] * x.rank, [0] * x.rank
    for number in range(len(pad) // 2):
        low[x.rank - 1 - number], high[x.rank - 1 - number] = pad[2 * number], pad[2 * number + 1]
    cropped = [(-n if n < 0 else 0) for n in low], [s + n if n < 0 else s for s, n in zip(x.shape, high, strict=True)]
    x = hlo.slice(x, *cropped)
    return hlo.pad(x, cast(value, x.dtype), [0 if n < 0 else n for n in low], [0 if n < 0 else n for n in high])


def _triangle(upper: bool, x: Value, diagonal: int = 0) -> Value:
    """tril and triu: zeros outside of the triangle, whatever is there."""
    row, column = hlo.iota(x.shape, "i64", x.rank - 2), hlo.iota(x.shape, "i64", x.rank - 1)
    distance = hlo.subtract(column, row)
    inside = hlo.compare(distance, full(diagonal, distance), "GE" if upper else "LE")
    return hlo.select(inside, x, full(0, x))


lowers("aten::tril")(partial(_triangle, False))
lowers("aten::triu")(partial(_triangle, True))


@lowers("prims::broadcast_in_dim")
def broadcast_in_dim(x: Value, shape: Sequence[Size], dims: Sequence[int]) -> Value:
    return hlo.broadcast_in_dim(x, shape, dims)


@lowers("prims::iota")
def iota(length: int, start: int, step: int, dtype: torch.dtype, device: Any, requires_grad: bool) -> Value:
    index = hlo.iota((length,), "i64", 0)
    scaled = hlo.add(hlo.multiply(index, full(step, index)), full(start, index))
    return hlo.convert(scaled, hlo_dtype(dtype))
