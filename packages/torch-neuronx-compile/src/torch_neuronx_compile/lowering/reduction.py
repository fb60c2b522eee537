"""Reductions over dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import torch

import torch_neuronx_compile.stablehlo as hlo
from torch_neuronx_compile.dim import Size, product
from torch_neuronx_compile.lowering.promotion import cast, compute_dtype, hlo_dtype, is_float
from torch_neuronx_compile.lowering.registry import lowers
from torch_neuronx_compile.lowering.shape import dimension, dimensions, expand_reduced, full, keep
from torch_neuronx_compile.lowering.unary import truth
from torch_neuronx_compile.stablehlo import Value

Dims = Sequence[int] | int | None


def reduced(x: Value, body: str, dims: Sequence[int], keepdim: bool = False) -> Value:
    """One reduction, with the reduced dimensions kept as size 1 if asked."""
    if not dims:
        return x
    result = hlo.reduce(x, body, dims)
    return keep(result, dims, x.rank) if keepdim else result


def count_of(x: Value, dims: Sequence[int]) -> Size:
    """Number of elements that are combined into one."""
    return product([x.shape[d] for d in dims])


def _sum_type(x: Value, dtype: torch.dtype | None) -> str:
    if dtype is not None:
        return hlo_dtype(dtype)
    return x.dtype if is_float(x.dtype) else "i64"


@lowers("aten::sum.dim_IntList")
def sum_dims(x: Value, dim: Dims, keepdim: bool = False, dtype: torch.dtype | None = None) -> Value:
    """Accumulated in f32 (floats) or exactly; integers and booleans sum to int64."""
    result = _sum_type(x, dtype)
    wide = compute_dtype(result)
    return cast(reduced(cast(x, wide), "add", dimensions(dim, x.rank), keepdim), result)


@lowers("aten::sum")
def sum_all(x: Value, dtype: torch.dtype | None = None) -> Value:
    return sum_dims(x, None, False, dtype)


@lowers("aten::nansum")
def nansum(x: Value, dim: Dims, keepdim: bool = False, dtype: torch.dtype | None = None) -> Value:
    if is_float(x.dtype):
        x = hlo.select(hlo.compare(x, x, "NE"), full(0, x), x)
    return sum_dims(x, dim, keepdim, dtype)


@lowers("aten::mean.dim")
def mean_dims(x: Value, dim: Dims, keepdim: bool = False, dtype: torch.dtype | None = None) -> Value:
    result = hlo_dtype(dtype) if dtype is not None else x.dtype
    if not is_float(result):
        raise ValueError(f"mean(): the input dtype must be a floating point dtype. Got: {result}")
    dims, wide = dimensions(dim, x.rank), compute_dtype(result)
    total = reduced(cast(x, wide), "add", dims, keepdim)
    return cast(hlo.divide(total, full(count_of(x, dims), total)), result)


@lowers("aten::mean")
def mean_all(x: Value, dtype: torch.dtype | None = None) -> Value:
    return mean_dims(x, None, False, dtype)


@lowers("aten::prod.dim_int")
def prod_dim(x: Value, dim: Dims, keepdim: bool = False, dtype: torch.dtype | None = None) -> Value:
    result = _sum_type(x, dtype)
    wide = compute_dtype(result)
    return cast(reduced(cast(x, wide), "multiply", dimensions(dim, x.rank), keepdim), result)


@lowers("aten::prod")
def prod_all(x: Value, dtype: torch.dtype | None = None) -> Value:
    return prod_dim(x, None, False, dtype)


def _extremum(body: str, x: Value, dim: Dims = None, keepdim: bool = False) -> Value:
    dims = dimensions(dim, x.rank)
    if any(isinstance(x.shape[d], int) and x.shape[d] == 0 for d in dims):
        raise IndexError(f"{body} of {x.type} over an empty dimension has no identity; specify a non-empty dim")
    return reduced(x, body, dims, keepdim)


for _aten, _body in {"amax": "maximum", "amin": "minimum"}.items():
    lowers(f"aten::{_aten}")(partial(_extremum, _body))
for _aten, _body in {"max": "maximum", "min": "minimum"}.items():
    lowers(f"aten::{_aten}")(partial(_extremum, _body))


@lowers("aten::aminmax")
def aminmax(x: Value, dim: int | None, keepdim: bool) -> tuple[Value, Value]:
    return _extremum("minimum", x, dim, keepdim), _extremum("maximum", x, dim, keepdim)


def _truth(body: str, x: Value, dim: Dims = None, keepdim: bool = False) -> Value:
    """any and all; a uint8 tensor gives uint8."""
    dims = () if isinstance(dim, (list, tuple)) and len(dim) == 0 and x.rank == 0 else dimensions(dim, x.rank)
    result = reduced(truth(x), body, dims, keepdim)
    return hlo.convert(result, "ui8") if x.dtype == "ui8" else result


for _aten, _body in {"any": "or", "all": "and"}.items():
    for _suffix in ("", ".dim", ".dims"):
        lowers(f"aten::{_aten}{_suffix}")(partial(_truth, _body))


def index_of_extremum(body: str, x: Value, dim: int | None = None, keepdim: bool = False) -> Value:
    """i64 index of the first largest or smallest element along a dimension, or (None) among all elements."""
    rank = x.rank
    if x.dtype == "i1":
        raise RuntimeError(f"{body}(): does not support bool input")
    if dim is None:
        flat = hlo.reshape(x, (product(x.shape),))
        result = hlo.reduce(flat, body, (0,))
        return hlo.reshape(result, (1,) * rank) if keepdim else result
    d = dimension(dim, rank)
    if rank == 0:
        return hlo.constant(0, "i64")
    return reduced(x, body, (d,), keepdim)


for _name in ("argmax", "argmin"):
    lowers(f"aten::{_name}")(partial(index_of_extremum, _name))


def _with_index(body: str, x: Value, dim: int, keepdim: bool = False) -> tuple[Value, Value]:
    """max.dim and min.dim: values and indices."""
    d = dimension(dim, x.rank)
    if x.rank == 0:
        return x, hlo.constant(0, "i64")
    extremum, index = ("maximum", "argmax") if body == "max" else ("minimum", "argmin")
    # Booleans are compared as small integers.
    comparable = hlo.convert(x, "i8") if x.dtype == "i1" else x
    return _extremum(extremum, x, d, keepdim), reduced(comparable, index, (d,), keepdim)


for _name in ("max", "min"):
    lowers(f"aten::{_name}.dim")(partial(_with_index, _name))


def moments(x: Value, dims: Sequence[int], correction: float) -> tuple[Value, Value]:
    """Variance and mean over dimensions (dropped) of an f32 or f64 value, in two passes: mean, then squared distances."""
    count = count_of(x, dims)
    total = reduced(x, "add", dims)
    mean = hlo.divide(total, full(count, total))
    distance = hlo.subtract(x, expand_reduced(mean, dims, x.shape))
    squares = reduced(hlo.multiply(distance, distance), "add", dims)
    if isinstance(count, int):
        divisor = full(max(0.0, count - correction), squares)
    else:
        difference = hlo.subtract(full(count, squares), full(correction, squares))
        divisor = hlo.maximum(difference, full(0, squares))
    return hlo.divide(squares, divisor), mean


def _moments(x: Value, dim: Dims, correction: float | None, keepdim: bool) -> tuple[Value, Value]:
    if not is_float(x.dtype):
        raise ValueError(f"std and var only support floating point and complex dtypes, got {x.dtype}")
    dims = dimensions(dim, x.rank)
    variance, mean = moments(hlo.convert(x, compute_dtype(x.dtype)), dims, 1 if correction is None else correction)
    if keepdim:
        variance, mean = keep(variance, dims, x.rank), keep(mean, dims, x.rank)
    return variance, mean


@lowers("aten::var.correction")
def var(x: Value, dim: Dims, correction: float | None, keepdim: bool) -> Value:
    return hlo.convert(_moments(x, dim, correction, keepdim)[0], x.dtype)


@lowers("aten::std.correction")
def std(x: Value, dim: Dims, correction: float | None, keepdim: bool) -> Value:
    return hlo.convert(hlo.sqrt(_moments(x, dim, correction, keepdim)[0]), x.dtype)


@lowers("aten::var_mean.correction")
def var_mean(x: Value, dim: Dims, correction: float | None, keepdim: bool) -> tuple[Value, Value]:
    variance, mean = _moments(x, dim, correction, keepdim)
    return hlo.convert(variance, x.dtype), hlo.convert(mean, x.dtype)


@lowers("aten::std_mean.correction")
def std_mean(x: Value, dim: Dims, correction: float | None, keepdim: bool) -> tuple[Value, Value]:
    variance, mean = _moments(x, dim, correction, keepdim)
    return hlo.convert(hlo.sqrt(variance), x.dtype), hlo.convert(mean, x.dtype)


@lowers("aten::logsumexp")
def logsumexp(x: Value, dim: Dims, keepdim: bool) -> Value:
    if not is_float(x.dtype):
        x = hlo.convert(x, "f32")
    wide = hlo.convert(x, compute_dtype(x.dtype))
    dims = dimensions(dim, x.rank)
    largest = reduced(wide, "maximum", dims)
    shift = hlo.select(hlo.is_finite(largest), largest, full(0, largest))
    total = reduced(hlo.exponential(hlo.subtract(wide, expand_reduced(shift, dims, wide.shape))), "add", dims)
    result = hlo.add(hlo.log(total), shift)
    return hlo.convert(keep(result, dims, x.rank) if keepdim else result, x.dtype)


@lowers("aten::linalg_vector_norm")
def vector_norm(
    x: Value, ord: float, dim: Dims = None, keepdim: bool = False, dtype: torch.dtype | None = None
) -> Value:
    """The p-norm, accumulated in f32."""
    result = hlo_dtype(dtype) if dtype is not None else x.dtype
    if not is_float(result):
        raise ValueError(f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {result}")
    dims = dimensions(dim, x.rank)
    magnitude = hlo.abs(cast(x, compute_dtype(result)))
    if ord == math.inf:
        norm = reduced(magnitude, "maximum", dims, keepdim)
    elif ord == -math.inf:
        norm = reduced(magnitude, "minimum", dims, keepdim)
    elif ord == 0:
        nonzero = hlo.convert(hlo.compare(magnitude, full(0, magnitude), "NE"), magnitude.dtype)
        norm = reduced(nonzero, "add", dims, keepdim)
    elif ord == 1:
        norm = reduced(magnitude, "add", dims, keepdim)
    elif ord == 2:
        norm = hlo.sqrt(reduced(hlo.multiply(magnitude, magnitude), "add", dims, keepdim))
    else:
        total = reduced(hlo.power(magnitude, full(ord, magnitude)), "add", dims, keepdim)
        norm = hlo.power(total, full(1.0 / ord, total))
    return hlo.convert(norm, result)


@lowers("aten::norm.ScalarOpt_dim")
def norm(x: Value, p: float | None, dim: Dims, keepdim: bool) -> Value:
    return vector_norm(x, 2.0 if p is None else p, dim, keepdim)


@lowers("aten::norm.Scalar")
def norm_all(x: Value, p: float) -> Value:
    return vector_norm(x, p)


@lowers("aten::count_nonzero.dim_IntList")
def count_nonzero(x: Value, dim: Dims) -> Value:
    return reduced(hlo.convert(truth(x), "i64"), "add", dimensions(dim, x.rank))


def _scan(body: str, x: Value, dim: int, dtype: torch.dtype | None = None) -> Value:
    """cumsum and cumprod."""
    result = _sum_type(x, dtype)
    d = dimension(dim, x.rank)
    wide = cast(x, compute_dtype(result))
    return cast(hlo.scan(wide, body, d) if x.rank else wide, result)


lowers("aten::cumsum")(partial(_scan, "add"))
lowers("aten::cumprod")(partial(_scan, "multiply"))


@lowers("aten::trace")
def trace(x: Value) -> Value:
    """The sum of the diagonal."""
    row, column = hlo.iota(x.shape, "i64", 0), hlo.iota(x.shape, "i64", 1)
    kept = hlo.select(hlo.compare(row, column, "EQ"), x, full(0, x))
    return sum_all(kept)
