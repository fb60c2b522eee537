"""Reading and writing at indices. An index outside of its dimension stops the launch, as it raises in torch."""

from __future__ import annotations

from collections.abc import Sequence

import torch_neuronx_compile.stablehlo as hlo
from torch_neuronx_compile.dim import product
from torch_neuronx_compile.lowering.promotion import Operand, cast, compute_dtype
from torch_neuronx_compile.lowering.registry import Unsupported, lowers
from torch_neuronx_compile.lowering.shape import Shape, broadcast_shape, broadcast_to, dimension, full
from torch_neuronx_compile.stablehlo import Value


def _at_least_1d(x: Value) -> Value:
    return x if x.rank else hlo.reshape(x, (1,))


def from_the_end(index: Value, size: int) -> Value:
    """Negative indices count from the end of the dimension."""
    if index.dtype == "ui8":
        return hlo.convert(index, "i64")
    return hlo.select(hlo.compare(index, full(0, index), "LT"), hlo.add(index, full(size, index)), index)


def take_rows(x: Value, index: Value, d: int) -> Value:
    """x[..., index, ...] at one dimension; the index's dimensions take that dimension's place."""
    offsets = [*range(d), *range(d + index.rank, x.rank - 1 + index.rank)]
    sizes = [1 if i == d else s for i, s in enumerate(x.shape)]
    return hlo.gather(x, index, offset_dims=offsets, collapsed_slice_dims=(d,), start_index_map=(d,),
                      index_vector_dim=index.rank, slice_sizes=sizes)  # fmt: skip


@lowers("aten::index_select")
def index_select(x: Value, dim: int, index: Value) -> Value:
    d = dimension(dim, x.rank)
    return hlo.reshape(take_rows(_at_least_1d(x), _at_least_1d(index), d), () if x.rank == 0 else
                       (*x.shape[:d], product(index.shape), *x.shape[d + 1 :]))  # fmt: skip


def _full_index(index: Value, d: int) -> Value:
    """Indices of every dimension, for an index tensor of the operand's rank that replaces the index of dimension d."""
    shape = (*index.shape, 1)
    parts = [hlo.reshape(index if i == d else hlo.iota(index.shape, index.dtype, i), shape) for i in range(index.rank)]
    return hlo.concatenate(parts, index.rank)


@lowers("aten::gather")
def gather(x: Value, dim: int, index: Value, sparse_grad: bool = False) -> Value:
    """out[i, j] = x[index[i, j], j] for dim 0."""
    d = dimension(dim, x.rank)
    if x.rank == 0 or index.rank == 0:
        result = take_rows(_at_least_1d(x), _at_least_1d(index), 0)
        return hlo.reshape(result, index.shape)
    others = tuple(i for i in range(x.rank) if i != d)
    sizes = (1,) * x.rank
    # The other dimensions correspond one to one; torch lets the operand be longer there.
    if not all(x.shape[i] == index.shape[i] for i in others):
        x = hlo.slice(x, (0,) * x.rank, [s if i == d else index.shape[i] for i, s in enumerate(x.shape)])
    return hlo.gather(x, index, offset_dims=(), collapsed_slice_dims=(d,), operand_batching_dims=others,
                      start_indices_batching_dims=others, start_index_map=(d,), index_vector_dim=index.rank,
                      slice_sizes=sizes)  # fmt: skip


def scatter_elements(x: Value, d: int, index: Value, updates: Value, body: str) -> Value:
    """x[index[i, j], j] = combine(itself, updates[i, j]) for d 0, in row-major order."""
    shape = x.shape
    if x.rank == 0 or index.rank == 0:
        x, index, updates = (hlo.reshape(v, (product(v.shape),)) for v in (x, index, updates))
        d = 0
    if not all(a == b for a, b in zip(updates.shape, index.shape, strict=True)):
        updates = hlo.slice(updates, (0,) * updates.rank, index.shape)
    others = tuple(i for i in range(x.rank) if i != d)
    if all(x.shape[i] == index.shape[i] for i in others):
        result = hlo.scatter(x, index, updates, body=body, update_window_dims=(), inserted_window_dims=(d,),
                             input_batching_dims=others, scatter_indices_batching_dims=others,
                             scatter_dims_to_operand_dims=(d,), index_vector_dim=index.rank)  # fmt: skip
    else:
        everything = tuple(range(x.rank))
        result = hlo.scatter(x, _full_index(index, d), updates, body=body, update_window_dims=(),
                             inserted_window_dims=everything, scatter_dims_to_operand_dims=everything,
                             index_vector_dim=index.rank)  # fmt: skip
    return hlo.reshape(result, shape)


