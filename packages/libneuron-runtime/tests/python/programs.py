"""Programs that the tests share, and ways to break them."""

from collections.abc import Callable

from libneuron_runtime._schema import Section

from libneuron_runtime import _schema as schema
from libneuron_runtime.program import (
    Combine,
    Dtype,
    Engine,
    GuardOp,
    IndexMode,
    Kind,
    Micro,
    Micros,
    Opcode,
    Program,
    TileMode,
)

F32 = Dtype.FP32


def add() -> Program:
    """z = x + y, fp32, sizes from slots 0 and 1."""
    p = Program()
    rows, columns, one = p.slot(0), p.slot(1), p.const(1)
    x, y = p.input("x", F32, [rows, columns]), p.input("y", F32, [rows, columns])
    z = p.output("z", F32, [rows, columns])
    p.guard(GuardOp.LE, rows, p.const(1000))
    m = Micros()
    m.store(2, m.op(Micro.ADD, Kind.F32, m.load(0, Kind.F32), m.load(1, Kind.F32)))
    strides = [columns, one]
    p.instruction(
        Opcode.TILE, [rows, columns], [p.pattern(b, F32, strides) for b in (x, y, z)], m, debug="add at model.py:1"
    )
    return p


def row() -> Program:
    """Row sums and rows less their maximum of a 5x9 fp32 matrix."""
    p = Program()
    five, nine, one, zero = map(p.const, (5, 9, 1, 0))
    x = p.input("x", F32, [five, nine])
    sums, rest = p.output("sums", F32, [five]), p.output("rest", F32, [five, nine])
    m = Micros()
    a = m.load(0, Kind.F32)
    m.store(1, m.op(Micro.REDUCE_SUM, Kind.F32, a))
    m.store(2, m.op(Micro.SUB, Kind.F32, a, m.op(Micro.REDUCE_MAX, Kind.F32, a)))
    patterns = [p.pattern(x, F32, [nine, one]), p.pattern(sums, F32, [one, zero]), p.pattern(rest, F32, [nine, one])]
    p.instruction(Opcode.TILE, [five, nine], patterns, m, mode=TileMode.ROW, reduced=1)
    return p


def numbers() -> Program:
    """float(random word) or scalar 0, through scratch memory and a constant."""
    p = Program(scalar_count=3)
    sixteen, one = p.const(16), p.const(1)
    y = p.output("y", F32, [sixteen])
    temp = p.temp(p.const(64), p.const(64))
    p.scratch(p.const(128))
    constant = p.constant(bytes(range(16)))
    m = Micros()
    number = m.convert(Kind.F32, m.op(Micro.XOR, Kind.I32, m.load(0, Kind.I32), m.random(2, 1)))
    index = m.convert(Kind.F32, m.op(Micro.ADD, Kind.I64, m.iota(0), m.value(Kind.I64, sixteen)))
    m.store(1, m.op(Micro.SELECT, Kind.F32, m.op(Micro.LT, Kind.F32, number, m.scalar(Kind.F32, 0)), number, index))
    p.instruction(Opcode.TILE, [sixteen], [p.pattern(constant, Dtype.UINT8, [one]), p.pattern(temp, F32, [one])], m)
    p.instruction(Opcode.DMA, [sixteen], [p.pattern(temp, F32, [one]), p.pattern(y, F32, [one])], engine=Engine.DMA)
    return p


def alias() -> Program:
    """x *= x in place, int64."""
    p = Program()
    size, one = p.slot(0), p.const(1)
    x = p.input("x", Dtype.INT64, [size])
    p.output("y", Dtype.INT64, [size], alias=0)
    m = Micros()
    a = m.load(0, Kind.I64)
    m.store(0, m.op(Micro.MUL, Kind.I64, a, a))
    p.instruction(Opcode.TILE, [size], [p.pattern(x, Dtype.INT64, [one])], m)
    return p


def matmul() -> Program:
    """c = a @ b of 3x4 and 4x5."""
    p = Program()
    zero, one, three, four, five = map(p.const, (0, 1, 3, 4, 5))
    a, b = p.input("a", F32, [three, four]), p.input("b", F32, [four, five])
    c = p.output("c", F32, [three, five])
    m = Micros()
    m.store(2, m.accumulator(Kind.F32))
    patterns = [
        p.pattern(a, F32, [four, zero, one]),
        p.pattern(b, F32, [zero, one, five]),
        p.pattern(c, F32, [five, one, zero]),
    ]
    p.instruction(Opcode.MATMUL, [three, five, four], patterns, m, engine=Engine.PE, batch=0, kind=Kind.F32)
    return p


