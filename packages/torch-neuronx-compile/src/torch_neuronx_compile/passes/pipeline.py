"""The passes in their order."""

from __future__ import annotations

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


class Compiled:
    """What the passes made of a module: the program's bytes and the instructions that they hold."""

    __slots__ = ("name", "program", "instructions")

    def __init__(self, name: str, program: bytes, instructions: list[Instruction]):
        self.name = name
        self.program = program
        self.instructions = instructions


def compile_module(module: Module) -> Compiled:
    """StableHLO -> program. Raises `CompileError` for a module that no program can express."""
    results = simplify(module.results)
    legality.after_simplify(results)
    module = module.with_results(results)
    plan = layout(module)
    legality.after_layout(plan)
    fusion = fuse(plan)
    legality.after_fuse(fusion)
    placement = place(fusion)
    legality.after_place(placement)
    instructions = emit(placement)
    legality.after_emit(instructions)
    scratch = memory(instructions)
    legality.after_memory(instructions, scratch)
    return Compiled(module.name, write(module, placement, instructions, scratch), instructions)