def _accumulated(dtype: str, body: str) -> str:
    """Element type in which a scatter combines: bf16 and fp16 in f32 when several updates may meet in one element."""
    return dtype if body == "set" else compute_dtype(dtype)


_REDUCTIONS = {
    "add": "add",
    "multiply": "multiply",
    "sum": "add",
    "prod": "multiply",
    "amax": "maximum",
    "amin": "minimum",
}


@lowers("aten::scatter.src", "aten::scatter.value")
def scatter(x: Value, dim: int, index: Value, source: Operand) -> Value:
    return scatter_reduce(x, dim, index, source, None)


@lowers("aten::scatter_add")
def scatter_add(x: Value, dim: int, index: Value, source: Value) -> Value:
    return scatter_reduce(x, dim, index, source, "add")


@lowers("aten::scatter.reduce", "aten::scatter.value_reduce", "aten::scatter_reduce.two")
def scatter_reduce(x: Value, dim: int, index: Value, source: Operand, reduce: str | None,
                   include_self: bool = True) -> Value:  # fmt: skip
    d = dimension(dim, x.rank)
    body = "set" if reduce is None else _REDUCTIONS.get(reduce)
    if body is None or not include_self:
        raise Unsupported(f'aten::scatter_reduce with reduce="{reduce}", include_self={include_self}; sum, prod, amax and '
                          "amin that include self work")  # fmt: skip
    wide = _accumulated(x.dtype, body)
    updates = cast(source, wide)
    if not isinstance(source, Value) or source.rank == 0:
        updates = broadcast_to(updates, index.shape)
    return cast(scatter_elements(cast(x, wide), d, index, updates, body), x.dtype)


def _rows_along(x: Value, d: int, index: Value, source: Value, body: str) -> Value:
    """Slices of `source` along d combined into the slices of `x` that a 1-d index names."""
    shape = x.shape
    x, index = _at_least_1d(x), _at_least_1d(index)
    source = hlo.reshape(source, (*x.shape[:d], index.shape[0], *x.shape[d + 1 :]))
    windows = tuple(i for i in range(x.rank) if i != d)
    result = hlo.scatter(x, index, source, body=body, update_window_dims=windows, inserted_window_dims=(d,),
                         scatter_dims_to_operand_dims=(d,), index_vector_dim=1)  # fmt: skip
    return hlo.reshape(result, shape)


@lowers("aten::index_add")
def index_add(x: Value, dim: int, index: Value, source: Value, alpha: Operand = 1) -> Value:
    d = dimension(dim, x.rank)
    wide = compute_dtype(x.dtype)
    scaled = cast(source, wide)
    if not (not isinstance(alpha, Value) and alpha == 1):
        scaled = hlo.multiply(scaled, broadcast_to(cast(alpha, wide), scaled.shape))
    return cast(_rows_along(cast(x, wide), d, index, scaled, "add"), x.dtype)


@lowers("aten::index_copy")
def index_copy(x: Value, dim: int, index: Value, source: Value) -> Value:
    return _rows_along(x, dimension(dim, x.rank), index, cast(source, x.dtype), "set")


@lowers("aten::index_fill.int_Scalar", "aten::index_fill.int_Tensor")
def index_fill(x: Value, dim: int, index: Value, value: Operand) -> Value:
    d = dimension(dim, x.rank)
    wrapped = from_the_end(index, x.shape[d] if x.rank else 1)
    shape = (*x.shape[:d], product(index.shape), *x.shape[d + 1 :])
    return _rows_along(x, d, wrapped, broadcast_to(cast(value, x.dtype), shape), "set")


@lowers("aten::take")
def take(x: Value, index: Value) -> Value:
    """Elements of the flattened tensor."""
    count = product(x.shape)
    return take_rows(hlo.reshape(x, (count,)), from_the_end(index, count), 0)


def _joint_index(x: Value, indices: Sequence[Value | None]) -> tuple[list[int], Value, Shape]:
    """For advanced indexing: the indexed dimensions, the joint index with its components last, and its batch shape."""
    dims = [d for d, index in enumerate(indices) if index is not None]
    found = [index for index in indices if index is not None]
    for index in found:
        if index.dtype in ("i1", "ui8"):
            raise Unsupported(
                f"aten::index with a mask of {index.dtype}, whose result's size depends on its values; "
                "torch.where and masked_fill work on the device"
            )
    batch = broadcast_shape(*(index.shape for index in found))
    parts = []
    for d, index in zip(dims, found, strict=True):
        wrapped = from_the_end(hlo.convert(index, "i64"), x.shape[d])
        parts.append(hlo.reshape(broadcast_to(wrapped, batch), (*batch, 1)))
    return dims, hlo.concatenate(parts, len(batch)) if len(parts) > 1 else parts[0], batch


