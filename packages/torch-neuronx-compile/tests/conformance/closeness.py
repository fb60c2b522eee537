"""Comparison of a result with the expected one under a tolerance."""

from __future__ import annotations

import torch

from .case import Tolerance

_MANTISSA = {torch.float32: 23, torch.bfloat16: 7, torch.float16: 10, torch.float64: 23}
_SMALLEST_EXPONENT = {torch.float32: -126, torch.bfloat16: -126, torch.float16: -14, torch.float64: -126}


def difference(got: torch.Tensor, expected: torch.Tensor, tolerance: Tolerance, *, xla: bool = False) -> str | None:
    """What is wrong with `got`, or None. `xla`: it comes from XLA's CPU backend."""
    if got.dtype != expected.dtype or got.shape != expected.shape:
        return f"got {got.dtype}{list(got.shape)}, expected {expected.dtype}{list(expected.shape)}"
    if got.numel() == 0:
        return None
    if not got.dtype.is_floating_point:
        wrong = got != expected
    else:
        a, b = got.double(), expected.double()
        unit = torch.exp2(
            torch.frexp(b).exponent.clamp(min=_SMALLEST_EXPONENT[got.dtype] + 1) - 1 - _MANTISSA[got.dtype]
        )
        in_single = got.dtype == torch.float64 and not xla  # the device computes float64 as float32
        allowed = (tolerance.ulp + tolerance.xla * xla + in_single) * unit.double() + tolerance.absolute
        same = (a == b) | (a.isnan() & b.isnan()) | ((a - b).abs() <= allowed)
        if tolerance.absolute == 0:
            same &= ~((a == 0) & (b == 0) & (torch.signbit(a) != torch.signbit(b)))
        wrong = ~same
    if not wrong.any():
        return None
    first = wrong.nonzero()[0].tolist()
    got_first, expected_first = got[tuple(first)].item(), expected[tuple(first)].item()
    text = f"{int(wrong.sum())} of {wrong.numel()} elements wrong, first at {first}: got {got_first!r}, expected {expected_first!r}"
    if got.dtype.is_floating_point:
        finite = ((a - b).abs() / unit)[torch.isfinite(a - b)]
        text += f", worst {finite.max().item() if finite.numel() else float('nan'):.3g} ulp, {(a - b).abs().nan_to_num().max().item():.3g}"
    return text
