"""write: instructions -> the program's bytes."""

from __future__ import annotations

from collections.abc import Sequence

from libneuron_runtime.program import MAX_DIMS, Dtype, Engine, GuardOp, Kind, Micro, Micros, Opcode, Program
from libneuron_runtime.program import TileMode as _TileMode
from torch_neuronx_compile.dim import Dim, Size, Symbol
from torch_neuronx_compile.passes.errors import CompileError
from torch_neuronx_compile.passes.memory import ALIGNMENT, Sum
from torch_neuronx_compile.passes.module import Module
from torch_neuronx_compile.passes.placement import Placement
from torch_neuronx_compile.passes.program import STORAGE, Buffer, Instruction
from torch_neuronx_compile.passes.program import Micro as Step
from torch_neuronx_compile.passes.sizes import resolved

_DTYPES = {name: Dtype[storage[0]] for name, storage in STORAGE.items()}
_KINDS = {kind.name: kind for kind in Kind}
_MICROS = {micro.name: micro for micro in Micro}
_OPCODES = {opcode.name: opcode for opcode in Opcode}
_ENGINES = {engine.name: engine for engine in Engine}
_GUARDS = {guard.name: guard for guard in GuardOp}
_PARAMS = {
    "TILE": ("mode", "reduced"),
    "MATMUL": ("batch", "kind"),
    "DMA": (),
    "GATHER": ("batch", "components", "component_stride", "mode"),
    "SCATTER": ("batch", "components", "component_stride", "mode", "combine"),
    "SCAN": ("combine", "reverse"),
}
assert [mode.name for mode in _TileMode] == ["MAP", "ROW", "COLUMN"]  # emit.MODES


