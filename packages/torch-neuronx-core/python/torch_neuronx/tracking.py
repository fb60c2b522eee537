"""Which operators ran natively on the device, and which on the CPU.

*Native* means computed by a program that libneuron-runtime executed. Everything that ATen's CPU kernels computed is a *fallback*.
"""

import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

import torch

from torch_neuronx import _C

# Frames of these are not the user's.
LIBRARIES = tuple(str(Path(file).parent) + "/" for file in (torch.__file__, __file__))

# get_executed_ops() repeats a name at most this often, so that a long training run does not make a list of millions.
MAX_REPEATS = 1000


class NeuronFallbackWarning(UserWarning):
    """An operator ran on the CPU because the device has no program for it. Given once an operator and process."""


@dataclass(frozen=True, slots=True)
class OpCounters:
    """How often one operator overload ran since the last :func:`clear_op_tracking`."""

    native: int
    """Calls computed on the device."""
    compiled: int
    """Programs that the op compiler made for it."""
    fallback: int
    """Calls computed by ATen's CPU kernel."""


def op_counters() -> dict[str, OpCounters]:
    """Counters by operator overload, e.g. ``"aten::add.Tensor"``, of the operators called so far."""
    return {name: OpCounters(*counts) for name, counts in _C.operator_counts().items()}


def get_executed_ops() -> list[str]:
    """Names of operators that ran natively, e.g. ``"aten::add"``, one entry a call; at most ``MAX_REPEATS`` entries a name.

    Sorted by name: the order of calls is not kept.
    """
    calls: dict[str, int] = {}
    for name, counters in op_counters().items():
        base = name.partition(".")[0]
        calls[base] = calls.get(base, 0) + counters.native
    return [name for name in sorted(calls) for _ in range(min(calls[name], MAX_REPEATS))]


def get_fallback_ops() -> list[str]:
    """Names of operators that ran on the CPU, e.g. ``"aten::_unique2"``, each once, sorted. Empty: everything ran natively."""
    return sorted({name.partition(".")[0] for name, counters in op_counters().items() if counters.fallback})


def warn_fallback(message: str) -> None:
    """Warn on the user's line. Called by the device."""
    warnings.warn(message, NeuronFallbackWarning, stacklevel=2, skip_file_prefixes=LIBRARIES)


def user_line() -> str:
    """The innermost Python line of the calling thread outside torch, e.g. ``"train.py:12"``, or an empty string. Called by the device."""
    frame = sys._getframe()
    while frame is not None and frame.f_code.co_filename.startswith(LIBRARIES):
        frame = frame.f_back
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


def clear_op_tracking() -> None:
    """Forget all counts."""
    _C.clear_operator_counts()
