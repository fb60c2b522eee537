"""A compiled module as a NEFF file."""

from __future__ import annotations

from libneuron_runtime import neff

from torch_neuronx_compile.passes.module import Module
from torch_neuronx_compile.passes.pipeline import Compiled


def link(compiled: Compiled, module: Module) -> bytes:
    """The NEFF around a program. Raises libneuron_runtime.NeffError when the program breaks a rule of the format: an internal error."""
    return neff.pack(compiled.program, name=module.name)
