"""Samples of torch's databases, run on the device and on the CPU, and the rule by which results are equal.

The rule. A result has the CPU's type, dtype and shape, and either lies within `torch.testing`'s tolerances of the CPU's
numbers, or is about as near to the exact result as the CPU's is: both are compared with the same computed by the CPU in
float64, and the device's error may be twice the CPU's largest plus four units in the last place. Two results
of the CPU that differ between two seeds are random: then type, dtype and shape decide.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch.testing._internal.common_utils import TestCase
from torch.utils._pytree import tree_flatten, tree_map

WIDE = {
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float32: torch.float64,
    torch.complex64: torch.complex128,
}
SEED = 20
ERRORS = (RuntimeError, IndexError, ValueError, TypeError)

Parts = tuple[Any, tuple, dict]  # input, args, kwargs of a sample
Function = Callable[[Parts, int], Any]  # takes a seed as well


def moved(value: Any, device: str) -> Any:
    """Copies of all tensors and modules on another device: of whole storages, so that strides, offsets and overlaps stay."""

    def move(x: Any) -> Any:
        if isinstance(x, torch.device):
            return torch.device(device)
        if isinstance(x, torch.nn.Module):
            return copy.deepcopy(x).to(device)
        if not isinstance(x, torch.Tensor):
            return x
        if x.layout != torch.strided:
            return x.detach().to(device).requires_grad_(x.requires_grad)
        plain = x.detach().resolve_conj().resolve_neg()
        whole = plain.as_strided((plain.untyped_storage().nbytes() // plain.element_size(),), (1,), 0)
        there = whole.to(device).as_strided(plain.size(), plain.stride(), plain.storage_offset())
        return there.requires_grad_(x.requires_grad)

    return tree_map(move, value)


def widened(value: Any) -> Any:
    """Copies in float64 (complex128) of floating tensors and modules; such dtypes likewise."""

    def widen(x: Any) -> Any:
        if isinstance(x, torch.dtype):
            return WIDE.get(x, x)
        if isinstance(x, torch.nn.Module):
            return copy.deepcopy(x).double()
        if isinstance(x, torch.Tensor) and x.dtype in WIDE:
            return x.detach().to(WIDE[x.dtype]).requires_grad_(x.requires_grad)
        return x

    return tree_map(widen, value)


def near(got: torch.Tensor, cpu: torch.Tensor, exact: torch.Tensor) -> bool:
    """Whether |got - exact| <= 2 max |cpu - exact| + 4 ulp where both are finite, and `got` is `cpu` elsewhere."""
    wide = WIDE.get(cpu.dtype)
    if wide is None or exact.shape != cpu.shape or exact.dtype != wide:
        return False
    finite = torch.isfinite(exact) & torch.isfinite(cpu)
    if not torch.allclose(got[~finite], cpu[~finite], equal_nan=True):
        return False
    narrow = cpu.dtype
    got, cpu, exact = (x[finite].to(wide) for x in (got, cpu, exact))
    if got.numel() == 0:
        return True
    limit = 2 * (cpu - exact).abs().max() + 4 * torch.finfo(narrow).eps * exact.abs()
    return bool(((got - exact).abs() <= limit).all())


def check(case: TestCase, function: Function, sample: Parts, device: str) -> None:
    """Fails unless `function` gives the same on the device as on the CPU, where an error of the CPU asks for one of the
    device."""
    try:
        cpu, expected = tree_flatten(function(moved(sample, "cpu"), SEED))
    except ERRORS as error:
        with case.assertRaises(ERRORS, msg=f"the CPU raises {type(error).__name__}: {error}"):
            function(moved(sample, device), SEED)
        return
    got, structure = tree_flatten(function(moved(sample, device), SEED))
    case.assertEqual(structure, expected)
    for place, (a, b) in enumerate(zip(got, cpu, strict=True)):
        if not isinstance(b, torch.Tensor):
            case.assertEqual(type(a), type(b))
            if not isinstance(b, torch.device):
                case.assertEqual(a, b)
            continue
        case.assertEqual(a.device.type, "neuron")
        case.assertEqual((a.dtype, a.shape, a.layout), (b.dtype, b.shape, b.layout))
        a, b = a.detach().cpu(), b.detach()
        try:
            case.assertEqual(a, b)
        except AssertionError:
            if is_random(function, moved(sample, "cpu"), place, b):
                continue
            if not near(a, b, tree_flatten(function(widened(moved(sample, "cpu")), SEED))[0][place].detach()):
                raise


def is_random(function: Function, sample: Parts, place: int, cpu: torch.Tensor) -> bool:
    again = tree_flatten(function(sample, SEED + 1))[0][place].detach()
    return not torch.equal(again.nan_to_num(), cpu.nan_to_num())