def gather(opcode: Opcode = Opcode.GATHER, mode: IndexMode = IndexMode.CLAMP) -> Program:
    """rows[i] = table[index[i]] of a 6x4 table and 3 indices, or the reverse."""
    p = Program()
    zero, one, three, four, five, six = map(p.const, (0, 1, 3, 4, 5, 6))
    index = p.input("index", Dtype.INT64, [three])
    make = (p.input, p.output) if opcode == Opcode.GATHER else (p.output, p.input)
    table, rows = make[0]("table", F32, [six, four]), make[1]("rows", F32, [three, four])
    patterns = [
        p.pattern(table, F32, [zero, one]),
        p.pattern(index, Dtype.INT64, [one, zero]),
        p.pattern(rows, F32, [four, one]),
        p.pattern(table, F32, [four]),
        p.pattern(table, F32, [five]),
    ]
    more = {} if opcode == Opcode.GATHER else {"combine": Combine.ADD}
    p.instruction(
        opcode,
        [three, four],
        patterns,
        engine=Engine.GPSIMD,
        batch=1,
        components=1,
        component_stride=zero,
        mode=mode,
        **more,
    )
    return p


def scatter() -> Program:
    return gather(Opcode.SCATTER)


def scan() -> Program:
    """Sums along the rows of a 3x8 matrix."""
    p = Program()
    three, eight, one = map(p.const, (3, 8, 1))
    x, y = p.input("x", F32, [three, eight]), p.output("y", F32, [three, eight])
    p.instruction(Opcode.SCAN, [three, eight], [p.pattern(b, F32, [eight, one]) for b in (x, y)], combine=Combine.ADD)
    return p


def tile_grain() -> Program:
    """-x inside the state buffer, 128 partitions of 64 bytes."""
    p = Program()
    partitions, eight, sixteen, one = map(p.const, (128, 8, 16, 1))
    sbuf = p.sbuf(p.const(8192))
    m = Micros()
    m.store(1, m.op(Micro.NEG, Kind.F32, m.load(0, Kind.F32)))
    patterns = [p.pattern(sbuf, F32, [sixteen, one]), p.pattern(sbuf, F32, [sixteen, one], offset=eight)]
    p.instruction(Opcode.TENSOR_TENSOR, [partitions, eight], patterns, m)
    return p


SAMPLES: dict[str, Callable[[], Program]] = {
    f.__name__: f for f in (add, row, numbers, alias, matmul, gather, scatter, scan, tile_grain)
}
SLOTS = {"add": [2, 3], "alias": [4]}


def _section(data: bytes, section: Section) -> tuple[int, int]:
    """Offset and number of records of a section."""
    count = schema.HEADER.unpack_from(data)[9]
    for n in range(count):
        kind, _, offset, records = schema.SECTION.unpack_from(data, schema.HEADER.size + n * schema.SECTION.size)
        if kind == section:
            return offset, records
    raise KeyError(section)


def patched(data: bytes, where: Section | str, record: int, **fields: int | tuple[int, int]) -> bytes:
    """The program with fields of one record changed. where: a section, "header" or "section". A pair changes one entry of an array."""
    name = where if isinstance(where, str) else schema.SECTION_RECORDS[where]
    layout = getattr(schema, name.upper())
    if name == "header":
        start = 0
    elif name == "section":
        start = schema.HEADER.size + record * layout.size
    else:
        offset, count = _section(data, where)
        assert record < count
        start = offset + record * layout.size
    numbers = list(layout.unpack_from(data, start))
    position = 0
    for field, count, _, _ in schema.FIELDS[name]:
        if field in fields:
            change = fields.pop(field)
            index, number = change if isinstance(change, tuple) else (0, change)
            assert index < count
            numbers[position + index] = number
        position += count
    assert not fields, f"no such field of {name}: {fields}"
    return data[:start] + layout.pack(*numbers) + data[start + layout.size :]


__all__ = ["SAMPLES", "SLOTS", "patched"]
