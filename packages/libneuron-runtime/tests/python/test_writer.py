"""The program builder, the reader and the disassembler."""

import random
import struct

import pytest
from libneuron_runtime._schema import Section
from programs import SAMPLES, SLOTS, patched

from libneuron_runtime import Model, NeuronError, neff
from libneuron_runtime.program import Dtype, GuardOp, Kind, Micro, Micros, Opcode, Program, ValueOp, disassemble, read


def test_equal_values_are_one() -> None:
    p = Program()
    a, b = p.slot(0), p.slot(1)
    assert p.slot_count == 2
    assert p.add(a, b) == p.add(a, b)
    assert p.add(a, b) != p.add(b, a)
    assert p.const(7) == p.const(7)
    assert p.slot(0) == a


def test_values_of_constants_are_computed() -> None:
    p = Program()
    six, four, minus = p.const(6), p.const(4), p.const(-7)
    results = {
        p.add(six, four): 10,
        p.sub(four, six): -2,
        p.mul(six, four): 24,
        p.floordiv(minus, four): -2,
        p.mod(minus, four): 1,
        p.max(six, four): 6,
        p.min(six, four): 4,
        p.align(p.const(65), 64): 128,
        p.product([six, four, six]): 144,
        p.product([]): 1,
    }
    for value, number in results.items():
        assert p.constant_of(value) == number


def test_neutral_operands_vanish() -> None:
    p = Program()
    a, zero, one = p.slot(0), p.const(0), p.const(1)
    assert p.add(a, zero) == p.add(zero, a) == p.sub(a, zero) == a
    assert p.mul(a, one) == p.mul(one, a) == p.floordiv(a, one) == a
    assert p.max(a, a) == p.min(a, a) == a
    assert p.constant_of(a) is None


def test_what_cannot_be_computed_is_left_to_the_bind() -> None:
    p = Program()
    big = p.const(1 << 62)
    for value in (p.mul(big, big), p.floordiv(big, p.const(0)), p.mod(big, p.const(0))):
        assert p.constant_of(value) is None
    with pytest.raises(NeuronError, match="value 1: MUL of 4611686018427387904"):
        Model(neff.pack(p.to_bytes(), name="big"))


def test_every_value_operation_agrees_with_the_runtime() -> None:
    # The same expressions once over constants (computed by the writer) and once over slots (computed by a bind).
    rng = random.Random(5)
    for _ in range(50):
        numbers = [rng.randrange(-50, 50) or 3 for _ in range(3)]
        shapes = []
        for symbolic in (False, True):
            p = Program()
            a, b, c = (p.slot(n) if symbolic else p.const(number) for n, number in enumerate(numbers))
            p.slot_count = 3
            values = [
                p.add(a, b),
                p.sub(a, c),
                p.mul(b, c),
                p.floordiv(a, b),
                p.mod(a, c),
                p.max(a, b),
                p.min(b, c),
                p.align(a, 8),
            ]
            offset = p.const(1 << 20)  # sizes cannot be negative
            for n, value in enumerate(values):
                p.input(f"x{n}", Dtype.FP32, [p.add(value, offset)], nbytes=p.const(0))
            bound = Model(neff.pack(p.to_bytes(), name="values")).bind(numbers)
            shapes.append([io.dims for io in bound.io])
        assert shapes[0] == shapes[1], numbers


def test_read_returns_what_was_written() -> None:
    records = read(SAMPLES["add"]().to_bytes())
    assert records.header["slot_count"] == 2
    assert [buffer["kind"].name for buffer in records.buffers] == ["INPUT", "INPUT", "OUTPUT"]
    assert [records.text(io["name"]) for io in records.io] == ["x", "y", "z"]
    assert records.io[0]["dtype"] is Dtype.FP32
    (instruction,) = records.instructions
    assert instruction["opcode"] is Opcode.TILE
    assert records.text(instruction["debug"]) == "add at model.py:1"
    assert [m["op"].name for m in records.micro] == ["LOAD", "LOAD", "ADD", "STORE"]
    thousand = next(n for n, value in enumerate(records.values) if value["imm"] == 1000)
    assert records.guards == [{"op": GuardOp.LE, "a": 0, "b": thousand, "reserved": 0}]


@pytest.mark.parametrize("data", [b"", b"NEURPRGM", b"x" * 100])
def test_read_refuses_what_is_no_program(data: bytes) -> None:
    with pytest.raises(ValueError, match="no program"):
        read(data)


def test_read_refuses_sections_outside_the_program() -> None:
    data = SAMPLES["add"]().to_bytes()
    with pytest.raises(ValueError, match="section VALUES lies outside"):
        read(patched(data, "section", 0, offset=1 << 40))
    with pytest.raises(ValueError, match="unknown kind 50"):
        read(patched(data, "section", 0, kind=50))
    with pytest.raises(ValueError, match="unknown kind|of 1000 lies outside"):
        read(patched(data, "header", 0, section_count=1000))


