"""The memory plan: temporaries that are alive together never share a byte."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import torch_neuronx_compile.stablehlo as hlo
from torch_neuronx_compile.dim import ShapeEnv
from torch_neuronx_compile.passes.memory import ALIGNMENT, Aligned, Sum, lifetimes, memory
from torch_neuronx_compile.passes.program import Buffer, Instruction, Window
from torch_neuronx_compile.stablehlo import Parameter, TensorType

from .programs import compiled, execute, run, tensor


def program_of(reads: list[list[int]], sizes: list) -> tuple[list[Instruction], list[Buffer]]:
    """Instruction n writes temporary n and reads earlier ones."""
    buffers = [Buffer("TEMP", 0, size) for size in sizes]
    instructions = []
    for n, sources in enumerate(reads):
        windows = [Window(buffers[s], "f32", 0, []) for s in (*sources, n)]
        instructions.append(Instruction("DMA", "DMA", [], windows, [], [], "", frozenset((len(sources),))))
    return instructions, buffers


def overlaps(instructions: list[Instruction], where: dict[Buffer, tuple[int, int]]) -> list[tuple[Buffer, Buffer]]:
    alive = lifetimes(instructions)
    buffers = list(alive)
    return [
        (a, b)
        for i, a in enumerate(buffers)
        for b in buffers[i + 1 :]
        if alive[a][0] <= alive[b][1] and alive[b][0] <= alive[a][1]  # alive together
        and max(where[a][0], where[b][0]) < min(where[a][1], where[b][1])  # a common byte
    ]  # fmt: skip


graphs = st.lists(
    st.tuples(st.integers(0, 5000), st.lists(st.integers(0, 1 << 16), max_size=3)), min_size=1, max_size=40
)


@given(graphs)
@settings(deadline=None)
def test_numbers(graph: list[tuple[int, list[int]]]):
    reads = [[source % n for source in sources] if n else [] for n, (_, sources) in enumerate(graph)]
    instructions, buffers = program_of(reads, [size for size, _ in graph])
    scratch = memory(instructions)
    where = {b: (b.offset, b.offset + b.nbytes) for b in buffers}
    assert all(b.offset % ALIGNMENT == 0 and where[b][1] <= scratch for b in buffers)
    assert overlaps(instructions, where) == []


def value_of(size, n: int) -> int:
    """A symbolic number of bytes for another value of the only symbol."""
    if isinstance(size, int):
        return size
    if isinstance(size, Sum):
        return sum(value_of(part, n) for part in size.parts)
    if isinstance(size, Aligned):
        return -(-value_of(size.size, n) // ALIGNMENT) * ALIGNMENT
    total = 0
    for monomial, coefficient in size.resolved().terms:
        for atom in monomial:
            coefficient *= n if hasattr(atom, "source") else max(value_of(atom.a, n), value_of(atom.b, n))
        total += coefficient
    return total


@given(graphs, st.integers(2, 10000))
@settings(deadline=None)
def test_symbols(graph: list[tuple[int, list[int]]], n: int):
    """The plan is made with one hint and must hold for any other size."""
    symbol = ShapeEnv().symbol("n", 64, source=0)
    reads = [[source % i for source in sources] if i else [] for i, (_, sources) in enumerate(graph)]
    instructions, buffers = program_of(reads, [symbol * (size % 7) + size for size, _ in graph])
    scratch = value_of(memory(instructions), n)
    where = {b: (value_of(b.offset, n), value_of(b.offset, n) + value_of(b.nbytes, n)) for b in buffers}
    assert all(start % ALIGNMENT == 0 and end <= scratch for start, end in where.values())
    assert overlaps(instructions, where) == []


def test_long_chains_run_in_the_memory_of_a_few_steps():
    x = tensor(0, (32, 32))
    value = x
    for _ in range(12):
        value = hlo.dot_general(value, x, contracting=((1,), (0,)))
    program = compiled([x], [value])
    temporaries = {w.buffer for i in program.instructions for w in i.windows if w.buffer.kind == "TEMP"}
    assert max(b.offset + b.nbytes for b in temporaries) == 2 * 32 * 32 * 4
    data = torch.randn(32, 32) / 8
    (got,) = run([x], [value], [data])
    torch.testing.assert_close(got, torch.linalg.matrix_power(data, 13))


def test_an_output_that_shares_an_inputs_memory_waits_for_its_readers():
    """out0 overwrites x while out1 still reads x in another order: through scratch memory, at the end."""
    x = tensor(0, (6, 6))
    results = [hlo.exponential(x), hlo.dot_general(x, x, contracting=((0,), (1,)))]
    program = compiled([x], results, aliases=[0, None])
    *_, last = program.instructions
    assert last.opcode == "DMA" and last.windows[1].buffer.kind == "OUTPUT" and last.windows[1].buffer.index == 0
    data = torch.randn(6, 6)
    got = execute(program.program, [data], [((6, 6), torch.float32)] * 2)
    torch.testing.assert_close(got[1], (data @ data).T)
    torch.testing.assert_close(got[0], data.exp())


def test_an_elementwise_update_writes_straight_into_its_input():
    x, y = tensor(0, (6, 6)), tensor(1, (6, 6))
    program = compiled([x, y], [hlo.add(x, y)], aliases=[0])
    assert [i.opcode for i in program.instructions] == ["TILE"]


def test_a_transposing_update_does_not():
    x = tensor(0, (6, 6))
    program = compiled([x], [hlo.add(x, hlo.transpose(x, [1, 0]))], aliases=[0])
    assert [i.opcode for i in program.instructions] == ["TILE", "DMA"]


def test_scalars_of_a_launch():
    x = tensor(0, (4,))
    factor = Parameter(1, TensorType((), "f64"), "scalar")
    result = hlo.multiply(x, hlo.broadcast_in_dim(hlo.convert(factor, "f32"), (4,), ()))
    (got,) = execute(compiled([x, factor], [result]).program, [torch.arange(4.0)], [((4,), torch.float32)], [2.5])
    assert got.tolist() == [0, 2.5, 5, 7.5]
