"""Reader and disassembler of programs. Works on malformed ones too, as far as they can be read."""

import struct
from dataclasses import dataclass, field

from libneuron_runtime import _schema
from libneuron_runtime._schema import (
    FIELDS,
    HEADER,
    MAGIC,
    NONE,
    PARAMS,
    SECTION,
    SECTION_RECORDS,
    BufferKind,
    ImmSource,
    Kind,
    Micro,
    Opcode,
    Section,
    ValueOp,
)


@dataclass
class Records:
    """Header fields and, by lower-case section name, lists of records; each record is a dict by the schema's field names."""

    header: dict
    values: list[dict] = field(default_factory=list)
    guards: list[dict] = field(default_factory=list)
    buffers: list[dict] = field(default_factory=list)
    io: list[dict] = field(default_factory=list)
    instructions: list[dict] = field(default_factory=list)
    patterns: list[dict] = field(default_factory=list)
    micro: list[dict] = field(default_factory=list)
    constants: bytes = b""
    strings: bytes = b""

    def text(self, offset: int) -> str:
        """The NUL-terminated text at an offset of STRINGS."""
        return self.strings[offset:].split(b"\0", 1)[0].decode("utf-8", "replace")


def _record(name: str, numbers: tuple) -> dict:
    result = {}
    position = 0
    for field_name, count, enum, _ in FIELDS[name]:
        if count > 1:
            result[field_name] = list(numbers[position : position + count])
        else:
            number = numbers[position]
            result[field_name] = enum(number) if enum is not None and number in enum else number
        position += count
    return result


def read(data: bytes) -> Records:
    """Records of a program. Enumerators are enum members where the number is one, else plain ints.

    Raises ValueError when the bytes are no program, or a section lies outside them.
    """
    data = bytes(data)
    if len(data) < HEADER.size or data[: len(MAGIC)] != MAGIC:
        raise ValueError(f"no program: {len(data)} bytes that do not begin with {MAGIC!r} and a header")
    header = _record("header", HEADER.unpack_from(data))
    records = Records(header)
    for number in range(header["section_count"]):
        try:
            kind, record_bytes, offset, count = SECTION.unpack_from(data, HEADER.size + SECTION.size * number)
        except struct.error:
            raise ValueError(f"section {number} of {header['section_count']} lies outside the program") from None
        if kind not in Section:
            raise ValueError(f"section {number} has the unknown kind {kind}")
        section = Section(kind)
        if offset + record_bytes * count > len(data):
            raise ValueError(f"section {section.name} lies outside the program")
        content = data[offset : offset + record_bytes * count]
        name = SECTION_RECORDS.get(section)
        if name is None:
            setattr(records, section.name.lower(), content)
            continue
        layout = getattr(_schema, name.upper())
        if record_bytes != layout.size:
            raise ValueError(f"records of section {section.name} have {record_bytes} bytes, expected {layout.size}")
        setattr(records, section.name.lower(), [_record(name, numbers) for numbers in layout.iter_unpack(content)])
    return records


_SYMBOLS = {ValueOp.ADD: "+", ValueOp.SUB: "-", ValueOp.MUL: "*", ValueOp.FLOORDIV: "//", ValueOp.MOD: "%"}
_GUARD_SYMBOLS = {"EQ": "==", "NE": "!=", "LT": "<", "LE": "<="}


def _name(number: int) -> str:
    return getattr(number, "name", str(number))


