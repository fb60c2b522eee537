"""Tensors out of numbers, and copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

import torch_neuronx_compile.stablehlo as hlo
from torch_neuronx_compile.dim import Size, product
from torch_neuronx_compile.lowering.promotion import Operand, cast, compute_dtype, is_float
from torch_neuronx_compile.lowering.registry import lowers
from torch_neuronx_compile.lowering.shape import broadcast_to
from torch_neuronx_compile.lowering.unary import to_copy_dtype
from torch_neuronx_compile.stablehlo import TensorType, Value


def filled(number: Operand, type: TensorType) -> Value:
    """A tensor of one number, which may be given at launch."""
    if isinstance(number, Value):
        value = to_copy_dtype(number, type.dtype)
    else:
        value = cast(number, type.dtype)
    return broadcast_to(value, type.shape)


@lowers("aten::full", operands=("fill_value",), outputs=True)
@lowers("aten::full_like", operands=("fill_value",), outputs=True)
def full(_like: Any, fill_value: Operand, *options: Any, outputs: Sequence[TensorType]) -> Value:
    return filled(fill_value, outputs[0])


@lowers("aten::new_full", operands=("fill_value",), outputs=True)
def new_full(_like: Value, _size: Any, fill_value: Operand, *options: Any, outputs: Sequence[TensorType]) -> Value:
    return filled(fill_value, outputs[0])


@lowers("aten::scalar_tensor", operands=("s",), outputs=True)
def scalar_tensor(number: Operand, *options: Any, outputs: Sequence[TensorType]) -> Value:
    return filled(number, outputs[0])


# What `empty` holds is undefined; zeros are as good as anything and the same every time.
@lowers("aten::zeros", "aten::zeros_like", "aten::new_zeros", "aten::empty.memory_format", "aten::empty_like",
        "aten::new_empty", "aten::empty_strided", "aten::new_empty_strided", "aten::empty_permuted", outputs=True)  # fmt: skip
def zeros(*arguments: Any, outputs: Sequence[TensorType]) -> Value:
    return filled(0, outputs[0])


@lowers("aten::ones", "aten::ones_like", "aten::new_ones", outputs=True)
def ones(*arguments: Any, outputs: Sequence[TensorType]) -> Value:
    return filled(1, outputs[0])


@lowers("aten::fill.Scalar", operands=("value",))
@lowers("aten::fill.Tensor")
def fill(x: Value, value: Operand) -> Value:
    return filled(value, x.type)


@lowers("aten::zero")
def zero(x: Value) -> Value:
    return filled(0, x.type)


def _ordinal(shape: Sequence[Size]) -> Value:
    """Number of each element, in row-major order."""
    return hlo.reshape(hlo.iota((product(shape),), "i64", 0), shape)


@lowers("aten::arange.start_step", operands=("start", "end", "step"), outputs=True, sizing=True)
def arange(start: Operand, _end: Operand, step: Operand, *options: Any, outputs: Sequence[TensorType]) -> Value:
    """start + i * step; the number of elements is the result's, so `end` itself is not needed."""
    (type,) = outputs
    # Floats are computed in f32 from an exact index; i64 would wrap where i32 does not matter.
    wide = compute_dtype(type.dtype) if is_float(type.dtype) else "i64"
    index = _ordinal(type.shape)
    scaled = hlo.multiply(cast(index, wide), broadcast_to(cast(step, wide), type.shape))
    return cast(hlo.add(scaled, broadcast_to(cast(start, wide), type.shape)), type.dtype)


@lowers("aten::arange.start", operands=("start", "end"), outputs=True, sizing=True)
def arange_from(start: Operand, end: Operand, *options: Any, outputs: Sequence[TensorType]) -> Value:
    return arange(start, end, 1, outputs=outputs)


@lowers("aten::arange", operands=("end",), outputs=True, sizing=True)
def arange_to(end: Operand, *options: Any, outputs: Sequence[TensorType]) -> Value:
    return arange(0, end, 1, outputs=outputs)


@lowers("aten::linspace", outputs=True)
def linspace(start: float, end: float, steps: int, *options: Any, outputs: Sequence[TensorType]) -> Value:
    """Both halves count from their own end, as torch does, so that both ends are exact."""
    (type,) = outputs
    wide = compute_dtype(type.dtype) if is_float(type.dtype) else "f32"
    step = 0.0 if steps <= 1 else (float(end) - float(start)) / (steps - 1)
    index = _ordinal(type.shape)

    def number(value: float) -> Value:
        return broadcast_to(hlo.constant(value, wide), type.shape)

    up = hlo.add(number(start), hlo.multiply(number(step), hlo.convert(index, wide)))
    left = hlo.subtract(broadcast_to(hlo.constant(steps - 1, "i64"), type.shape), index)
    down = hlo.subtract(number(end), hlo.multiply(number(step), hlo.convert(left, wide)))
    half = broadcast_to(hlo.constant(max(1, steps // 2), "i64"), type.shape)
    return cast(hlo.select(hlo.compare(index, half, "LT"), up, down), type.dtype)


@lowers("aten::eye", "aten::eye.m", outputs=True)
def eye(*arguments: Any, outputs: Sequence[TensorType]) -> Value:
    (type,) = outputs
    row, column = hlo.iota(type.shape, "i64", 0), hlo.iota(type.shape, "i64", 1)
    return hlo.convert(hlo.compare(row, column, "EQ"), type.dtype)


@lowers("aten::clone")
def clone(x: Value, memory_format: torch.memory_format | None) -> Value:
    return x


@lowers("aten::copy")
def copy(x: Value, source: Value, non_blocking: bool) -> Value:
    """`source` in the dtype and shape of `x`."""
    return broadcast_to(to_copy_dtype(source, x.dtype), x.shape)


@lowers("aten::_to_copy", outputs=True)
def to_copy(x: Value, *options: Any, outputs: Sequence[TensorType]) -> Value:
    return to_copy_dtype(x, outputs[0].dtype)


@lowers("prims::convert_element_type", outputs=True)
def convert_element_type(x: Value, dtype: torch.dtype, outputs: Sequence[TensorType]) -> Value:
    return to_copy_dtype(x, outputs[0].dtype)
