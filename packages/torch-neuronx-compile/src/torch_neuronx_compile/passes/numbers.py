"""Rounding and wrapping of numbers to element types, exactly as the programs do it."""

from __future__ import annotations

import math
import struct

_RANGE = {"ui8": (8, False), "i8": (8, True), "i16": (16, True), "i32": (32, True), "i64": (64, True)}


def to_float32(value: float) -> float:
    """The nearest float32; out of range becomes an infinity."""
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def to_bfloat16(value: float) -> float:
    """The nearest bf16 of the nearest float32, ties to even."""
    value = to_float32(value)
    if not math.isfinite(value):
        return value
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return struct.unpack("<f", struct.pack("<I", bits))[0]


def to_float16(value: float) -> float:
    """The nearest fp16 of the nearest float32, ties to even."""
    value = to_float32(value)
    try:
        return struct.unpack("<e", struct.pack("<e", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def to_float(value: float, dtype: str) -> float:
    """`value` as an element of a float type. f64 is computed in float32."""
    if dtype == "bf16":
        return to_bfloat16(value)
    if dtype == "f16":
        return to_float16(value)
    return to_float32(value)


def to_integer(value: int, dtype: str) -> int:
    """`value` as an element of an integer type (the low bits), or of i1 (0 or 1)."""
    if dtype == "i1":
        return int(bool(value))
    bits, signed = _RANGE[dtype]
    value &= (1 << bits) - 1
    return value - (1 << bits) if signed and value >> (bits - 1) else value


def to_bytes(values: tuple, dtype: str) -> bytes:
    """Elements of a constant in memory, little-endian."""
    if dtype == "bf16":
        return b"".join(struct.pack("<f", to_bfloat16(v))[2:] for v in values)
    if dtype in ("f32", "f16", "f64"):
        rounded = values if dtype == "f64" else [to_float(v, dtype) for v in values]
        return struct.pack(f"<{len(values)}{ {'f32': 'f', 'f16': 'e', 'f64': 'd'}[dtype] }", *rounded)
    code = {"i1": "B", "ui8": "B", "i8": "b", "i16": "h", "i32": "i", "i64": "q"}[dtype]
    return struct.pack(f"<{len(values)}{code}", *(to_integer(v, dtype) for v in values))
