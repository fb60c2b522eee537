"""place: where results are stored: an output's memory, a part of a larger result, or scratch memory of their own."""

from __future__ import annotations

from torch_neuronx_compile.dim import Size
from torch_neuronx_compile.passes.access import compose
from torch_neuronx_compile.passes.fuse import Fusion, leaves, operand_shapes
from torch_neuronx_compile.passes.group import Group
from torch_neuronx_compile.passes.plan import SOURCES, Access, Node, Output, stored_strides
from torch_neuronx_compile.passes.program import STORAGE, Buffer
from torch_neuronx_compile.passes.sizes import is_number, same, same_all, span


class Place:
    """Memory of a node: strides (elements) per dimension of the node."""

    __slots__ = ("buffer", "offset", "strides")

    def __init__(self, buffer: Buffer, offset: Size, strides: tuple[Size, ...]):
        self.buffer = buffer
        self.offset = offset
        self.strides = strides

    def __repr__(self) -> str:
        return f"{self.buffer}[{self.offset} + {list(self.strides)}]"


class Placement:
    """places: for every node that lies in memory. late: pairs (node, output) that are copied when everything else is done."""

    __slots__ = ("fusion", "places", "inputs", "outputs", "late")

    def __init__(self, fusion: Fusion):
        self.fusion = fusion
        self.places: dict[Node, Place] = {}
        self.inputs: list[Buffer] = []
        self.outputs: list[Buffer] = []
        self.late: list[tuple[Node, int]] = []

    def __repr__(self) -> str:
        return "\n".join(f"%{node.number}: {place}" for node, place in self.places.items())


def _bytes(shape: tuple[Size, ...], strides: tuple[Size, ...], own: tuple[Size, ...] | None, dtype: str) -> Size:
    """Bytes of a window. own: its row-major strides, if they are known; a window that has them is as large as its elements."""
    if not shape:
        return STORAGE[dtype][2]
    elements = shape[0] * strides[0] if strides is own else span(shape, strides)
    return elements * STORAGE[dtype][2]


class _Placer:
    def __init__(self, fusion: Fusion):
        self.fusion = fusion
        self.result = Placement(fusion)
        self.places = self.result.places
        self.order = {group: i for i, group in enumerate(fusion.kernels)}
        self.users: dict[Node, list[tuple[Node, Access, tuple[Size, ...]]]] = {}
        for node in fusion.group_of:
            for operand, shape in zip(fusion.operands[node], operand_shapes(node), strict=True):
                for access in leaves(operand):
                    self.users.setdefault(access.node, []).append((node, access, shape))

    def boundary(self) -> None:
        """Inputs and outputs."""
        plan = self.fusion.plan
        for node in plan.inputs:
            buffer = Buffer(
                "INPUT", len(self.result.inputs), _bytes(node.shape, node.strides, node.contiguous, node.dtype)
            )
            self.result.inputs.append(buffer)
            self.places[node] = Place(buffer, 0, node.strides)
        for k, (root, output) in enumerate(zip(self.fusion.roots, plan.outputs, strict=True)):
            buffer = Buffer("OUTPUT", k, _bytes(output.shape, output.strides, output.contiguous, output.dtype))
            self.result.outputs.append(buffer)
            strides = stored_strides(root, output.access, output.shape, output.strides)
            assert strides is not None
            place = Place(buffer, 0, strides)
            if self.may_overwrite(root, place, output) and self.readable(root, place):
                self.places[root] = place
            else:
                self.result.late.append((root, k))

    def may_overwrite(self, root: Node, place: Place, output: Output) -> bool:
        """Whether an output that shares memory with an input can be written when its node is computed."""
        if output.alias is None:
            return True
        source = self.fusion.plan.inputs[output.alias]
        group = self.fusion.group_of[root]
        when = self.order[group]
        for reader, access, _ in self.users.get(source, ()):
            mine = self.fusion.group_of[reader]
            if mine is not group:
                if self.order[mine] > when or root.op in ("concatenate", "pad", "scatter"):
                    return False
            elif not self.reads_only_itself(group, root, place, reader, access):
                return False
        return True

    def reads_only_itself(self, group: Group, root: Node, place: Place, reader: Node, access: Access) -> bool:
        """Whether a read of the aliased input sees, at each point of the loops, the element that is written there and then."""
        if access.dtype != root.dtype or not is_number(access.offset, 0):
            return False
        if root.op == "scatter":  # its first operand may be the output itself
            first = self.fusion.operands[root][0]
            return access is first and same_all(access.strides, place.strides)
        if group.kind not in ("TILE", "MATMUL") or group.mode != "MAP" or reader.op == "dot_general":
            return False
        read = group.window(access.strides, group.space_frame(reader))
        written = group.window(place.strides, group.frames[root])
        return all(map(same, read, written))

    def readable(self, node: Node, place: Place) -> bool:
        """Whether every reader of a node finds its elements by strides when it lies at `place`."""
        if same_all(place.strides, node.strides):
            return True
        return all(
            compose(node.shape, place.offset, place.strides, shape, access.offset, access.strides) is not None
            for _, access, shape in self.users.get(node, ())
        )

    def parts(self) -> None:
        """Results that go straight into a part of a larger one; everything else gets memory of its own."""
        for node in sorted(self.fusion.group_of, key=lambda n: -n.number):
            if node not in self.places:
                if node not in self.stored:
                    continue
                self.places[node] = Place(
                    Buffer("TEMP", 0, _bytes(node.shape, node.strides, node.strides, node.dtype)), 0, node.strides
                )
            place = self.places[node]
            if node.op == "concatenate":
                start: Size = 0
                dimension = node.attributes["dimension"]
                shapes = operand_shapes(node)
                for access, shape in zip(node.operands, shapes, strict=True):
                    offset = place.offset + start * place.strides[dimension]
                    self.part(access, shape, Place(place.buffer, offset, place.strides))
                    start = start + shape[dimension]
            elif node.op == "scatter" and len(self.users[node.operands[0].node]) == 1:
                self.part(node.operands[0], node.shape, place)

    def part(self, access: Access, shape: tuple[Size, ...], target: Place) -> None:
        node = access.node
        if node.op in SOURCES or node in self.places:
            return
        strides = stored_strides(node, access, shape, target.strides)
        if strides is not None:
            place = Place(target.buffer, target.offset, strides)
            if self.readable(node, place):
                self.places[node] = place

    @property
    def stored(self) -> set[Node]:
        return self.fusion.stored


def place(fusion: Fusion) -> Placement:
    """Give every result that leaves its instruction a place in memory."""
    self = _Placer(fusion)
    self.boundary()
    self.parts()
    return self.result
