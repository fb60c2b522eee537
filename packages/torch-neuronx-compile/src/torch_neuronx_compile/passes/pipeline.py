"""The passes in their order."""

from __future__ import annotations

from libneuron_runtime.program import disassemble
from torch_neuronx_compile.artifacts import Artifacts
from torch_neuronx_compile.passes import legality
from torch_neuronx_compile.passes.emit import emit
from torch_neuronx_compile.passes.fuse import fuse
from torch_neuronx_compile.passes.layout import layout
from torch_neuronx_compile.passes.memory import memory
from torch_neuronx_compile.passes.module import Module
from torch_neuronx_compile.passes.placement import place
from torch_neuronx_compile.passes.program import Instruction
from torch_neuronx_compile.passes.simplify import simplify
from torch_neuronx_compile.passes.write import write
from torch_neuronx_compile.stablehlo import print_module


class Compiled:
    """What the passes made of a module: the program's bytes and the instructions that they hold."""

    __slots__ = ("program", "instructions")

    def __init__(self, program: bytes, instructions: list[Instruction]):
        self.program = program
        self.instructions = instructions


def compile_module(module: Module, artifacts: Artifacts | None = None) -> Compiled:
    """StableHLO -> program. Raises `CompileError` for a module that no program can express."""
    keep = (artifacts or Artifacts(module.name)).keep
    keep("1-stablehlo.mlir", lambda: print_module(module.results, module.parameters, symbolic=True))
    results = simplify(module.results)
    legality.after_simplify(results)
    keep("2-simplify.mlir", lambda: print_module(results, module.parameters, symbolic=True))
    module = module.with_results(results)
    plan = layout(module)
    legality.after_layout(plan)
    keep("3-layout.txt", lambda: repr(plan))
    fusion = fuse(plan)
    legality.after_fuse(fusion)
    keep("4-fuse.txt", lambda: repr(fusion))
    placement = place(fusion)
    legality.after_place(placement)
    keep("5-place.txt", lambda: repr(placement))
    instructions = emit(placement)
    legality.after_emit(instructions)
    keep("6-emit.txt", lambda: "\n".join(map(repr, instructions)))
    scratch = memory(instructions)
    legality.after_memory(instructions, scratch)
    program = write(module, placement, instructions, scratch)
    keep("7-program.txt", lambda: disassemble(program))
    return Compiled(program, instructions)
