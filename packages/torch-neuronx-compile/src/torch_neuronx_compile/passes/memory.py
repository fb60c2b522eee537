"""memory: addresses of the temporaries in the launch's scratch memory, so that two of them share bytes only if they are never
needed at the same time.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from heapq import heappop, heappush

from torch_neuronx_compile.dim import Dim, Size, hint, maximum
from torch_neuronx_compile.passes.program import Buffer, Instruction
from torch_neuronx_compile.passes.sizes import resolved

ALIGNMENT = 64  # bytes, demanded by the format


class Aligned:
    """A number of bytes rounded up to a multiple of ALIGNMENT; known at bind."""

    __slots__ = ("size",)

    def __init__(self, size: Dim):
        self.size = size

    def __repr__(self) -> str:
        return f"align({self.size})"


class Sum:
    """The sum of sizes that are known at bind."""

    __slots__ = ("parts",)

    def __init__(self, parts: tuple[Aligned | int, ...]):
        self.parts = parts

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.parts)) or "0"


def lifetimes(instructions: Sequence[Instruction]) -> dict[Buffer, tuple[int, int]]:
    """First and last instruction that touches each temporary."""
    alive: dict[Buffer, tuple[int, int]] = {}
    for n, instruction in enumerate(instructions):
        for window in instruction.windows:
            buffer = window.buffer
            if buffer.kind == "TEMP":
                alive[buffer] = (alive[buffer][0] if buffer in alive else n, n)
    return alive


def memory(instructions: Sequence[Instruction]) -> Size | Sum:
    """Set `offset` of every temporary; returns the bytes of scratch memory needed."""
    alive = lifetimes(instructions)
    for buffer in alive:
        buffer.nbytes = resolved(buffer.nbytes)
    if any(isinstance(buffer.nbytes, Dim) for buffer in alive):
        return _by_slots(alive)
    return _best_fit(alive)


def _best_fit(alive: dict[Buffer, tuple[int, int]]) -> int:
    """In the order of the instructions, each temporary in the smallest hole that holds it; larger ones first."""
    holes: list[tuple[int, int]] = []  # (start, stop), ascending, never touching
    top = 0
    ending: list[tuple[int, int, int]] = []  # (last instruction, start, stop)
    for buffer in sorted(alive, key=lambda b: (alive[b][0], -hint(b.nbytes))):
        first, last = alive[buffer]
        while ending and ending[0][0] < first:
            _, start, stop = heappop(ending)
            _give_back(holes, start, stop)
        size = _align(hint(buffer.nbytes))
        fitting = [(stop - start, n) for n, (start, stop) in enumerate(holes) if stop - start >= size]
        if fitting:
            n = min(fitting)[1]
            start, stop = holes[n]
            holes[n : n + 1] = [(start + size, stop)] if start + size < stop else []
        elif holes and holes[-1][1] == top:  # the last hole can grow
            start, _ = holes.pop()
            top = start + size
        else:
            start = top
            top = start + size
        buffer.offset = start
        heappush(ending, (last, start, start + size))
    return top


def _give_back(holes: list[tuple[int, int]], start: int, stop: int) -> None:
    if start == stop:
        return
    n = bisect_left(holes, (start, stop))
    if n < len(holes) and holes[n][0] == stop:
        stop = holes.pop(n)[1]
    if n > 0 and holes[n - 1][1] == start:
        start = holes.pop(n - 1)[0]
        n -= 1
    holes.insert(n, (start, stop))


def _by_slots(alive: dict[Buffer, tuple[int, int]]) -> Sum:
    """For symbolic sizes: temporaries whose lives do not meet take turns in a slot as large as the largest of them."""
    slots: list[tuple[list[Buffer], int]] = []  # tenants, last instruction of the latest one
    tenancy: dict[Buffer, int] = {}
    for buffer in sorted(alive, key=lambda b: alive[b]):
        first, last = alive[buffer]
        free = [n for n, (_, end) in enumerate(slots) if end < first]
        if free:
            wanted = hint(buffer.nbytes)
            n = min(free, key=lambda n: abs(max(hint(b.nbytes) for b in slots[n][0]) - wanted))
            slots[n] = ([*slots[n][0], buffer], last)
        else:
            n = len(slots)
            slots.append(([buffer], last))
        tenancy[buffer] = n
    offsets: list[tuple[Aligned | int, ...]] = [()]
    for tenants, _ in slots:
        size: Size = 0
        for buffer in tenants:
            size = maximum(size, buffer.nbytes)
        offsets.append((*offsets[-1], Aligned(size) if isinstance(size, Dim) else _align(size)))
    for buffer, n in tenancy.items():
        buffer.offset = Sum(offsets[n])
    return Sum(offsets[-1])


def _align(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
