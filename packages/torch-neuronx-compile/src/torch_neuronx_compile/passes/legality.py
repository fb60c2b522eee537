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


def after_simplify(results: Sequence[Value]) -> None:
    for operation in topological(results):
        if operation.name not in AFTER_SIMPLIFY:
            raise IllegalStage(f"after simplify: operation {operation.name!r}")


def after_layout(plan: Plan) -> None:
    seen = -1
    for node in plan.nodes:
        if node.op not in AFTER_LAYOUT:
            raise IllegalStage(f"after layout: node {node!r}")
        if node.number <= seen or any(a.node.number >= node.number for a in node.operands):
            raise IllegalStage(f"after layout: order of {node!r}")
        seen = node.number


def after_fuse(fusion: Fusion) -> None:
    done: set = set()
    for group in fusion.kernels:
        allowed = GROUP_MEMBERS[group.kind]
        if any(node.op not in allowed for node in group.frames):
            raise IllegalStage(f"after fuse: members of {group!r}")
        if group.kind == "MATMUL" and sum(node.op == "dot_general" for node in group.frames) != 1:
            raise IllegalStage(f"after fuse: products of {group!r}")
        done.update(group.frames)
        for access in group.accesses:
            if access.node not in done and access.node.op not in SOURCES:
                raise IllegalStage(f"after fuse: {group!r} reads %{access.node.number} before it is computed")


def after_place(placement: Placement) -> None:
    for node in placement.fusion.stored:
        if node not in placement.places:
            raise IllegalStage(f"after place: no place for {node!r}")


def after_emit(instructions: Sequence[Instruction]) -> None:
    for instruction in instructions:
        loops = len(instruction.extents)
        if instruction.opcode not in OPCODES or loops > MAX_LOOPS or len(instruction.micro) > MAX_MICRO:
            raise IllegalStage(f"after emit: {instruction!r}")
        table = instruction.opcode in ("GATHER", "SCATTER")
        for n, window in enumerate(instruction.windows):
            if len(window.strides) != loops and not (table and n >= 3):
                raise IllegalStage(f"after emit: pattern {n} of {instruction!r}")


def after_memory(instructions: Sequence[Instruction], scratch: Size | object) -> None:
    for instruction in instructions:
        for window in instruction.windows:
            offset = window.buffer.offset
            if window.buffer.kind != "TEMP" or not isinstance(offset, int):
                continue
            if offset % ALIGNMENT or (isinstance(scratch, int) and offset > scratch):
                raise IllegalStage(f"after memory: offset {offset} of {window!r} in {scratch} bytes")
