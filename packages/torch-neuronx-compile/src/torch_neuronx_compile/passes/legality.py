"""What may appear after each pass, as tables, and the checks. A failure is a fault of the compiler, not of the user."""

from __future__ import annotations

from collections.abc import Sequence

from torch_neuronx_compile.dim import Size
from torch_neuronx_compile.passes.fuse import Fusion
from torch_neuronx_compile.passes.memory import ALIGNMENT
from torch_neuronx_compile.passes.micro import BINARY, BOOLEAN, UNARY
from torch_neuronx_compile.passes.placement import Placement
from torch_neuronx_compile.passes.plan import MOVERS, SOURCES, Plan
from torch_neuronx_compile.passes.program import Instruction
from torch_neuronx_compile.stablehlo.ops import OPS
from torch_neuronx_compile.stablehlo.value import Value, topological

POINTWISE = frozenset((*UNARY, *BINARY, *BOOLEAN, "copy", "not", "compare", "is_finite", "select", "clamp", "convert",
                       "shift_right_logical", "random_bits"))  # fmt: skip

AFTER_SIMPLIFY = frozenset(OPS)
AFTER_LAYOUT = SOURCES | MOVERS | POINTWISE | {"reduce", "dot_general"}  # no views, no dynamic_slice, no calls
GROUP_MEMBERS = {
    "TILE": POINTWISE | {"reduce"},
    "MATMUL": (POINTWISE - {"random_bits"}) | {"dot_general"},
    **{name: frozenset((name,)) for name in MOVERS},
}
OPCODES = frozenset(("TILE", "MATMUL", "DMA", "GATHER", "SCATTER", "SCAN"))
MAX_LOOPS = 8
MAX_MICRO = 256


class IllegalStage(AssertionError):
    """A pass left something behind that the next ones do not know."""


def _expect(condition: bool, stage: str, what: object) -> None:
    if not condition:
        raise IllegalStage(f"after {stage}: {what}")


def after_simplify(results: Sequence[Value]) -> None:
    for operation in topological(results):
        _expect(operation.name in AFTER_SIMPLIFY, "simplify", f"operation {operation.name!r}")


def after_layout(plan: Plan) -> None:
    seen = -1
    for node in plan.nodes:
        _expect(node.op in AFTER_LAYOUT, "layout", f"node {node!r}")
        _expect(node.number > seen and all(a.node.number < node.number for a in node.operands), "layout", f"order of {node!r}")
        seen = node.number


def after_fuse(fusion: Fusion) -> None:
    done: set = set()
    for group in fusion.kernels:
        allowed = GROUP_MEMBERS[group.kind]
        _expect(all(node.op in allowed for node in group.frames), "fuse", f"members of {group!r}")
        _expect(group.kind != "MATMUL" or sum(n.op == "dot_general" for n in group.frames) == 1, "fuse", f"products of {group!r}")
        done.update(group.frames)
        for access in group.accesses:
            _expect(access.node in done or access.node.op in SOURCES, "fuse", f"order: {group!r} reads %{access.node.number}")


def after_place(placement: Placement) -> None:
    for node in placement.fusion.stored:
        _expect(node in placement.places, "place", f"no place for {node!r}")


def after_emit(instructions: Sequence[Instruction]) -> None:
    for instruction in instructions:
        loops = len(instruction.extents)
        _expect(instruction.opcode in OPCODES and loops <= MAX_LOOPS, "emit", instruction)
        _expect(len(instruction.micro) <= MAX_MICRO, "emit", f"{len(instruction.micro)} micro-operations: {instruction!r}")
        table = instruction.opcode in ("GATHER", "SCATTER")
        for n, window in enumerate(instruction.windows):
            _expect((table and n >= 3) or len(window.strides) == loops, "emit", instruction)


def after_memory(instructions: Sequence[Instruction], scratch: Size | object) -> None:
    for instruction in instructions:
        for window in instruction.windows:
            offset = window.buffer.offset
            if window.buffer.kind == "TEMP" and isinstance(offset, int):
                _expect(offset % ALIGNMENT == 0, "memory", f"offset {offset} of {window!r}")
                _expect(not isinstance(scratch, int) or offset <= scratch, "memory", f"{window!r} beyond {scratch} bytes")