class _Writer:
    def __init__(self, module: Module, placement: Placement):
        self.module = module
        self.placement = placement
        self.program = Program(slot_count=module.slots, scalar_count=placement.fusion.plan.scalars)
        self.numbers: dict[int, int] = {}
        self.sizes: dict[tuple, int] = {}
        self.buffers: dict[int, int] = {}

    # ---- values -----------------------------------------------------------------------------------------------------

    def size(self, size: Size) -> int:
        """The value of a size."""
        if isinstance(size, int):
            number = self.numbers.get(size)
            if number is None:
                number = self.numbers[size] = self.program.const(size)
            return number
        size = resolved(size)
        if isinstance(size, int):
            return self.size(size)
        found = self.sizes.get(size.terms)
        if found is None:
            found = self.sizes[size.terms] = self.polynomial(size)
        return found

    def exactly(self, size: Size) -> int:
        """The value of a size, as it is written."""
        return self.size(size) if isinstance(size, int) else self.polynomial(size, resolve=False)

    def polynomial(self, size: Dim, *, resolve: bool = True) -> int:
        program = self.program
        of = self.size if resolve else self.exactly
        total = program.const(0)
        for monomial, coefficient in size.terms:
            term = program.const(1)
            for atom in monomial:
                if isinstance(atom, Symbol):
                    value = program.slot(atom.source)
                else:
                    value = getattr(program, atom.op)(of(atom.a), of(atom.b))
                term = program.mul(term, value)
            if coefficient < 0:
                total = program.sub(total, program.mul(term, program.const(-coefficient)))
            else:
                total = program.add(total, program.mul(term, program.const(coefficient)))
        return total

    def bytes_of(self, size: Size | Sum) -> int:
        if not isinstance(size, Sum):
            return self.size(size)
        total = self.program.const(0)
        for part in size.parts:
            value = self.size(part) if isinstance(part, int) else self.program.align(self.size(part.size), ALIGNMENT)
            total = self.program.add(total, value)
        return total

    # ---- records ----------------------------------------------------------------------------------------------------

    def boundary(self) -> None:
        """Inputs and outputs, in launch order."""
        plan, program = self.placement.fusion.plan, self.program
        for n, (node, buffer) in enumerate(zip(plan.inputs, self.placement.inputs, strict=True)):
            dims = self.sizes_of(node.shape, f"input {n}")
            self.buffers[id(buffer)] = program.input(f"input{n}", _DTYPES[node.dtype], dims, self.size(buffer.nbytes))
        for n, (output, buffer) in enumerate(zip(plan.outputs, self.placement.outputs, strict=True)):
            dims = self.sizes_of(output.shape, f"output {n}")
            self.buffers[id(buffer)] = program.output(
                f"output{n}", _DTYPES[output.dtype], dims, self.size(buffer.nbytes), output.alias
            )

    def sizes_of(self, shape: Sequence[Size], what: str) -> list[int]:
        if len(shape) > MAX_DIMS:
            raise CompileError(
                "", f"{what} has {len(shape)} dimensions, and programs take {MAX_DIMS}: join some with reshape()"
            )
        return list(map(self.size, shape))

    def buffer(self, buffer: Buffer) -> int:
        number = self.buffers.get(id(buffer))
        if number is None:
            if buffer.kind == "CONSTANT":
                number = self.program.constant(buffer.data)
            else:
                number = self.program.temp(self.bytes_of(buffer.offset), self.size(buffer.nbytes))
            self.buffers[id(buffer)] = number
        return number

    def instruction(self, instruction: Instruction) -> None:
        program, size = self.program, self.size
        if len(instruction.extents) > MAX_DIMS:
            raise CompileError(instruction.debug, f"it takes {len(instruction.extents)} loops over its tensors' dimensions, and an "
                               f"instruction has {MAX_DIMS}: join dimensions with reshape(), or call contiguous() before")  # fmt: skip
        patterns = [
            program.pattern(self.buffer(w.buffer), _DTYPES[w.dtype], list(map(size, w.strides)), size(w.offset))
            for w in instruction.windows
        ]
        micros = self.micros(instruction.micro) if instruction.micro else None
        params = dict(zip(_PARAMS[instruction.opcode], instruction.params, strict=True))
        if "component_stride" in params:
            params["component_stride"] = size(params["component_stride"])
        program.instruction(_OPCODES[instruction.opcode], list(map(size, instruction.extents)), patterns, micros,
                            engine=_ENGINES[instruction.engine], debug=instruction.debug, **params)  # fmt: skip

    def micros(self, steps: Sequence[Step]) -> Micros:
        micros = Micros()
        for step in steps:
            kind = _KINDS[step.kind]
            match step.op:
                case "LOAD":
                    register = micros.load(step.a, kind)
                case "STORE":
                    micros.store(step.dst, step.a)
                    continue
                case "CONST":
                    if step.source == "LITERAL":
                        register = micros.constant(kind, step.imm)
                    elif step.source == "SCALAR":
                        register = micros.scalar(kind, step.imm)
                    else:
                        register = micros.value(kind, self.size(step.imm))
                case "IOTA":
                    register = micros.iota(step.a)
                case "RANDOM":
                    register = micros.random(step.a, step.imm)
                case "ACC":
                    register = micros.accumulator(kind)
                case "CONVERT":
                    register = micros.convert(kind, step.a)
                case _:
                    register = micros.op(_MICROS[step.op], kind, step.a, step.b, step.c)
            assert register == step.dst
        return micros


def write(module: Module, placement: Placement, instructions: Sequence[Instruction], scratch: Size | Sum) -> bytes:
    """The bytes of a program. Everything in it was decided by the passes before."""
    self = _Writer(module, placement)
    self.boundary()
    for instruction in instructions:
        self.instruction(instruction)
    self.program.scratch(self.bytes_of(scratch))
    if module.env is not None:
        for guard in module.env.guards:
            # As the guard was made: after its own unification both sides would be one.
            self.program.guard(_GUARDS[guard.op], self.exactly(guard.left), self.exactly(guard.right))
    return self.program.to_bytes()
