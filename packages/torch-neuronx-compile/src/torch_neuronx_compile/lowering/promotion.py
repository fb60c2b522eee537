"""Element types: torch's names for them, its promotion rules, and conversions of operands."""

from __future__ import annotations

import math

import torch

import torch_neuronx_compile.stablehlo as hlo
from torch_neuronx_compile.dim import Dim
from torch_neuronx_compile.lowering.registry import Unsupported
from torch_neuronx_compile.stablehlo import Value

Number = bool | int | float | Dim
Operand = Value | Number

HLO_DTYPE: dict[torch.dtype, str] = {
    torch.float32: "f32", torch.bfloat16: "bf16", torch.float16: "f16", torch.float64: "f64", torch.bool: "i1",
    torch.uint8: "ui8", torch.int8: "i8", torch.int16: "i16", torch.int32: "i32", torch.int64: "i64",
}  # fmt: skip
TORCH_DTYPE: dict[str, torch.dtype] = {name: dtype for dtype, name in HLO_DTYPE.items()}

REDUCED_FLOATS = frozenset(("bf16", "f16"))  # stored in two bytes, computed in f32

_CATEGORY = {"i1": 0, "ui8": 1, "i8": 1, "i16": 1, "i32": 1, "i64": 1, "f16": 2, "bf16": 2, "f32": 2, "f64": 2}
_PROMOTED = {(a, b): HLO_DTYPE[torch.promote_types(x, y)] for x, a in HLO_DTYPE.items() for y, b in HLO_DTYPE.items()}


def hlo_dtype(dtype: torch.dtype) -> str:
    """The element type of a torch dtype. Raises `Unsupported` for one that the device does not have."""
    name = HLO_DTYPE.get(dtype)
    if name is None:
        raise Unsupported(f"dtype {dtype} has no element type on this device; it has {', '.join(map(str, HLO_DTYPE))}")
    return name


def default_float() -> str:
    """The element type of torch's default dtype."""
    return HLO_DTYPE[torch.get_default_dtype()]


def is_float(dtype: str) -> bool:
    """Whether an element type is a float."""
    return _CATEGORY[dtype] == 2


def is_integer(dtype: str) -> bool:
    """Whether an element type is an integer, boolean excluded."""
    return _CATEGORY[dtype] == 1


def compute_dtype(dtype: str) -> str:
    """The element type in which a float is computed: f32 for bf16 and f16, otherwise itself."""
    return "f32" if dtype in REDUCED_FLOATS else dtype


def _number_dtype(number: Number) -> str:
    if isinstance(number, bool):
        return "i1"
    if isinstance(number, (int, Dim)):
        return "i64"
    if isinstance(number, float):
        return default_float()
    raise Unsupported(f"a scalar of type {type(number).__name__}; bool, int and float work")


def result_type(*operands: Operand) -> str:
    """torch.result_type: tensors with dimensions outrank 0-d tensors, which outrank Python numbers, unless the category
    (boolean, integer, float) of the lower rank is higher."""
    best: list[str | None] = [None, None, None]  # dimensioned, 0-d, wrapped
    for operand in operands:
        if not isinstance(operand, Value):
            rank, dtype = 2, _number_dtype(operand)
        elif operand.wrapped:
            rank, dtype = 2, default_float() if operand.dtype == "f64" else operand.dtype
        else:
            rank, dtype = (0 if operand.shape else 1), operand.dtype
        known = best[rank]
        best[rank] = dtype if known is None else _PROMOTED[known, dtype]
    result = None
    for dtype in best:
        if dtype is not None:
            if result is None:
                result = dtype
            elif _CATEGORY[dtype] > _CATEGORY[result]:
                result = _PROMOTED[result, dtype]
    assert result is not None
    return result


def float_result_type(*operands: Operand) -> str:
    """`result_type`, with integers and booleans becoming the default float (true division, exp, mean...)."""
    dtype = result_type(*operands)
    return dtype if is_float(dtype) else default_float()


def cast(operand: Operand, dtype: str) -> Value:
    """An operand in an element type; a number becomes a constant of rank 0.

    A number given at launch is a double; torch rounds it to float before it rounds it to bf16 or fp16. Raises
    `Unsupported` for a number out of the range of `dtype`, which torch's kernels refuse or not, each in its own way.
    """
    if isinstance(operand, Value):
        if operand.dtype == "f64" and dtype in REDUCED_FLOATS:
            operand = hlo.convert(operand, "f32")
        return hlo.convert(operand, dtype)
    if isinstance(operand, float) and not is_float(dtype) and dtype != "i1":
        operand = int(operand)
    elif dtype == "i1":
        operand = bool(operand)
    return constant(operand, dtype)


def constant(number: Number, dtype: str) -> Value:
    """A number as a constant of rank 0. Raises `Unsupported` for one out of the range of `dtype`."""
    if not isinstance(number, Dim) and not _fits(number, dtype):
        raise Unsupported(f"the number {number} does not fit {TORCH_DTYPE[dtype]}; use a wider dtype")
    return hlo.constant(number, dtype)


def _fits(number: bool | int | float, dtype: str) -> bool:
    what = TORCH_DTYPE.get(dtype)  # none: of our own making, such as the words of random numbers
    if what in (None, torch.bool) or (is_float(dtype) and not math.isfinite(number)):
        return True
    limits = torch.finfo(what) if is_float(dtype) else torch.iinfo(what)
    lowest = -limits.max if dtype == "ui8" else limits.min  # a negative number wraps
    return lowest <= number <= limits.max
