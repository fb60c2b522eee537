"""Numbers as an element type holds them."""

from __future__ import annotations

import math
import struct

from torch_neuronx_compile.stablehlo.ops import kind


def representable(value: bool | int | float, dtype: str) -> bool | int | float:
    """The number that an element of `dtype` holds after storing `value`: floats round to nearest even, integers wrap."""
    if dtype == "i1":
        return bool(value)
    if kind(dtype) == "i":
        bits = int(value)
        if dtype == "ui8":
            return bits & 0xFF
        half = 1 << (int(dtype[1:]) - 1)
        return (bits + half) % (2 * half) - half
    value = float(value)
    if dtype == "f64" or value == 0 or not math.isfinite(value):
        return value
    single = _to_single(value)
    if dtype == "f32" or not math.isfinite(single):
        return single
    if dtype == "f16":
        return _to_half(single)
    (bits,) = struct.unpack("<I", struct.pack("<f", single))
    bits += 0x7FFF + ((bits >> 16) & 1)
    return struct.unpack("<f", struct.pack("<I", bits & 0xFFFF0000))[0]


def _to_single(value: float) -> float:
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def _to_half(value: float) -> float:
    try:
        return struct.unpack("<e", struct.pack("<e", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


_INFINITY_BITS = {"f64": (0x7FF0000000000000, 16), "f32": (0x7F800000, 8), "bf16": (0x7F80, 4), "f16": (0x7C00, 4)}
_QUIET_BIT = {"f64": 1 << 51, "f32": 1 << 22, "bf16": 1 << 6, "f16": 1 << 9}


def literal(value: bool | int | float, dtype: str) -> str:
    """The text of a representable number in MLIR's syntax: NaN and infinities as bits, other floats in decimal."""
    if dtype == "i1":
        return "true" if value else "false"
    if kind(dtype) == "i":
        return str(int(value))
    value = float(value)
    bits, digits = _INFINITY_BITS[dtype]
    if math.isnan(value):
        return f"0x{bits | _QUIET_BIT[dtype]:0{digits}X}"
    if math.isinf(value):
        return f"0x{bits | (1 << (4 * digits - 1) if value < 0 else 0):0{digits}X}"
    mantissa, exponent, power = repr(value).partition("e")
    return (mantissa if "." in mantissa else f"{mantissa}.0") + exponent + power
