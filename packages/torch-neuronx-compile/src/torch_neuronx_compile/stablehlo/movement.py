"""Operations that make or move elements without computing on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch_neuronx_compile.dim import Dim, Size, ceil_div, product
from torch_neuronx_compile.stablehlo.literal import representable
from torch_neuronx_compile.stablehlo.ops import OpSpec, check_count, define, kind, make, refuse
from torch_neuronx_compile.stablehlo.value import TensorType, Value

Attributes = Mapping[str, Any]
Types = tuple[TensorType, ...]


def _constant(spec: OpSpec, operands: tuple[Value, ...], attributes: Attributes) -> Types:
    check_count(spec, operands, 0)
    type = TensorType(attributes["shape"], attributes["dtype"])
    value = attributes["value"]
    if isinstance(value, tuple) and len(value) != product(type.shape):
        raise refuse(spec, operands, f"{product(type.shape)} elements for {type}, not {len(value)}")
    return (type,)


def _iota(spec: OpSpec, operands: tuple[Value, ...], attributes: Attributes) -> Types:
    check_count(spec, operands, 0)
    type = TensorType(attributes["shape"], attributes["dtype"])
    if type.dtype == "i1" or not 0 <= attributes["dimension"] < type.rank:
        raise refuse(
            spec, operands, f"a dimension of {type} and a float or integer type, not {attributes['dimension']}"
        )
    return (type,)


def _broadcast(spec: OpSpec, operands: tuple[Value, ...], attributes: Attributes) -> Types:
    check_count(spec, operands, 1)
    (x,), shape, dimensions = operands, attributes["shape"], attributes["dimensions"]
    fits = (
        len(dimensions) == len(x.shape)
        and len(set(dimensions)) == len(dimensions)
        and all(
            0 <= d < len(shape) and (size == 1 or size == shape[d]) for d, size in zip(dimensions, x.shape, strict=True)
        )
    )
    if not fits:
        raise refuse(
            spec, operands, f"one target dimension a dimension, each of size 1 or the target's: {dimensions} of {shape}"
        )
    return (TensorType(shape, x.dtype),)


def _reshape(spec: OpSpec, operands: tuple[Value, ...], attributes: Attributes) -> Types:
    check_count(spec, operands, 1)
    (x,), shape = operands, attributes["shape"]
    if not product(x.shape) == product(shape):
        raise refuse(spec, operands, f"as many elements as {TensorType(shape, x.dtype)}")
    return (TensorType(shape, x.dtype),)


def _transpose(spec: OpSpec, operands: tuple[Value, ...], attributes: Attributes) -> Types:
    check_count(spec, operands, 1)
    (x,), permutation = operands, attributes["permutation"]
    if sorted(permutation) != list(range(x.rank)):
        raise refuse(spec, operands, f"a permutation of its dimensions, not {permutation}")
    return (TensorType((x.shape[d] for d in permutation), x.dtype),)


def _reverse(spec: OpSpec, operands: tuple[Value, ...], attributes: Attributes) -> Types:
    check_count(spec, operands, 1)
    _check_dimensions(spec, operands, attributes["dimensions"])
    return (operands[0].type,)


def _slice(spec: OpSpec, operands: tuple[Value, ...], attributes: Attributes) -> Types:
    check_count(spec, operands, 1)
    (x,), start, limit, stride = operands, attributes["start"], attributes["limit"], attributes["stride"]
    if not len(start) == len(limit) == len(stride) == x.rank:
        raise refuse(spec, operands, f"start, limit and stride of rank {x.rank}: {start}, {limit}, {stride}")
    shape = []
    for size, a, b, step in zip(x.shape, start, limit, stride, strict=True):
        if not (0 <= a <= b <= size and step >= 1):
            raise refuse(spec, operands, f"0 <= start <= limit <= size and stride >= 1: {start}, {limit}, {stride}")
        shape.append(ceil_div(b - a, step))
    return (TensorType(shape, x.dtype),)


def _concatenate(spec: OpSpec, operands: tuple[Value, ...], attributes: Attributes) -> Types:
    dimension = attributes["dimension"]
    first = operands[0] if operands else None
    fits = first is not None and 0 <= dimension < first.rank and all(
        x.dtype == first.dtype and x.rank == first.rank and
        all(a == b for d, (a, b) in enumerate(zip(x.shape, first.shape, strict=True)) if d != dimension)
        for x in operands
    )  # fmt: skip
    if not fits:
        raise refuse(spec, operands, f"tensors of one element type, equal but for dimension {dimension}")
    total: Size = 0
    for x in operands:
        total = total + x.shape[dimension]
    return (TensorType((*first.shape[:dimension], total, *first.shape[dimension + 1 :]), first.dtype),)


def _pad(spec: OpSpec, operands: tuple[Value, ...], attributes: Attributes) -> Types:
    check_count(spec, operands, 2)
    x, value = operands
    low, high, interior = attributes["low"], attributes["high"], attributes["interior"]
    if value.shape or value.dtype != x.dtype or not len(low) == len(high) == len(interior) == x.rank:
        raise refuse(
            spec,
            operands,
            f"a tensor, a scalar of its element type, and padding of its rank: {low}, {high}, {interior}",
        )
    if not all(n >= 0 for n in (*low, *high, *interior)):
        raise refuse(spec, operands, f"padding of at least 0: {low}, {high}, {interior}")
    shape = []
    for size, a, b, gap in zip(x.shape, low, high, interior, strict=True):
        inner = size if isinstance(gap, int) and gap == 0 else size + (0 if size == 0 else size - 1) * gap
        shape.append(inner + a + b)
    return (TensorType(shape, x.dtype),)


def _check_starts(spec: OpSpec, operands: tuple[Value, ...], starts: tuple[Value, ...], rank: int) -> None:
    if len(starts) != rank or any(s.shape or s.dtype != starts[0].dtype or kind(s.dtype) != "i" for s in starts):
        raise refuse(spec, operands, "one start index a dimension, each of rank 0 and of one integer type")


def _dynamic_slice(spec: OpSpec, operands: tuple[Value, ...], attributes: Attributes) -> Types:
    if not operands:
        raise refuse(spec, operands, "a tensor and one start index a dimension")
    x, *starts = operands
    _check_starts(spec, operands, tuple(starts), x.rank)
    sizes = attributes["sizes"]
    if len(sizes) != x.rank or not all(0 <= a <= b for a, b in zip(sizes, x.shape, strict=True)):
        raise refuse(spec, operands, f"a size a dimension, not larger than it: {sizes}")
    return (TensorType(sizes, x.dtype),)


def _dynamic_update_slice(spec: OpSpec, operands: tuple[Value, ...], attributes: Attributes) -> Types:
    if len(operands) < 2:
        raise refuse(spec, operands, "a tensor, an update and one start index a dimension")
    x, update, *starts = operands
    _check_starts(spec, operands, tuple(starts), x.rank)
    fits = update.dtype == x.dtype and update.rank == x.rank
    if not fits or not all(a <= b for a, b in zip(update.shape, x.shape, strict=True)):
        raise refuse(spec, operands, "an update of the operand's rank and element type, not larger than it")
    return (x.type,)


def _check_dimensions(spec: OpSpec, operands: tuple[Value, ...], dimensions: Sequence[int]) -> None:
    if len(set(dimensions)) != len(dimensions) or not all(0 <= d < operands[0].rank for d in dimensions):
        raise refuse(spec, operands, f"distinct dimensions of the operand, not {tuple(dimensions)}")


define("constant", "stablehlo.constant", _constant, attributes=("value", "shape", "dtype"), style="constant")
define("iota", "stablehlo.iota", _iota, attributes=("shape", "dtype", "dimension"), style="iota")
define(
    "broadcast_in_dim",
    "stablehlo.broadcast_in_dim",
    _broadcast,
    attributes=("shape", "dimensions"),
    style="broadcast_in_dim",
)
define("reshape", "stablehlo.reshape", _reshape, attributes=("shape",), style="arrow")
define("transpose", "stablehlo.transpose", _transpose, attributes=("permutation",), style="transpose")
define("reverse", "stablehlo.reverse", _reverse, attributes=("dimensions",), style="reverse")
define("slice", "stablehlo.slice", _slice, attributes=("start", "limit", "stride"), style="slice")
define("concatenate", "stablehlo.concatenate", _concatenate, attributes=("dimension",), style="concatenate")
define("pad", "stablehlo.pad", _pad, attributes=("low", "high", "interior"), style="pad")
define("dynamic_slice", "stablehlo.dynamic_slice", _dynamic_slice, attributes=("sizes",), style="dynamic_slice")
define("dynamic_update_slice", "stablehlo.dynamic_update_slice", _dynamic_update_slice, style="generic")


def constant(value: bool | int | float | Dim | tuple, dtype: str, shape: Sequence[Size] = ()) -> Value:
    """A tensor filled with one number (a symbolic size is a number too), or with a tuple of them in row-major order.

    The `value` attribute holds the numbers as the element type stores them (see `representable`).
    """
    if isinstance(value, tuple):
        value = tuple(representable(v, dtype) for v in value)
    elif not isinstance(value, Dim):
        value = representable(value, dtype)
    return make("constant", (), {"value": value, "shape": tuple(shape), "dtype": dtype})


def iota(shape: Sequence[Size], dtype: str, dimension: int) -> Value:
    """A tensor whose elements are their index along `dimension`."""
    return make("iota", (), {"shape": tuple(shape), "dtype": dtype, "dimension": dimension})


def broadcast_in_dim(x: Value, shape: Sequence[Size], dimensions: Sequence[int]) -> Value:
    """Dimension i of `x` (size 1, or the target's) becomes dimension dimensions[i] of `shape`."""
    return make("broadcast_in_dim", (x,), {"shape": tuple(shape), "dimensions": tuple(dimensions)})


def reshape(x: Value, shape: Sequence[Size]) -> Value:
    """The same elements in row-major order under other sizes. Returns `x` itself when nothing changes."""
    shape = tuple(shape)
    if len(shape) == len(x.shape) and x.shape == shape:
        return x
    return make("reshape", (x,), {"shape": shape})


def transpose(x: Value, permutation: Sequence[int]) -> Value:
    """Result dimension i is dimension permutation[i] of `x`. Returns `x` itself for the identity."""
    permutation = tuple(permutation)
    return x if permutation == tuple(range(x.rank)) else make("transpose", (x,), {"permutation": permutation})


def reverse(x: Value, dimensions: Sequence[int]) -> Value:
    """Reverse the order of elements along the dimensions."""
    return make("reverse", (x,), {"dimensions": tuple(dimensions)})


def slice(x: Value, start: Sequence[Size], limit: Sequence[Size], stride: Sequence[Size] | None = None) -> Value:
    """Elements start, start + stride, ... below limit of each dimension; 0 <= start <= limit <= size."""
    steps = (1,) * x.rank if stride is None else tuple(stride)
    return make("slice", (x,), {"start": tuple(start), "limit": tuple(limit), "stride": steps})


def concatenate(operands: Sequence[Value], dimension: int) -> Value:
    """Join tensors along a dimension."""
    return make("concatenate", tuple(operands), {"dimension": dimension})


def pad(
    x: Value, value: Value, low: Sequence[Size], high: Sequence[Size], interior: Sequence[Size] | None = None
) -> Value:
    """Surround `x` (and, with `interior`, separate its elements) with a rank-0 value."""
    gaps = (0,) * x.rank if interior is None else tuple(interior)
    return make("pad", (x, value), {"low": tuple(low), "high": tuple(high), "interior": gaps})


def dynamic_slice(x: Value, starts: Sequence[Value], sizes: Sequence[Size]) -> Value:
    """A window of given sizes at start indices known at launch, which are moved into range."""
    return make("dynamic_slice", (x, *starts), {"sizes": tuple(sizes)})


def dynamic_update_slice(x: Value, update: Value, starts: Sequence[Value]) -> Value:
    """`x` with a window overwritten, at start indices known at launch, which are moved into range."""
    return make("dynamic_update_slice", (x, update, *starts))