def test_disassembly() -> None:
    assert disassemble(SAMPLES["add"]().to_bytes()).splitlines()[1:] == [
        "v0 = slot 0",
        "v1 = slot 1",
        "v3 = v0 * v1",
        "v5 = v3 * 4",
        "guard 0: v0 <= 1000",
        'b0 = INPUT 0, v5 bytes: "x" FP32[v0, v1]',
        'b1 = INPUT 1, v5 bytes: "y" FP32[v0, v1]',
        'b2 = OUTPUT 0, v5 bytes: "z" FP32[v0, v1]',
        "0: TILE [v0, v1] mode=MAP reduced=0  on VECTOR  ; add at model.py:1",
        "   p0 = b0 FP32 + 0 [v1, 1]",
        "   p1 = b1 FP32 + 0 [v1, 1]",
        "   p2 = b2 FP32 + 0 [v1, 1]",
        "   r0 = p0",
        "   r1 = p1",
        "   r2 = ADD.F32 r0, r1",
        "   p2 = r2",
    ]


def test_disassembly_names_numbers_and_tables() -> None:
    numbers = disassemble(SAMPLES["numbers"]().to_bytes())
    for line in (
        "b1 = TEMP at 64, 64 bytes",
        "r1 = RANDOM word 2, scalars 1, 2",
        "r3 = F32 from I32 r2",
        "r4 = IOTA dimension 0",
        "r5 = I64 16",
        "r8 = F32 scalar 0",
        "r10 = SELECT.F32 r9, r3, r7",
    ):
        assert line in numbers, numbers
    gather = disassemble(SAMPLES["gather"]().to_bytes())
    assert "GATHER [3, 4] batch=1 components=1 component_stride=0 mode=CLAMP  on GPSIMD" in gather
    assert "p4 = b1 FP32 + 0 [5]" in gather
    assert "may share input 0" in disassemble(SAMPLES["alias"]().to_bytes())


def test_disassembly_of_broken_programs() -> None:
    # Whatever can be read is listed: the tool that explains a refused file must not fail on it.
    rng = random.Random(11)
    listed = 0
    for name, make in SAMPLES.items():
        data = make().to_bytes()
        for _ in range(100):
            broken = bytearray(data)
            for _ in range(3):
                broken[rng.randrange(40, len(broken))] = rng.randrange(256)
            try:
                listed += len(disassemble(bytes(broken))) > 0
            except ValueError as error:
                assert "section" in str(error), name
    assert listed > 500


def test_unknown_parameters_are_an_error_at_once() -> None:
    p = Program()
    with pytest.raises(TypeError, match="DMA has no parameter batch; it has none"):
        p.instruction(Opcode.DMA, [], [], batch=1)
    with pytest.raises(TypeError, match="TILE has no parameter reduce; it has mode, reduced"):
        p.instruction(Opcode.TILE, [], [], reduce=1)


def test_constants_are_shared_and_aligned() -> None:
    p = Program()
    for data in (b"abc", b"defg", b"abc"):
        p.constant(data)
    records = read(p.to_bytes())
    offsets = [records.values[buffer["offset"]]["imm"] for buffer in records.buffers]
    assert offsets == [0, 64, 0]
    assert records.constants[64:68] == b"defg"


def test_literals_keep_their_bits() -> None:
    p = Program()
    one = p.const(1)
    outputs = [
        ("f", Dtype.FP32, Kind.F32, -0.0),
        ("d", Dtype.FP64, Kind.F32, 0.1),
        ("i", Dtype.INT32, Kind.I32, -5),
        ("l", Dtype.INT64, Kind.I64, -(1 << 63)),
    ]
    for name, dtype, kind, number in outputs:
        y = p.output(name, dtype, [one])
        m = Micros()
        m.store(0, m.constant(kind, number))
        p.instruction(Opcode.TILE, [one], [p.pattern(y, dtype, [one])], m)
    results = [bytearray(size) for size in (4, 8, 4, 8)]
    Model(neff.pack(p.to_bytes(), name="literals")).bind().run([], results)
    assert results[0] == struct.pack("<f", -0.0)
    assert struct.unpack("<d", results[1])[0] == struct.unpack("<f", struct.pack("<f", 0.1))[0]
    assert struct.unpack("<i", results[2]) == (-5,)
    assert struct.unpack("<q", results[3]) == (-(1 << 63),)


def test_the_builder_can_go_on_after_to_bytes() -> None:
    p = SAMPLES["alias"]()
    first = p.to_bytes()
    assert p.to_bytes() == first
    p.guard(GuardOp.LT, p.slot(0), p.const(9))
    Model(neff.pack(p.to_bytes(), name="more")).bind(SLOTS["alias"])


def test_result_kinds_follow_the_schema() -> None:
    m = Micros()
    a = m.constant(Kind.F32, 1.0)
    assert m.kinds[m.op(Micro.LT, Kind.F32, a, a)] == Kind.I32
    assert m.kinds[m.op(Micro.ADD, Kind.F32, a, a)] == Kind.F32
    assert m.kinds[m.op(Micro.REDUCE_ARGMAX, Kind.F32, a)] == Kind.I64
    assert m.kinds[m.convert(Kind.I64, a)] == Kind.I64


def test_sections_of_the_samples_cover_the_format() -> None:
    seen = set()
    for make in SAMPLES.values():
        records = read(make().to_bytes())
        seen |= {section for section in Section if getattr(records, section.name.lower())}
    assert seen == set(Section)
    assert {v["op"] for v in read(SAMPLES["add"]().to_bytes()).values} == {ValueOp.CONST, ValueOp.SLOT, ValueOp.MUL}
