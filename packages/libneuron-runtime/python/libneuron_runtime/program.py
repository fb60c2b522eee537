"""Writer and reader of programs. docs/reference/program.md defines the format; the names here are its names.

    p = Program()
    n = p.slot(0)
    x = p.input("x", Dtype.FP32, [n])
    y = p.output("y", Dtype.FP32, [n])
    m = Micros()
    m.store(1, m.op(Micro.ADD, Kind.F32, m.load(0, Kind.F32), m.constant(Kind.F32, 1.0)))
    one = p.const(1)
    p.instruction(Opcode.TILE, [n], [p.pattern(x, Dtype.FP32, [one]), p.pattern(y, Dtype.FP32, [one])], m)
    data = p.to_bytes()

The writer numbers things and fills in what follows from them; the loader alone judges the result.
"""

import struct
from collections.abc import Sequence

from libneuron_runtime._listing import disassemble, read
from libneuron_runtime._schema import (
    BUFFER,
    DTYPE_BYTES,
    DTYPE_KIND,
    GUARD,
    HEADER,
    INSTRUCTION,
    IO,
    MAGIC,
    MAX_DIMS,
    MICRO,
    MICROS,
    NONE,
    PARAMS,
    PATTERN,
    SECTION,
    SECTION_ALIGNMENT,
    VALUE,
    VERSION,
    BufferKind,
    Combine,
    Dtype,
    Engine,
    GuardOp,
    ImmSource,
    IndexMode,
    Kind,
    Micro,
    Opcode,
    Section,
    TileMode,
    ValueOp,
)

__all__ = [
    "BufferKind",
    "Combine",
    "DTYPE_BYTES",
    "DTYPE_KIND",
    "Dtype",
    "Engine",
    "GuardOp",
    "ImmSource",
    "IndexMode",
    "Kind",
    "Micro",
    "Micros",
    "Opcode",
    "Program",
    "TileMode",
    "ValueOp",
    "disassemble",
    "read",
]

_DOUBLE = struct.Struct("<d")
_UINT64 = struct.Struct("<Q")
_MASK = (1 << 64) - 1
_NONES = tuple((NONE,) * n for n in range(MAX_DIMS + 1))
_INT64_MIN, _INT64_MAX = -(1 << 63), (1 << 63) - 1


class Micros:
    """The micro-operations of one instruction. Results are register numbers; patterns are numbers inside the instruction."""

    __slots__ = ("count", "data", "kinds")

    def __init__(self) -> None:
        self.data = bytearray()
        self.count = 0  # micro-operations
        self.kinds: list[int] = []  # kind of each register

    def _add(
        self,
        op: int,
        kind: int,
        dst: int,
        a: int = 0,
        b: int = 0,
        c: int = 0,
        source: int = 0,
        origin: int = 0,
        imm: int = 0,
    ) -> int:
        self.data += MICRO.pack(op, kind, dst, a, b, c, source, origin, imm & _MASK)
        self.count += 1
        return dst

    def _result(self, kind: int) -> int:
        self.kinds.append(kind)
        return len(self.kinds) - 1

    def load(self, pattern: int, kind: Kind) -> int:
        """Element of a pattern; `kind` is DTYPE_KIND of the pattern's dtype."""
        return self._add(Micro.LOAD, kind, self._result(kind), pattern)

    def store(self, pattern: int, register: int) -> None:
        """Writes a register to a pattern."""
        self._add(Micro.STORE, self.kinds[register], pattern, register)

    def constant(self, kind: Kind, number: int | float) -> int:
        """The same number in every launch: rounded to float for F32, an integer otherwise."""
        imm = _UINT64.unpack(_DOUBLE.pack(number))[0] if kind == Kind.F32 else int(number)
        return self._add(Micro.CONST, kind, self._result(kind), imm=imm)

    def value(self, kind: Kind, value: int) -> int:
        """A value of the program, converted to `kind`."""
        return self._add(Micro.CONST, kind, self._result(kind), source=ImmSource.VALUE, imm=value)

    def scalar(self, kind: Kind, scalar: int) -> int:
        """A scalar of the launch: a double for F32, an int64 otherwise."""
        return self._add(Micro.CONST, kind, self._result(kind), source=ImmSource.SCALAR, imm=scalar)

    def iota(self, dimension: int) -> int:
        """Index along a loop dimension, I64."""
        return self._add(Micro.IOTA, Kind.I64, self._result(Kind.I64), dimension)

    def random(self, word: int, scalar: int) -> int:
        """Word 0-3 of Philox4x32-10 with key scalars[scalar] and counter scalars[scalar + 1] + element number, I32."""
        return self._add(Micro.RANDOM, Kind.I32, self._result(Kind.I32), word, source=ImmSource.SCALAR, imm=scalar)

    def accumulator(self, kind: Kind) -> int:
        """The accumulated element of a MATMUL."""
        return self._add(Micro.ACC, kind, self._result(kind))

    def convert(self, kind: Kind, register: int) -> int:
        """The register in another kind."""
        return self._add(Micro.CONVERT, kind, self._result(kind), register, origin=self.kinds[register])

    def op(self, op: Micro, kind: Kind, a: int, b: int = 0, c: int = 0) -> int:
        """Any operation of up to three registers. `kind` is the schema's: of the operands for comparisons and REDUCE_ARG*."""
        result = MICROS[op][2]
        return self._add(op, kind, self._result(kind if result is None else result), a, b, c)


