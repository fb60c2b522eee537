"""gather and scatter with StableHLO's dimension numbers.

`out_of_range` extends StableHLO: "error" stops the launch (what torch's indexing does); otherwise StableHLO's own
behaviour holds, "clamp" for gather and "skip" for scatter. In the text it is a discardable attribute.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch_neuronx_compile.dim import Size
from torch_neuronx_compile.stablehlo.ops import OpSpec, check_count, define, kind, make, refuse
from torch_neuronx_compile.stablehlo.value import TensorType, Value

Attributes = Mapping[str, Any]
Types = tuple[TensorType, ...]

SCATTER_BODIES = ("set", "add", "multiply", "maximum", "minimum")

GATHER_DIMENSIONS = ("offset_dims", "collapsed_slice_dims", "operand_batching_dims", "start_indices_batching_dims",
                     "start_index_map", "index_vector_dim")  # fmt: skip
SCATTER_DIMENSIONS = ("update_window_dims", "inserted_window_dims", "input_batching_dims",
                      "scatter_indices_batching_dims", "scatter_dims_to_operand_dims", "index_vector_dim")  # fmt: skip


def _batch_sizes(spec: OpSpec, operands: tuple[Value, ...], indices: Value, vector: int, components: int) -> list[Size]:
    """Sizes of the indices without the component dimension. vector = rank means that every element is an index."""
    if not 0 <= vector <= indices.rank or kind(indices.dtype) != "i":
        raise refuse(spec, operands, f"integer indices with a component dimension, not {vector}")
    count = 1 if vector == indices.rank else indices.shape[vector]
    if count != components:
        raise refuse(spec, operands, f"{components} components an index, not {count}")
    return [s for d, s in enumerate(indices.shape) if d != vector]


def _gather(spec: OpSpec, operands: tuple[Value, ...], attributes: Attributes) -> Types:
    check_count(spec, operands, 2)
    x, indices = operands
    offsets, collapsed, x_batch, i_batch, start_map, vector = (attributes[n] for n in GATHER_DIMENSIONS)
    sizes = attributes["slice_sizes"]
    batch = _batch_sizes(spec, operands, indices, vector, len(start_map))
    if len(sizes) != x.rank or not all(0 <= a <= b for a, b in zip(sizes, x.shape, strict=True)):
        raise refuse(spec, operands, f"a slice size a dimension, not larger than it: {sizes}")
    dropped = (*collapsed, *x_batch)
    if len(set(dropped)) != len(dropped) or not all(sizes[d] == 1 for d in dropped):
        raise refuse(spec, operands, f"slice size 1 in the collapsed and batching dimensions {dropped}: {sizes}")
    if len(x_batch) != len(i_batch) or not all(
        x.shape[a] == indices.shape[b] for a, b in zip(x_batch, i_batch, strict=True)
    ):
        raise refuse(spec, operands, f"batching dimensions of equal sizes: {x_batch}, {i_batch}")
    if attributes["out_of_range"] not in ("error", "clamp"):
        raise refuse(spec, operands, f'out_of_range "error" or "clamp", not {attributes["out_of_range"]!r}')
    window = [s for d, s in enumerate(sizes) if d not in dropped]
    if len(window) != len(offsets):
        raise refuse(spec, operands, f"{len(window)} offset dimensions, not {offsets}")
    shape: list[Size] = []
    batch_left, window_left = iter(batch), iter(window)
    for d in range(len(batch) + len(window)):
        shape.append(next(window_left) if d in offsets else next(batch_left))
    return (TensorType(shape, x.dtype),)


def _scatter(spec: OpSpec, operands: tuple[Value, ...], attributes: Attributes) -> Types:
    check_count(spec, operands, 3)
    x, indices, updates = operands
    window_dims, inserted, x_batch, i_batch, start_map, vector = (attributes[n] for n in SCATTER_DIMENSIONS)
    batch = _batch_sizes(spec, operands, indices, vector, len(start_map))
    if attributes["body"] not in SCATTER_BODIES or attributes["out_of_range"] not in ("error", "skip"):
        raise refuse(spec, operands, f'a body among {", ".join(SCATTER_BODIES)} and out_of_range "error" or "skip", '
                     f'not {attributes["body"]!r}, {attributes["out_of_range"]!r}')  # fmt: skip
    if len(x_batch) != len(i_batch) or not all(
        x.shape[a] == indices.shape[b] for a, b in zip(x_batch, i_batch, strict=True)
    ):
        raise refuse(spec, operands, f"batching dimensions of equal sizes: {x_batch}, {i_batch}")
    got_batch = [s for d, s in enumerate(updates.shape) if d not in window_dims]
    got_window = [updates.shape[d] for d in window_dims]
    kept = [s for d, s in enumerate(x.shape) if d not in inserted and d not in x_batch]
    fits = (
        updates.dtype == x.dtype and got_batch == batch
        and len(got_window) == len(kept) and all(a <= b for a, b in zip(got_window, kept, strict=True))
    )  # fmt: skip
    if not fits:
        raise refuse(spec, operands, f"updates of sizes {batch} (indices) and windows not larger than {kept}")
    return (x.type,)


define(
    "gather",
    "stablehlo.gather",
    _gather,
    attributes=(*GATHER_DIMENSIONS, "slice_sizes", "out_of_range"),
    style="gather",
)
define(
    "scatter", "stablehlo.scatter", _scatter, attributes=(*SCATTER_DIMENSIONS, "body", "out_of_range"), style="scatter"
)


def gather(x: Value, indices: Value, *, offset_dims: Sequence[int], collapsed_slice_dims: Sequence[int],
           start_index_map: Sequence[int], index_vector_dim: int, slice_sizes: Sequence[Size],
           operand_batching_dims: Sequence[int] = (), start_indices_batching_dims: Sequence[int] = (),
           out_of_range: str = "error") -> Value:  # fmt: skip
    """Windows of `x` at the given indices; names as in StableHLO's specification of gather."""
    return make("gather", (x, indices), {
        "offset_dims": tuple(offset_dims), "collapsed_slice_dims": tuple(collapsed_slice_dims),
        "operand_batching_dims": tuple(operand_batching_dims),
        "start_indices_batching_dims": tuple(start_indices_batching_dims),
        "start_index_map": tuple(start_index_map), "index_vector_dim": index_vector_dim,
        "slice_sizes": tuple(slice_sizes), "out_of_range": out_of_range,
    })  # fmt: skip


def scatter(x: Value, indices: Value, updates: Value, *, body: str, update_window_dims: Sequence[int],
            inserted_window_dims: Sequence[int], scatter_dims_to_operand_dims: Sequence[int], index_vector_dim: int,
            input_batching_dims: Sequence[int] = (), scatter_indices_batching_dims: Sequence[int] = (),
            out_of_range: str = "error") -> Value:  # fmt: skip
    """`x` with windows combined into it: body set, add, multiply, maximum or minimum; duplicates in row-major order of the indices."""
    return make("scatter", (x, indices, updates), {
        "update_window_dims": tuple(update_window_dims), "inserted_window_dims": tuple(inserted_window_dims),
        "input_batching_dims": tuple(input_batching_dims),
        "scatter_indices_batching_dims": tuple(scatter_indices_batching_dims),
        "scatter_dims_to_operand_dims": tuple(scatter_dims_to_operand_dims), "index_vector_dim": index_vector_dim,
        "body": body, "out_of_range": out_of_range,
    })  # fmt: skip
