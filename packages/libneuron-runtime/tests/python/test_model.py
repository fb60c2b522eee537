"""Loading, binding and running from Python."""

import struct
import threading

import pytest
from programs import SAMPLES

import libneuron_runtime
from libneuron_runtime import GuardError, Model, NeffError, NeuronError, neff
from libneuron_runtime.program import Dtype, Engine, Kind, Micro, Micros, Opcode, Program


def floats(*numbers: float) -> bytearray:
    return bytearray(struct.pack(f"<{len(numbers)}f", *numbers))


@pytest.fixture(scope="module")
def add() -> Model:
    return Model(neff.pack(SAMPLES["add"]().to_bytes(), name="add"))


def test_counts(add: Model) -> None:
    assert add.counts == (2, 1, 2, 0)
    assert add.counts.slots == 2


def test_one_program_serves_every_size(add: Model) -> None:
    for rows, columns in [(2, 3), (1, 1), (0, 4), (7, 0)]:
        size = rows * columns
        z = bytearray(4 * size)
        executable = add.bind([rows, columns])
        assert executable.io[2] == ("output", Dtype.FP32, (rows, columns), 4 * size, None)
        executable.run([floats(*range(size)), floats(*[0.5] * size)], [z])
        assert z == floats(*[n + 0.5 for n in range(size)])


def test_scalars() -> None:
    model = Model(neff.pack(SAMPLES["numbers"]().to_bytes(), name="numbers"))
    y = bytearray(64)
    model.bind().run([], [y], [-float("inf"), (1 << 64) - 1, 0])  # no number is below it, so that 16 + index is chosen
    assert y == floats(*range(16, 32))


def test_an_output_that_is_its_input_shares_memory() -> None:
    executable = Model(neff.pack(SAMPLES["alias"]().to_bytes(), name="alias")).bind([3])
    x = bytearray(struct.pack("<3q", 2, -3, 1 << 40))
    executable.run([x], [x])
    assert struct.unpack("<3q", x) == (4, 9, 0)  # 2**80 wraps


def test_wrong_counts_and_sizes(add: Model) -> None:
    executable = add.bind([2, 2])
    with pytest.raises(NeuronError, match="1 inputs are given, expected 2"):
        executable.run([bytes(16)], [bytearray(16)])
    with pytest.raises(NeuronError, match="0 outputs are given, expected 1"):
        executable.run([bytes(16), bytes(16)], [])
    with pytest.raises(NeuronError, match="1 scalars are given, expected 0"):
        executable.run([bytes(16), bytes(16)], [bytearray(16)], [1])
    with pytest.raises(NeuronError, match="input 1 has 15 bytes, but the program needs 16"):
        executable.run([bytes(16), bytes(15)], [bytearray(16)])
    with pytest.raises(NeuronError, match="output 0 has 8 bytes, but the program needs 16"):
        executable.run([bytes(16), bytes(16)], [bytearray(8)])


def test_buffers_must_be_buffers(add: Model) -> None:
    executable = add.bind([2, 2])
    with pytest.raises(BufferError):
        executable.run([bytes(16), bytes(16)], [bytes(16)])  # not writable
    with pytest.raises(TypeError):
        executable.run([1, 2], [bytearray(16)])
    with pytest.raises(BufferError):
        executable.run([memoryview(bytes(32))[::2], bytes(16)], [bytearray(16)])


def test_scalars_must_be_numbers() -> None:
    executable = Model(neff.pack(SAMPLES["numbers"]().to_bytes(), name="numbers")).bind()
    with pytest.raises((TypeError, RuntimeError, ValueError)):
        executable.run([], [bytearray(64)], ["a", 1, 2])


def test_errors_have_a_status_and_one_root(add: Model) -> None:
    with pytest.raises(NeuronError, match="1 slots are given, expected 2") as caught:
        add.bind([1])
    assert (caught.value.status, caught.value.name) == (2, "NRT_INVALID")
    assert not isinstance(caught.value, GuardError)
    with pytest.raises(GuardError) as guard:
        add.bind([5000, 1])
    assert guard.value.guard == 0
    assert (
        issubclass(GuardError, NeuronError)
        and issubclass(NeffError, NeuronError)
        and issubclass(NeuronError, RuntimeError)
    )
    with pytest.raises(NeuronError, match="core 77 does not exist") as missing:
        Model(neff.pack(SAMPLES["add"]().to_bytes(), name="add"), core=77)
    assert not isinstance(missing.value, NeffError)
    with pytest.raises(NeffError, match="too few"):
        Model(b"")


def test_an_executable_outlives_its_model() -> None:
    executable = Model(neff.pack(SAMPLES["add"]().to_bytes(), name="add")).bind([1, 1])
    z = bytearray(4)
    executable.run([floats(1), floats(2)], [z])
    assert z == floats(3)


def test_threads_launch_at_once(add: Model) -> None:
    executable = add.bind([16, 16])
    failures = []

    def work(seed: int) -> None:
        x, z = floats(*[seed] * 256), bytearray(1024)
        for _ in range(50):
            executable.run([x, x], [z])
            if z != floats(*[2 * seed] * 256):
                failures.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_set_threads() -> None:
    before = libneuron_runtime.get_threads()
    try:
        libneuron_runtime.set_threads(2)
        assert libneuron_runtime.get_threads() == 2
        with pytest.raises(NeuronError, match="0 threads; expected at least 1"):
            libneuron_runtime.set_threads(0)
    finally:
        libneuron_runtime.set_threads(before)


def test_unknown_attributes() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Tensor'"):
        libneuron_runtime.Tensor  # noqa: B018


def test_a_tile_in_the_state_buffer() -> None:
    """In by DMA, one instruction of the vector engine on 128 partitions, out by DMA."""
    p = Program()
    partitions, eight, sixteen, one = map(p.const, (128, 8, 16, 1))
    x, y = p.input("x", Dtype.FP32, [partitions, eight]), p.output("y", Dtype.FP32, [partitions, eight])
    sbuf = p.sbuf(p.const(128 * 64))
    left = p.pattern(sbuf, Dtype.FP32, [sixteen, one])
    right = p.pattern(sbuf, Dtype.FP32, [sixteen, one], offset=eight)
    size = [partitions, eight]
    p.instruction(Opcode.DMA, size, [p.pattern(x, Dtype.FP32, [eight, one]), left], engine=Engine.DMA)
    m = Micros()
    a = m.load(0, Kind.F32)
    m.store(1, m.op(Micro.MUL, Kind.F32, a, m.op(Micro.NEG, Kind.F32, a)))
    p.instruction(Opcode.TENSOR_TENSOR, size, [left, right], m)
    p.instruction(Opcode.DMA, size, [right, p.pattern(y, Dtype.FP32, [eight, one])], engine=Engine.DMA)
    result = bytearray(4 * 128 * 8)
    Model(neff.pack(p.to_bytes(), name="tile")).bind().run([floats(*range(1024))], [result])
    assert result == floats(*(-float(n * n) for n in range(1024)))