class _Listing:
    def __init__(self, records: Records) -> None:
        self.r = records
        self.lines: list[str] = []

    def value(self, index: int) -> str:
        """A value as it appears in other lines: the number of a constant, else its name."""
        if index < len(self.r.values):
            value = self.r.values[index]
            if value["op"] == ValueOp.CONST:
                return str(value["imm"])
        return "NONE" if index == NONE else f"v{index}"

    def formula(self, value: dict) -> str:
        op, a, b = value["op"], value["a"], value["b"]
        if op == ValueOp.SLOT:
            return f"slot {value['imm']}"
        if op in _SYMBOLS:
            return f"{self.value(a)} {_SYMBOLS[op]} {self.value(b)}"
        if op == ValueOp.ALIGN:
            return f"align({self.value(a)}, {value['imm']})"
        return f"{_name(op).lower()}({self.value(a)}, {self.value(b)})"

    def sizes(self, indices: list[int], count: int) -> str:
        return "[" + ", ".join(self.value(index) for index in indices[:count]) + "]"

    def head(self) -> None:
        h = self.r.header
        self.lines.append(
            f"program version {h['version']}, {h['total_bytes']} bytes, {h['slot_count']} slots, {h['scalar_count']} scalars, "
            f"scratch {self.value(h['scratch_bytes'])} bytes"
        )
        for n, value in enumerate(self.r.values):
            if value["op"] != ValueOp.CONST:
                self.lines.append(f"v{n} = {self.formula(value)}")
        for n, guard in enumerate(self.r.guards):
            symbol = _GUARD_SYMBOLS.get(_name(guard["op"]), _name(guard["op"]))
            self.lines.append(f"guard {n}: {self.value(guard['a'])} {symbol} {self.value(guard['b'])}")

    def buffers(self) -> None:
        signature = {io["buffer"]: io for io in self.r.io}
        for n, buffer in enumerate(self.r.buffers):
            line = f"b{n} = {_name(buffer['kind'])}"
            if buffer["kind"] in (BufferKind.INPUT, BufferKind.OUTPUT):
                line += f" {buffer['index']}"
            if buffer["kind"] in (BufferKind.TEMP, BufferKind.CONSTANT):
                line += f" at {self.value(buffer['offset'])}"
            line += f", {self.value(buffer['nbytes'])} bytes"
            if io := signature.get(n):
                line += f': "{self.r.text(io["name"])}" {_name(io["dtype"])}{self.sizes(io["dims"], io["rank"])}'
                if io["alias"] != NONE:
                    line += f", may share input {io['alias']}"
            self.lines.append(line)

    def micro(self, m: dict) -> str:
        op = m["op"]
        args = _schema.MICROS[op][1] if op in _schema.MICROS else 3
        registers = ", ".join(f"r{m[name]}" for name in "abc"[:args])
        name, kind = _name(op), _name(m["kind"])
        if op == Micro.STORE:
            return f"p{m['dst']} = {registers}"
        text = f"r{m['dst']} = "
        if op == Micro.LOAD:
            return text + f"p{m['a']}"
        if op == Micro.IOTA:
            return text + f"IOTA dimension {m['a']}"
        if op == Micro.RANDOM:
            return text + f"RANDOM word {m['a']}, scalars {m['imm']}, {m['imm'] + 1}"
        if op == Micro.CONST:
            if m["source"] == ImmSource.VALUE:
                return text + f"{kind} {self.value(m['imm'])}"
            if m["source"] == ImmSource.SCALAR:
                return text + f"{kind} scalar {m['imm']}"
            raw = m["imm"].to_bytes(8, "little")
            number = (
                struct.unpack("<d", raw)[0] if m["kind"] == Kind.F32 else int.from_bytes(raw, "little", signed=True)
            )
            return text + f"{kind} {number}"
        if op == Micro.CONVERT:
            return text + f"{kind} from {_name(m['from'])} {registers}"
        return text + f"{name}.{kind} {registers}".rstrip()

    def instruction(self, n: int, i: dict) -> None:
        opcode = i["opcode"]
        params = []
        for (name, kind), number in zip(PARAMS.get(opcode, ()), i["params"], strict=False):
            if kind == "value":
                params.append(f"{name}={self.value(number)}")
            elif kind is not None and number in kind:
                params.append(f"{name}={kind(number).name}")
            else:
                params.append(f"{name}={number}")
        line = f"{n}: {_name(opcode)} {self.sizes(i['extents'], i['rank'])} {' '.join(params)}".rstrip()
        line += f"  on {_name(i['engine'])}"
        if debug := self.r.text(i["debug"]):
            line += f"  ; {debug}"
        self.lines.append(line)
        tables = (3, 4) if opcode in (Opcode.GATHER, Opcode.SCATTER) else ()
        for k, p in enumerate(self.r.patterns[i["pattern_first"] : i["pattern_first"] + i["pattern_count"]]):
            count = i["params"][1] if k in tables else i["rank"]
            line = f"   p{k} = b{p['buffer']} {_name(p['dtype'])} + {self.value(p['offset'])} {self.sizes(p['strides'], count)}"
            self.lines.append(line + (" non-temporal" if p["flags"] & 1 else ""))
        for m in self.r.micro[i["micro_first"] : i["micro_first"] + i["micro_count"]]:
            self.lines.append("   " + self.micro(m))

    def run(self) -> str:
        self.head()
        self.buffers()
        for n, instruction in enumerate(self.r.instructions):
            self.instruction(n, instruction)
        return "\n".join(self.lines) + "\n"


def disassemble(data: bytes) -> str:
    """Text of a program: values, guards, buffers, then instructions with their patterns (p) and registers (r). Raises ValueError."""
    return _Listing(read(data)).run()
