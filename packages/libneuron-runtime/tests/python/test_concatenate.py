"""Programs joined into one."""

import struct

import pytest
from programs import SAMPLES, SLOTS

from libneuron_runtime import GuardError, Model, neff
from libneuron_runtime.concatenate import Part, Region, concatenate
from libneuron_runtime.program import Dtype, Kind, Micro, Micros, Opcode, Program

ADD = SAMPLES["add"]().to_bytes()


def scale() -> bytes:
    """y = x * scalar 0 along slot 0 elements, through scratch memory."""
    p = Program(scalar_count=1)
    size, one = p.slot(0), p.const(1)
    x, y = p.input("x", Dtype.FP32, [size]), p.output("y", Dtype.FP32, [size])
    nbytes = p.mul(size, p.const(4))
    temp = p.temp(p.const(0), nbytes)
    p.scratch(nbytes)
    m = Micros()
    m.store(1, m.op(Micro.MUL, Kind.F32, m.load(0, Kind.F32), m.scalar(Kind.F32, 0)))
    p.instruction(Opcode.TILE, [size], [p.pattern(b, Dtype.FP32, [one]) for b in (x, temp)], m)
    p.instruction(Opcode.DMA, [size], [p.pattern(b, Dtype.FP32, [one]) for b in (temp, y)])
    return p.to_bytes()


def floats(*numbers: float) -> bytearray:
    return bytearray(struct.pack(f"<{len(numbers)}f", *numbers))


def launch(program: bytes, slots, inputs, outputs, scalars=()) -> None:
    Model(neff.pack(program, name="joined")).bind(slots).run(inputs, outputs, list(scalars))


def three(**first) -> bytes:
    """z = (x + y) * scalar 0 * scalar 1."""
    return concatenate(
        [
            Part(ADD, [Region("x"), Region("y")], [Region("sum")], **first),
            Part(scale(), [Region("sum")], [Region("scaled")]),
            Part(scale(), [Region("scaled")], [Region("z")]),
        ],
        inputs=["x", "y"],
        outputs=["z"],
    )


def test_open_slots_and_scalars_are_those_of_the_parts_in_turn() -> None:
    for rows, columns in ((1, 3), (20, 50), (0, 2)):
        n = rows * columns
        z = bytearray(4 * n)
        launch(three(), [rows, columns, n, n], [floats(*range(n)), floats(*[1] * n)], [z], [2.0, 0.5])
        assert z == floats(*[i + 1 for i in range(n)])


def test_slots_that_are_given_become_constants() -> None:
    z = bytearray(24)
    program = three(slots=[2, 3])
    launch(program, [6, 6], [floats(*range(6)), floats(*[1] * 6)], [z], [3.0, 1.0])
    assert z == floats(3, 6, 9, 12, 15, 18)
    with pytest.raises(GuardError):  # rows <= 1000
        Model(neff.pack(three(slots=[1001, 1]), name="joined")).bind([1001, 1001])


def test_regions_of_one_memory_at_offsets() -> None:
    """The second half of a memory is the sum of its first half and y."""
    program = concatenate(
        [Part(ADD, [Region("m"), Region("y")], [Region("m", 8)], slots=[1, 2])], inputs=["m", "y"], outputs=["m"]
    )
    m = floats(1, 2, 0, 0)
    launch(program, [], [m, floats(10, 20)], [m])
    assert m == floats(1, 2, 11, 22)


def test_a_memory_written_in_place_is_read_where_it_was_written() -> None:
    square = SAMPLES["alias"]().to_bytes()
    program = concatenate([Part(square, [Region("x")], [Region("x")], slots=[3])] * 2, inputs=["x"], outputs=["x"])
    x = bytearray(struct.pack("<3q", 1, -2, 3))
    launch(program, [], [x], [x])
    assert struct.unpack("<3q", x) == (1, 16, 81)


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_a_part_alone_does_what_it_did(name: str) -> None:
    """Every sample, with its buffers of every kind."""
    program = SAMPLES[name]().to_bytes()
    model, slots = Model(neff.pack(program, name=name)), SLOTS.get(name, [])
    inputs, outputs = [f"in{i}" for i in range(model.counts.inputs)], [f"out{i}" for i in range(model.counts.outputs)]
    if name == "alias":
        outputs = inputs
    part = Part(program, list(map(Region, inputs)), list(map(Region, outputs)))
    whole = Model(neff.pack(concatenate([part], inputs=inputs, outputs=outputs), name=name))
    assert whole.counts == model.counts
    results = []
    for each in (model, whole):
        executable = each.bind(slots)
        # 0, 1, 2, 0, ... as numbers of the model's dtypes, so that indices are in range.
        memory = [bytearray() for _ in executable.io]
        for buffer, io in zip(memory, model.bind(slots).io, strict=True):
            number = struct.Struct("<q" if io[1] == Dtype.INT64 else "<f")
            buffer += b"".join(number.pack(n % 3) for n in range(io[3] // number.size))
        given, written = memory[: len(inputs)], memory[len(inputs) :]
        executable.run(given, given if name == "alias" else written, [2.5, 7, 0][: each.counts.scalars])
        results.append(memory)
    assert results[0] == results[1]


@pytest.mark.parametrize(
    ("message", "part", "inputs", "outputs"),
    [
        ("has 2 inputs, but 1 regions", Part(ADD, [Region("x")], [Region("z")]), ["x"], ["z"]),
        ("has 1 outputs, but 0 regions", Part(ADD, [Region("x"), Region("y")], []), ["x", "y"], []),
        ("has 2 slots, but 1 numbers", Part(ADD, [Region("x")] * 2, [Region("z")], slots=[1]), ["x"], ["z"]),
        ("reads 'y', which is no input", Part(ADD, [Region("x"), Region("y")], [Region("z")]), ["x"], ["z"]),
        ("an input that is no output", Part(ADD, [Region("x")] * 2, [Region("x")]), ["x"], []),
        ("no part writes the output 'w'", Part(ADD, [Region("x")] * 2, [Region("z")]), ["x"], ["w"]),
        ("input is named twice", Part(ADD, [Region("x")] * 2, [Region("z")]), ["x", "x"], ["z"]),
        ("FP32 elements at byte 2", Part(ADD, [Region("x", 2)] * 2, [Region("z")], slots=[1, 1]), ["x"], ["z"]),
    ],
)
def test_what_does_not_fit_is_refused(message: str, part: Part, inputs, outputs) -> None:
    with pytest.raises(ValueError, match=message):
        concatenate([part], inputs=inputs, outputs=outputs)
