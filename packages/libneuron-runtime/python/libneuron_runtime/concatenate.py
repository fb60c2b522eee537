"""Several programs as one: each instruction as it was, in the order of the parts.

    whole = concatenate(
        [
            Part(add, inputs=[Region("x"), Region("y")], outputs=[Region("sum")]),
            Part(relu, inputs=[Region("sum")], outputs=[Region("z")]),
        ],
        inputs=["x", "y"],
        outputs=["z"],
    )

The parts see the bytes that they would see when launched one after the other, so the results are the same bit for bit. What
no one outside sees ("sum") becomes scratch memory.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from libneuron_runtime._listing import Records, read
from libneuron_runtime._schema import DTYPE_BYTES, NONE, PARAMS, BufferKind, ImmSource, ValueOp
from libneuron_runtime.program import Dtype, Micros, Opcode, Program

_ALIGNMENT = 64  # of TEMP buffers, in bytes


@dataclass(frozen=True)
class Region:
    """Where one input or output of a part begins: `offset` bytes into a memory, which is known by any hashable name."""

    memory: Hashable
    offset: int = 0


@dataclass(frozen=True)
class Part:
    """One launch. `slots`: its numbers, to be written into the result; None leaves them open."""

    program: bytes
    inputs: Sequence[Region]
    outputs: Sequence[Region]
    slots: Sequence[int] | None = None


def concatenate(parts: Sequence[Part], *, inputs: Sequence[Hashable], outputs: Sequence[Hashable]) -> bytes:
    """One program that does what the parts do one after the other.

    inputs: memories that a launch gives, in the order of the result's inputs. outputs: memories whose contents are wanted
    afterwards, in the order of its outputs; one that is an input as well is written in place. All others are scratch memory.
    Memories are buffers of bytes (UINT8), as large as their regions reach. Slots that are left open, and scalars, are those of
    the first part, then those of the second, and so on.

    Raises ValueError when a part does not fit its program (number of regions or slots), a region is not aligned to its dtype, a
    part writes an input that is no output, or reads a memory that neither is an input nor was written.
    """
    return _Concatenation(parts, inputs, outputs).build()


class _Concatenation:
    def __init__(self, parts: Sequence[Part], inputs: Sequence[Hashable], outputs: Sequence[Hashable]) -> None:
        self.program = Program()
        self.inputs, self.outputs = list(inputs), list(outputs)
        self.parts = [_Part(number, part, self.program) for number, part in enumerate(parts)]

    def build(self) -> bytes:
        p = self.program
        self._check_memories()
        sizes = self._sizes()
        given = {name: p.input(f"in{i}", Dtype.UINT8, [sizes[name]]) for i, name in enumerate(self.inputs)}
        written = {
            name: p.output(
                f"out{i}", Dtype.UINT8, [sizes[name]], alias=self.inputs.index(name) if name in given else None
            )
            for i, name in enumerate(self.outputs)
        }
        end = p.const(0)
        for name, size in sizes.items():
            if name not in given and name not in written:
                written[name] = p.temp(end, size)
                end = p.add(end, p.align(size, _ALIGNMENT))
        scratch = end
        for part in self.parts:
            scratch = p.max(scratch, p.add(end, part.values[part.records.header["scratch_bytes"]]))
            part.append({**written, **given}, written, end)
            # From here on the memory is read where it was written.
            given = {name: buffer for name, buffer in given.items() if name not in part.writes}
        p.scratch(scratch)
        return p.to_bytes()

    def _check_memories(self) -> None:
        for role, names in (("input", self.inputs), ("output", self.outputs)):
            if len(set(names)) != len(names):
                raise ValueError(f"an {role} is named twice: {names}")
        known = set(self.inputs)
        for part in self.parts:
            for region in part.part.inputs:
                if region.memory not in known:
                    raise ValueError(
                        f"part {part.number} reads {region.memory!r}, which is no input and was not written"
                    )
            for name in part.writes:
                if name in self.inputs and name not in self.outputs:
                    raise ValueError(f"part {part.number} writes {name!r}, an input that is no output")
            known |= part.writes
        for name in self.outputs:
            if name not in known:
                raise ValueError(f"no part writes the output {name!r}")

    def _sizes(self) -> dict[Hashable, int]:
        """By memory: the value that says how many bytes its regions reach."""
        p = self.program
        sizes: dict[Hashable, int] = {name: p.const(0) for name in (*self.inputs, *self.outputs)}
        for part in self.parts:
            for region, nbytes in part.regions():
                end = p.add(p.const(region.offset), nbytes)
                sizes[region.memory] = p.max(sizes.get(region.memory, end), end)
        return sizes


class _Part:
    """One part's records, and its values as values of the whole."""

    def __init__(self, number: int, part: Part, program: Program) -> None:
        self.number, self.part, self.program = number, part, program
        self.records: Records = read(part.program)
        header = self.records.header
        if part.slots is not None and len(part.slots) != header["slot_count"]:
            raise ValueError(f"part {number} has {header['slot_count']} slots, but {len(part.slots)} numbers for them")
        kinds = [self.records.buffers[io["buffer"]]["kind"] for io in self.records.io]
        for role, kind, given in (
            ("inputs", BufferKind.INPUT, part.inputs),
            ("outputs", BufferKind.OUTPUT, part.outputs),
        ):
            if kinds.count(kind) != len(given):
                raise ValueError(f"part {number} has {kinds.count(kind)} {role}, but {len(given)} regions for them")
        self.first_slot = program.slot_count
        if part.slots is None:
            program.slot_count += header["slot_count"]
        self.first_scalar = program.scalar_count
        program.scalar_count += header["scalar_count"]
        self.values = self._values()
        for guard in self.records.guards:
            program.guard(guard["op"], self.values[guard["a"]], self.values[guard["b"]])
        self.writes = {region.memory for region in part.outputs}

    def _values(self) -> list[int]:
        p, values = self.program, []
        binary = {
            ValueOp.ADD: p.add,
            ValueOp.SUB: p.sub,
            ValueOp.MUL: p.mul,
            ValueOp.FLOORDIV: p.floordiv,
            ValueOp.MOD: p.mod,
            ValueOp.MAX: p.max,
            ValueOp.MIN: p.min,
        }
        for value in self.records.values:
            op, imm = value["op"], value["imm"]
            if op == ValueOp.CONST:
                values.append(p.const(imm))
            elif op == ValueOp.SLOT:
                slots = self.part.slots
                values.append(p.slot(self.first_slot + imm) if slots is None else p.const(slots[imm]))
            elif op == ValueOp.ALIGN:
                values.append(p.align(values[value["a"]], imm))
            else:
                values.append(binary[op](values[value["a"]], values[value["b"]]))
        return values

    def regions(self):
        """(region, value: its bytes) of each input and output."""
        for io, region in zip(self.records.io, (*self.part.inputs, *self.part.outputs), strict=True):
            yield region, self.values[self.records.buffers[io["buffer"]]["nbytes"]]

    def append(self, reads: dict[Hashable, int], writes: dict[Hashable, int], scratch: int) -> None:
        """Add the instructions. reads, writes: buffers of memories; scratch: value, where the part's own scratch memory begins."""
        r, p = self.records, self.program
        self.buffers = [self._buffer(buffer, reads, writes, scratch) for buffer in r.buffers]
        patterns = [self._pattern(pattern) for pattern in r.patterns]
        for instruction in r.instructions:
            first, count = instruction["pattern_first"], instruction["pattern_count"]
            names = PARAMS[Opcode(instruction["opcode"])]
            p.instruction(
                instruction["opcode"],
                self._numbers(instruction["extents"]),
                patterns[first : first + count],
                self._micros(instruction),
                engine=instruction["engine"],
                debug=r.text(instruction["debug"]),
                **{
                    name: self.values[number] if what == "value" else number
                    for (name, what), number in zip(names, instruction["params"], strict=False)
                },
            )

    def _numbers(self, indices: list[int]) -> list[int]:
        return [self.values[index] for index in indices if index != NONE]

    def _buffer(self, buffer: dict, reads: dict, writes: dict, scratch: int) -> tuple[int, int]:
        """Number in the whole, and bytes by which patterns of this buffer move."""
        p, nbytes, kind = self.program, self.values[buffer["nbytes"]], buffer["kind"]
        if kind == BufferKind.INPUT:
            region = self.part.inputs[buffer["index"]]
            return reads[region.memory], region.offset
        if kind == BufferKind.OUTPUT:
            region = self.part.outputs[buffer["index"]]
            return writes[region.memory], region.offset
        if kind == BufferKind.TEMP:
            return p.temp(p.add(scratch, self.values[buffer["offset"]]), nbytes), 0
        if kind == BufferKind.CONSTANT:
            begin, size = (p.constant_of(self.values[buffer[name]]) for name in ("offset", "nbytes"))
            if begin is None or size is None:
                raise ValueError(f"part {self.number} has a constant whose place depends on its slots")
            return p.constant(self.records.constants[begin : begin + size]), 0
        return (p.sbuf if kind == BufferKind.SBUF else p.psum)(nbytes), 0

    def _pattern(self, pattern: dict) -> bytes:
        p = self.program
        buffer, moved = self.buffers[pattern["buffer"]]
        elements, rest = divmod(moved, DTYPE_BYTES[pattern["dtype"]])
        if rest:
            raise ValueError(
                f"part {self.number} has {Dtype(pattern['dtype']).name} elements at byte {moved} of a memory"
            )
        offset = p.add(self.values[pattern["offset"]], p.const(elements))
        return p.pattern(
            buffer, pattern["dtype"], self._numbers(pattern["strides"]), offset, bool(pattern["flags"] & 1)
        )

    def _micros(self, instruction: dict) -> Micros | None:
        first, count = instruction["micro_first"], instruction["micro_count"]
        if not count:
            return None
        micros = Micros()
        for m in self.records.micro[first : first + count]:
            imm = m["imm"]
            if m["source"] == ImmSource.VALUE:
                imm = self.values[imm]
            elif m["source"] == ImmSource.SCALAR:
                imm += self.first_scalar
            micros._add(m["op"], m["kind"], m["dst"], m["a"], m["b"], m["c"], m["source"], m["from"], imm)
        return micros