class Program:
    """Builds one program. Values, buffers and micro-operations are named by their numbers, which the methods return.

    Equal values are stored once, and values of constants are computed here.
    """

    def __init__(self, *, slot_count: int = 0, scalar_count: int = 0) -> None:
        self.slot_count = slot_count  # grows with slot()
        self.scalar_count = scalar_count  # set it before to_bytes() if it is not known here
        self._values: dict[tuple[int, int, int, int], int] = {}
        self._constants: list[int | None] = []  # by value: its number when it is a CONST
        self._guards: dict[tuple[int, int, int], None] = {}
        self._buffers: list[tuple[int, int, int, int]] = []
        self._inputs: list[tuple] = []
        self._outputs: list[tuple] = []
        self._instructions: list[bytes] = []
        self._patterns: list[bytes] = []
        self._micro = bytearray()
        self._micro_count = 0
        self._data = bytearray()
        self._data_offsets: dict[bytes, int] = {}
        self._strings = bytearray(b"\0")
        self._texts: dict[str, int] = {"": 0}
        self._scratch: int | None = None

    # ---- Values --------------------------------------------------------------------------------------------------

    def _value(self, op: int, a: int, b: int, imm: int) -> int:
        key = (op, a, b, imm)
        number = self._values.get(key)
        if number is None:
            number = self._values[key] = len(self._values)
            self._constants.append(imm if op == 0 else None)
        return number

    def const(self, number: int) -> int:
        """The value `number`."""
        return self._value(ValueOp.CONST, 0, 0, number)

    def slot(self, slot: int) -> int:
        """slots[slot] of a bind."""
        self.slot_count = max(self.slot_count, slot + 1)
        return self._value(ValueOp.SLOT, 0, 0, slot)

    def _binary(self, op: ValueOp, a: int, b: int, compute) -> int:
        x, y = self._constants[a], self._constants[b]
        if x is not None and y is not None:
            try:
                number = compute(x, y)
            except ZeroDivisionError:
                return self._value(op, a, b, 0)  # an error of the bind
            if _INT64_MIN <= number <= _INT64_MAX:
                return self.const(number)
        return self._value(op, a, b, 0)

    def add(self, a: int, b: int) -> int:
        if self._constants[b] == 0:
            return a
        return b if self._constants[a] == 0 else self._binary(ValueOp.ADD, a, b, int.__add__)

    def sub(self, a: int, b: int) -> int:
        return a if self._constants[b] == 0 else self._binary(ValueOp.SUB, a, b, int.__sub__)

    def mul(self, a: int, b: int) -> int:
        if self._constants[b] == 1:
            return a
        return b if self._constants[a] == 1 else self._binary(ValueOp.MUL, a, b, int.__mul__)

    def floordiv(self, a: int, b: int) -> int:
        return a if self._constants[b] == 1 else self._binary(ValueOp.FLOORDIV, a, b, int.__floordiv__)

    def mod(self, a: int, b: int) -> int:
        return self._binary(ValueOp.MOD, a, b, int.__mod__)

    def max(self, a: int, b: int) -> int:
        return a if a == b else self._binary(ValueOp.MAX, a, b, max)

    def min(self, a: int, b: int) -> int:
        return a if a == b else self._binary(ValueOp.MIN, a, b, min)

    def align(self, a: int, multiple: int) -> int:
        """`a` rounded up to a multiple."""
        x = self._constants[a]
        if x is not None:
            return self.const(-(-x // multiple) * multiple)
        return self._value(ValueOp.ALIGN, a, 0, multiple)

    def product(self, values: Sequence[int]) -> int:
        """Product of values; 1 for none."""
        result = self.const(1)
        for value in values:
            result = self.mul(result, value)
        return result

    def constant_of(self, value: int) -> int | None:
        """The number of a value that is the same in every bind, else None."""
        return self._constants[value]

    def guard(self, op: GuardOp, a: int, b: int) -> None:
        """A condition that every bind must meet. Guards are numbered in the order of their first mention."""
        self._guards.setdefault((op, a, b))

    # ---- Buffers -------------------------------------------------------------------------------------------------

    def _buffer(self, kind: int, index: int, offset: int, nbytes: int) -> int:
        self._buffers.append((kind, index, offset, nbytes))
        return len(self._buffers) - 1

    def _text(self, text: str) -> int:
        offset = self._texts.get(text)
        if offset is None:
            offset = self._texts[text] = len(self._strings)
            self._strings += text.encode("utf-8", "replace").replace(b"\0", b"") + b"\0"
        return offset

    def _signature(
        self, table: list, kind: int, name: str, dtype: Dtype, dims: Sequence[int], nbytes: int | None, alias: int
    ) -> int:
        if nbytes is None:
            nbytes = self.mul(self.product(dims), self.const(DTYPE_BYTES[dtype]))
        buffer = self._buffer(kind, len(table), self.const(0), nbytes)
        rank = len(dims)
        table.append((buffer, self._text(name), dtype, alias, rank, *dims, *_NONES[MAX_DIMS - rank], 0, 0, 0))
        return buffer

    def input(self, name: str, dtype: Dtype, dims: Sequence[int], nbytes: int | None = None) -> int:
        """The next input of a launch, as a buffer. dims, nbytes: values; nbytes defaults to that of a contiguous tensor."""
        return self._signature(self._inputs, BufferKind.INPUT, name, dtype, dims, nbytes, NONE)

    def output(
        self, name: str, dtype: Dtype, dims: Sequence[int], nbytes: int | None = None, alias: int | None = None
    ) -> int:
        """The next output. alias: number of the input whose memory it may share."""
        return self._signature(
            self._outputs, BufferKind.OUTPUT, name, dtype, dims, nbytes, NONE if alias is None else alias
        )

    def temp(self, offset: int, nbytes: int) -> int:
        """Scratch memory. offset, nbytes: values, in bytes; offset must come to a multiple of 64. See scratch()."""
        return self._buffer(BufferKind.TEMP, 0, offset, nbytes)

    def scratch(self, nbytes: int) -> None:
        """Value: bytes of scratch memory that all TEMP buffers share."""
        self._scratch = nbytes

    def constant(self, data: bytes) -> int:
        """A buffer of constant bytes; equal ones share their place."""
        offset = self._data_offsets.get(data)
        if offset is None:
            self._data += bytes(-len(self._data) % 64)
            offset = self._data_offsets[data] = len(self._data)
            self._data += data
        return self._buffer(BufferKind.CONSTANT, 0, self.const(offset), self.const(len(data)))

    def sbuf(self, nbytes: int) -> int:
        """The state buffer. nbytes: value, for all 128 partitions."""
        return self._buffer(BufferKind.SBUF, 0, self.const(0), nbytes)

    def psum(self, nbytes: int) -> int:
        """The matmul accumulator. nbytes: value, for all 128 partitions."""
        return self._buffer(BufferKind.PSUM, 0, self.const(0), nbytes)

    # ---- Instructions --------------------------------------------------------------------------------------------

    def pattern(
        self, buffer: int, dtype: Dtype, strides: Sequence[int], offset: int | None = None, non_temporal: bool = False
    ) -> bytes:
        """An access pattern, for instruction(). strides, offset: values, in elements of dtype; offset defaults to 0."""
        if offset is None:
            offset = self.const(0)
        return PATTERN.pack(buffer, dtype, offset, non_temporal, *strides, *_NONES[MAX_DIMS - len(strides)])

    def instruction(
        self,
        opcode: Opcode,
        extents: Sequence[int],
        patterns: Sequence[bytes],
        micros: Micros | None = None,
        *,
        engine: Engine = Engine.VECTOR,
        debug: str = "",
        **params: int,
    ) -> int:
        """Appends an instruction and returns its number. extents: values. params: by the schema's names; missing ones are 0."""
        rank = len(extents)
        numbers = [params.pop(name, 0) for name, _ in PARAMS[opcode]]
        if params:
            raise TypeError(
                f"{opcode.name} has no parameter {', '.join(params)}; it has {', '.join(n for n, _ in PARAMS[opcode]) or 'none'}"
            )
        count = micros.count if micros is not None else 0
        self._instructions.append(
            INSTRUCTION.pack(
                opcode,
                0,
                engine,
                rank,
                *extents,
                *_NONES[MAX_DIMS - rank],
                len(self._patterns),
                len(patterns),
                self._micro_count,
                count,
                *numbers,
                *(0,) * (6 - len(numbers)),
                self._text(debug),
                0,
                0,
            )
        )
        self._patterns += patterns
        if count:
            self._micro += micros.data
            self._micro_count += count
        return len(self._instructions) - 1

    # ---- Result --------------------------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """The program. The builder may be used further."""
        scratch = self.const(0) if self._scratch is None else self._scratch
        sections = (
            (
                Section.VALUES,
                VALUE.size,
                len(self._values),
                b"".join([VALUE.pack(op, a, b, 0, imm) for op, a, b, imm in self._values]),
            ),
            (
                Section.GUARDS,
                GUARD.size,
                len(self._guards),
                b"".join([GUARD.pack(*guard, 0) for guard in self._guards]),
            ),
            (
                Section.BUFFERS,
                BUFFER.size,
                len(self._buffers),
                b"".join([BUFFER.pack(*buffer) for buffer in self._buffers]),
            ),
            (
                Section.IO,
                IO.size,
                len(self._inputs) + len(self._outputs),
                b"".join([IO.pack(*io) for io in self._inputs + self._outputs]),
            ),
            (Section.INSTRUCTIONS, INSTRUCTION.size, len(self._instructions), b"".join(self._instructions)),
            (Section.PATTERNS, PATTERN.size, len(self._patterns), b"".join(self._patterns)),
            (Section.MICRO, MICRO.size, self._micro_count, self._micro),
            (Section.CONSTANTS, 1, len(self._data), self._data),
            (Section.STRINGS, 1, len(self._strings), self._strings),
        )
        used = [section for section in sections if section[2]]
        parts = [b""]
        rows = []
        position = HEADER.size + SECTION.size * len(used)
        for kind, record_bytes, count, data in used:
            gap = -position % SECTION_ALIGNMENT
            parts.append(bytes(gap))
            parts.append(data)
            position += gap
            rows.append(SECTION.pack(kind, record_bytes, position, count))
            position += len(data)
        header = HEADER.pack(*MAGIC, VERSION, len(used), position, self.slot_count, self.scalar_count, scratch, 0)
        parts[0] = header + b"".join(rows)
        return b"".join(parts)
