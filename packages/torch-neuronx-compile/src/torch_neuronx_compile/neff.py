"""A module as a NEFF file: the one entrance to the passes."""

from __future__ import annotations

from libneuron_runtime import neff
from torch_neuronx_compile.artifacts import Artifacts
from torch_neuronx_compile.cache import fingerprint
from torch_neuronx_compile.passes.module import Module
from torch_neuronx_compile.passes.pipeline import compile_module
from torch_neuronx_compile.stablehlo import print_module


def module_key(module: Module) -> str:
    """Key of a frozen module: its text without comments (which hold the user's lines) and how the launch lays out its buffers."""
    text = print_module(module.results, module.parameters)
    bare = "\n".join(line.split("  //")[0] for line in text.splitlines())
    roles = [parameter.role for parameter in module.parameters]
    layout = (roles, module.strides, module.output_strides, module.aliases, module.excess_precision)
    return fingerprint.key("module", bare, repr(layout))


def compile_to_neff(module: Module, artifacts: Artifacts | None = None) -> bytes:
    """StableHLO -> NEFF.

    Raises `CompileError` for a module that no program can express, and libneuron_runtime.NeffError when the program breaks a rule of
    the format, which is a fault of the compiler.
    """
    artifacts = artifacts or Artifacts(module.name)
    compiled = compile_module(module, artifacts)
    packed = neff.pack(compiled.program, name=module.name)
    artifacts.keep("8-program.neff", lambda: packed)
    return packed