def _batch_position(dims: Sequence[int]) -> int:
    """Adjacent indices put their shape in their place, separated ones in front."""
    return dims[0] if dims == list(range(dims[0], dims[-1] + 1)) else 0


@lowers("aten::index.Tensor", "aten::_unsafe_index.Tensor")
def index_tensor(x: Value, indices: Sequence[Value | None]) -> Value:
    """x[i, :, j] with broadcast integer index tensors; None keeps a dimension."""
    dims, joint, batch = _joint_index(x, indices)
    position, rank = _batch_position(dims), len(batch)
    kept = x.rank - len(dims)
    offsets = [i if i < position else i + rank for i in range(kept)]
    sizes = [1 if d in dims else s for d, s in enumerate(x.shape)]
    return hlo.gather(x, joint, offset_dims=offsets, collapsed_slice_dims=dims, start_index_map=dims,
                      index_vector_dim=rank, slice_sizes=sizes)  # fmt: skip


@lowers("aten::index_put", "aten::_unsafe_index_put")
def index_put(x: Value, indices: Sequence[Value | None], values: Value, accumulate: bool = False) -> Value:
    """`x` with x[i, :, j] set or (accumulate) added to; duplicates count in row-major order."""
    masks = [index for index in indices if index is not None and index.dtype in ("i1", "ui8")]
    if masks and values.rank == 0 and len(masks) == len(indices) == 1:
        mask = masks[0] if masks[0].dtype == "i1" else hlo.convert(masks[0], "i1")
        mask = hlo.broadcast_in_dim(mask, x.shape, range(mask.rank))
        value = broadcast_to(cast(values, x.dtype), x.shape)
        return hlo.select(mask, hlo.add(x, value) if accumulate else value, x)
    dims, joint, batch = _joint_index(x, indices)
    position, rank = _batch_position(dims), len(batch)
    kept = [s for d, s in enumerate(x.shape) if d not in dims]
    shape = (*kept[:position], *batch, *kept[position:])
    windows = [i if i < position else i + rank for i in range(len(kept))]
    body = "add" if accumulate else "set"
    wide = _accumulated(x.dtype, body)
    updates = broadcast_to(cast(values, wide), shape)
    result = hlo.scatter(cast(x, wide), joint, updates, body=body, update_window_dims=windows,
                         inserted_window_dims=dims, scatter_dims_to_operand_dims=dims, index_vector_dim=rank)  # fmt: skip
    return cast(result, x.dtype)


@lowers("aten::_index_put_impl")
def index_put_impl(x: Value, indices: Sequence[Value | None], values: Value, accumulate: bool = False,
                   unsafe: bool = False) -> Value:  # fmt: skip
    return index_put(x, indices, values, accumulate)


@lowers("aten::embedding")
def embedding(weight: Value, indices: Value, padding_idx: int = -1, scale_grad_by_freq: bool = False,
              sparse: bool = False) -> Value:  # fmt: skip
    return take_rows(weight, indices, 0)


@lowers("aten::embedding_dense_backward")
def embedding_dense_backward(grad: Value, indices: Value, num_weights: int, padding_idx: int,
                             scale_grad_by_freq: bool) -> Value:  # fmt: skip
    """Rows of the gradient summed, in f32, into the rows of the weight that they came from; the padding row gets none."""
    count = product(indices.shape)
    flat = hlo.reshape(indices, (count,))
    width = grad.shape[-1]
    wide = compute_dtype(grad.dtype)
    rows = hlo.reshape(hlo.convert(grad, wide), (count, width))

    def summed(updates: Value, shape: Shape, windows: tuple[int, ...]) -> Value:
        zeros = hlo.broadcast_in_dim(hlo.constant(0, wide), shape, ())
        return hlo.scatter(zeros, flat, updates, body="add", update_window_dims=windows, inserted_window_dims=(0,),
                           scatter_dims_to_operand_dims=(0,), index_vector_dim=1)  # fmt: skip

    if scale_grad_by_freq:
        ones = hlo.broadcast_in_dim(hlo.constant(1, wide), (count,), ())
        frequency = take_rows(summed(ones, (num_weights,), ()), flat, 0)
        rows = hlo.divide(rows, hlo.broadcast_in_dim(frequency, rows.shape, (0,)))
    if padding_idx >= 0:
        kept = hlo.compare(flat, full(padding_idx, flat), "NE")
        rows = hlo.select(hlo.broadcast_in_dim(kept, rows.shape, (0,)), rows, full(0, rows))
    return hlo.convert(summed(rows, (num_weights, width), (1,)), grad.dtype)
