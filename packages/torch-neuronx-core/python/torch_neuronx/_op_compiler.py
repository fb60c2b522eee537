"""The contract between the device and the op compiler, which turns one class of operator calls into a NEFF.

The op compiler is the object that the entry point ``default`` of the group ``torch_neuronx.op_compiler`` names. It is loaded when
an operator is called for the first time, never at import.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Protocol

import torch

from torch_neuronx.precision import warn_float64

ENTRY_POINT_GROUP = "torch_neuronx.op_compiler"


@dataclass(frozen=True, slots=True)
class OpTraits:
    """What the op compiler says of an operator before any call of it."""

    operands: tuple[int, ...] = ()
    """Positions of schema arguments whose scalars are given at launch and are no part of the cache key."""
    random: bool = False
    """Whether programs take (seed, offset) of the device generator as their last two scalars."""
    sizing: bool = False
    """Whether the results' sizes depend on the scalars of `operands` (arange): one program, but sizes for each call."""


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A tensor argument or result."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    buffer: int | None
    """Position among the launch's inputs; None for a result and for a host scalar."""
    scalar: int | None
    """Position among the launch's scalars: a 0-d CPU tensor, passed by value."""
    wrapped: bool
    """A Python number that torch wrapped into a tensor."""
    alias: int | None
    """Results: the input at the very same address, with the same sizes and strides, that it overwrites."""


@dataclass(frozen=True, slots=True)
class LaunchScalar:
    """A scalar argument that :attr:`OpTraits.operands` names."""

    scalar: int
    """Position among the launch's scalars."""
    type: type
    """bool, int or float."""


@dataclass(frozen=True, slots=True)
class OpRequest:
    """One call, which stands for its class."""

    op: str
    """The operator as called, e.g. ``"aten::add_.Tensor"``."""
    args: tuple
    """All schema arguments in order but the ``out`` ones, defaults filled in: TensorSpec, LaunchScalar, list, None, bool, int,
    float, complex, str, torch.dtype, torch.device, torch.layout or torch.memory_format. A generator is None."""
    outputs: tuple[TensorSpec, ...]
    """Results to be written: the returned tensors in schema order, then written arguments that are not returned."""
    slots: tuple[int, ...]
    """Sizes, then strides, of each input and then of each output: the hints of symbolic sizes."""


class OpCompiler(Protocol):
    """Both methods are called with the GIL and without a lock of the device."""

    def describe(self, op: str) -> OpTraits | None:
        """Traits of an operator, or None when there is no lowering for it. Asked once an operator and process."""

    def compile(self, request: OpRequest) -> bytes | str:
        """A NEFF for the class of the request, or why its arguments are not supported. Raises to fail the call."""


_compiler: OpCompiler | None = None
_searched = False


def install(compiler: OpCompiler | None) -> None:
    """Use ``compiler`` from now on, and forget what an earlier one made. None: look for the entry point again."""
    global _compiler, _searched
    from torch_neuronx import _C

    _compiler, _searched = compiler, compiler is not None
    _C._clear_compilation_cache()


def _find() -> OpCompiler | None:
    global _compiler, _searched
    if not _searched:
        found = list(entry_points(group=ENTRY_POINT_GROUP, name="default"))
        if len(found) > 1:
            names = ", ".join(entry.value for entry in found)
            raise RuntimeError(f"several op compilers are installed, one is wanted: {names}")
        if found:
            loaded = found[0].load()
            _compiler = loaded() if isinstance(loaded, type) else loaded
        _searched = True
    return _compiler


def describe(op: str) -> OpTraits | str:
    """Traits of an operator, or why it has none. Called by the device."""
    compiler = _find()
    if compiler is None:
        return "no op compiler is installed (package torch-neuronx-compile)"
    return compiler.describe(op) or "no lowering is registered for it"


def compile(request: OpRequest) -> bytes | str:
    """The op compiler's answer. Called by the device."""
    if any(_holds_float64(value) for value in (*request.args, *request.outputs)):
        warn_float64()
    return _compiler.compile(request)


def _holds_float64(value: object) -> bool:
    """Whether a tensor of the device, or a list with one, has the dtype. Numbers are none."""
    if isinstance(value, (list, tuple)):
        return any(map(_holds_float64, value))
    return isinstance(value, TensorSpec) and value.dtype == torch.float64 and value.scalar is None


def persistent_hits() -> int:
    """Programs that the op compiler did not make but found in a store on disk, where it counts them."""
    return getattr(_compiler, "persistent_hits", 0)


def persistent_misses() -> int:
    """Requests that no store on disk could answer, where the op compiler counts them."""
    return getattr(_compiler, "persistent_misses", 0)
