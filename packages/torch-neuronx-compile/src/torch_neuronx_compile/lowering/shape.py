"""Shapes: broadcasting, dimension arguments, and inserting or dropping dimensions."""

from __future__ import annotations

from collections.abc import Sequence

import torch_neuronx_compile.stablehlo as hlo
from torch_neuronx_compile.dim import Size
from torch_neuronx_compile.lowering.promotion import constant
from torch_neuronx_compile.stablehlo import Value

Shape = tuple[Size, ...]


def broadcast_shape(*shapes: Shape) -> Shape:
    """The common shape of torch's broadcasting; ValueError if there is none."""
    first = shapes[0]
    if all(shape is first for shape in shapes):
        return first
    rank = max(map(len, shapes))
    result: list[Size] = []
    for position in range(-rank, 0):
        size: Size = 1
        for shape in shapes:
            if len(shape) < -position:
                continue
            other = shape[position]
            if isinstance(other, int) and other == 1 or other is size:
                continue
            if isinstance(size, int) and size == 1:
                size = other
            elif not size == other:
                raise ValueError(f"shapes {', '.join(map(str, shapes))} do not broadcast together")
        result.append(size)
    return tuple(result)


def broadcast_to(x: Value, shape: Shape) -> Value:
    """`x` under a larger shape that it broadcasts to; missing dimensions are in front."""
    if x.shape is shape or (len(x.shape) == len(shape) and x.shape == shape):
        return x
    offset = len(shape) - len(x.shape)
    return hlo.broadcast_in_dim(x, shape, range(offset, len(shape)))


def broadcast(*values: Value) -> list[Value]:
    """The values under their common shape."""
    shape = broadcast_shape(*(value.shape for value in values))
    return [broadcast_to(value, shape) for value in values]


def full(number: bool | int | float | Size, like: Value, dtype: str | None = None) -> Value:
    """A constant of another value's shape and, unless given, element type."""
    scalar = constant(number, dtype or like.dtype)
    return hlo.broadcast_in_dim(scalar, like.shape, ()) if like.shape else scalar


def dimension(d: int, rank: int) -> int:
    """A dimension argument without its sign; a 0-d tensor has dimensions -1 and 0. IndexError when out of range."""
    bound = max(rank, 1)
    if not -bound <= d < bound:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-bound}, {bound - 1}], but got {d})")
    return d % bound


def dimensions(dims: Sequence[int] | int | None, rank: int) -> tuple[int, ...]:
    """Ascending distinct dimensions; None or an empty list means all of them. A 0-d tensor has none."""
    if dims is None or (not isinstance(dims, int) and len(dims) == 0):
        return tuple(range(rank))
    found = sorted({dimension(d, rank) for d in ((dims,) if isinstance(dims, int) else dims)})
    return tuple(found) if rank else ()


def keep(x: Value, dims: Sequence[int], rank: int) -> Value:
    """A reduction's result with the reduced dimensions of a rank-`rank` operand back as size 1."""
    sizes = iter(x.shape)
    return hlo.reshape(x, [1 if d in dims else next(sizes) for d in range(rank)])


def expand_reduced(x: Value, dims: Sequence[int], shape: Shape) -> Value:
    """A reduction's result (without the reduced dimensions) under the operand's shape again."""
    return hlo.broadcast_in_dim(x, shape, [d for d in range(len(shape)) if d not in dims])
