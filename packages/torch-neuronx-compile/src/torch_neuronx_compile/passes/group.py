"""A group: the computations of one instruction, and where each of them stands in the instruction's loops."""

from __future__ import annotations

from collections.abc import Sequence

from torch_neuronx_compile.dim import Size, hint
from torch_neuronx_compile.passes.plan import MOVERS, Access, Node
from torch_neuronx_compile.passes.sizes import is_number, same

# A row that is read again after its reduction should stay in the cache, unless there are many rows to share among threads.
ROW_LIMIT = 1 << 16
MANY_ROWS = 64

Frame = tuple[int, ...]  # for each dimension of a node: the loop that walks it, or -1 for a dimension of size 1


class Group:
    """kind: "TILE", "MATMUL" or the operation that moves memory. `shape` is the space of the elements and `order` its
    dimensions in loop order: the kept ones, then the last `reduced` ones. `frames` tell for each member which loop walks which of its
    dimensions. mode: "MAP" without a reduction, "ROW" if the last dimension is reduced, else "COLUMN".
    """

    __slots__ = ("kind", "mode", "shape", "order", "reduced", "frames", "accesses", "uses", "first", "last", "size", "random")

    def __init__(self, node: Node, accesses: Sequence[Access], size: int):
        shape = node.shape
        self.kind = node.op if node.op in MOVERS else "MATMUL" if node.op == "dot_general" else "TILE"
        self.mode = "MAP"
        self.reduced = 0
        self.order: tuple[int, ...] = tuple(range(len(shape)))
        if node.op == "reduce":
            shape = node.attributes["shape"]
            dims = node.attributes["dimensions"]
            self.order = (*(d for d in range(len(shape)) if d not in dims), *dims)
            self.reduced = len(dims)
            self.mode = reduction_mode(shape, dims)
        self.shape: tuple[Size, ...] = shape
        self.frames: dict[Node, Frame] = {}
        self.accesses = list(accesses)  # what the members read, with repetitions
        self.uses = [(node, access) for access in accesses]
        self.first = self.last = node.number
        self.size = size
        self.random = node.op == "random_bits"
        frame = self.frame(node.shape, row=node.op == "reduce")
        assert frame is not None
        self.frames[node] = frame

    def __lt__(self, other: Group) -> bool:
        return self.first < other.first

    def __repr__(self) -> str:
        names = ", ".join(f"%{node.number} {node.op}" for node in self.members)
        return f"{self.kind} {self.mode} {[self.shape[d] for d in self.order]} reduced={self.reduced}: {names}"

    @property
    def members(self) -> list[Node]:
        """The nodes of the group, operands first."""
        return sorted(self.frames, key=lambda node: node.number)

    @property
    def kept(self) -> int:
        """Number of loops that are not reduced."""
        return len(self.order) - self.reduced

    @property
    def extents(self) -> list[Size]:
        """Sizes of the loops."""
        return [self.shape[d] for d in self.order]

    def frame(self, shape: Sequence[Size], *, row: bool = False) -> Frame | None:
        """Loops of the dimensions of a member of sizes `shape`: over all elements, or over the rows; None when neither fits."""
        if not row:
            loops = {d: loop for loop, d in enumerate(self.order)}
            found = _match(shape, [(self.shape[d], loops[d]) for d in range(len(self.shape))])
            if found is not None or not self.reduced:
                return found
        return _match(shape, [(self.shape[d], loop) for loop, d in enumerate(self.order[: self.kept])])

    def window(self, strides: Sequence[Size], frame: Frame) -> list[Size]:
        """Strides per loop of what a member accesses with `strides` per dimension of its own."""
        window: list[Size] = [0] * len(self.order)
        for stride, loop in zip(strides, frame, strict=True):
            if loop >= 0:
                window[loop] = stride
        return window

    def space_frame(self, node: Node) -> Frame:
        """Loops of the dimensions of the space in which a member accesses its operands."""
        if node.op != "reduce":
            return self.frames[node]
        frame = self.frame(self.shape)
        assert frame is not None
        return frame

    def agrees(self, reader: Node, access: Access) -> bool:
        """Whether a member reads, at every point of the loops, just what another member computes at that point."""
        node = access.node
        if access.dtype != node.dtype or not is_number(access.offset, 0):
            return False
        read = self.window(access.strides, self.space_frame(reader))
        made = self.window(node.strides, self.frames[node])
        return all(same(a, b) or is_number(self.shape[d], 1) for a, b, d in zip(read, made, self.order, strict=True))

    def union(self, other: Group) -> Group | None:
        """One group with the members of both, or None when one instruction cannot do the work of both or should not."""
        base, added = (self, other) if self.reduced or self.kind == "MATMUL" or not other.reduced else (other, self)
        if base.kind not in ("TILE", "MATMUL") or added.kind != "TILE" or (base.kind == "MATMUL" and added.reduced):
            return None
        if base.kind == "MATMUL" and (base.random or added.random):
            return None
        same_space = added.order == base.order and added.reduced == base.reduced and _same_shape(added.shape, base.shape)
        if added.reduced and not same_space:
            return None
        union = object.__new__(Group)
        union.kind, union.mode, union.shape, union.order, union.reduced = base.kind, base.mode, base.shape, base.order, base.reduced
        union.frames = dict(base.frames)
        if same_space:
            union.frames.update(added.frames)
        else:
            for node in added.frames:
                frame = base.frame(node.shape)
                if frame is None:
                    return None
                union.frames[node] = frame
        union.random = base.random or added.random
        if union.random and (base.order != tuple(range(len(base.order))) or not _random_at_elements(union)):
            return None  # random numbers are counted in row-major order of the loops
        union.uses = base.uses + added.uses
        for reader, access in union.uses:
            if access.node in union.frames and not union.agrees(reader, access):
                return None
        if union.reduced and not (union.is_worthwhile() and union.moves_with_elements()):
            return None
        union.accesses = base.accesses + added.accesses
        union.first = min(base.first, added.first)
        union.last = max(base.last, added.last)
        union.size = base.size + added.size
        return union

    def is_row(self, node: Node) -> bool:
        """Whether a member has one result per row."""
        return not any(loop >= self.kept for loop in self.frames[node])

    def is_worthwhile(self) -> bool:
        """Whether elements may be visited again after a reduction, if some member needs that."""
        rows, row = 1, 1
        for loop, d in enumerate(self.order):
            if loop < self.kept:
                rows *= hint(self.shape[d])
            else:
                row *= hint(self.shape[d])
        if self.mode == "ROW" and (row <= ROW_LIMIT or rows >= MANY_ROWS):
            return True
        late: set[Node] = set()  # elements that need a row's result
        for node, access in sorted(self.uses, key=lambda use: use[0].number):
            if access.node not in self.frames:
                continue
            at_rows = node.op != "reduce" and self.is_row(node)
            if not at_rows and (access.node in late or self.is_row(access.node)):
                return False
        return True


    def moves_with_elements(self) -> bool:
        """Whether every member over all elements is computed from something that changes along a row: an instruction stores what is
        the same for a whole row once a row."""
        moving: set[Node] = set()
        uses: dict[Node, list[Access]] = {}
        for node, access in self.uses:
            uses.setdefault(node, []).append(access)
        for node in self.members:
            if node.op == "reduce" or self.is_row(node):
                continue
            if node.op == "random_bits" or any(self._moves(node, access, moving) for access in uses.get(node, ())):
                moving.add(node)
            else:
                return False
        return True

    def _moves(self, node: Node, access: Access, moving: set[Node]) -> bool:
        if access.node in self.frames:
            return access.node in moving
        if access.node.op in ("splat", "scalar"):
            return False
        window = self.window(access.strides, self.space_frame(node))
        return any(not is_number(stride, 0) for stride in window[self.kept :])


def reduction_mode(shape: Sequence[Size], dimensions: Sequence[int]) -> str:
    """ROW if the last dimension (of those whose size is not 1) is reduced, else COLUMN. It fixes the order of summation, so it
    depends on the operation alone."""
    for d in range(len(shape) - 1, -1, -1):
        if not is_number(shape[d], 1):
            return "ROW" if d in dimensions else "COLUMN"
    return "ROW"


def _same_shape(a: Sequence[Size], b: Sequence[Size]) -> bool:
    return len(a) == len(b) and all(map(same, a, b))


def _random_at_elements(group: Group) -> bool:
    return not any(node.op == "random_bits" and group.is_row(node) and group.reduced for node in group.frames)


def _match(shape: Sequence[Size], loops: Sequence[tuple[Size, int]]) -> Frame | None:
    """Pair the dimensions that are not of size 1, in order."""
    frame = []
    position = 0
    for size in shape:
        if is_number(size, 1):
            frame.append(-1)
            continue
        while position < len(loops) and is_number(loops[position][0], 1):
            position += 1
        if position == len(loops) or not same(size, loops[position][0]):
            return None
        frame.append(loops[position][1])
        position += 1
    while position < len(loops) and is_number(loops[position][0], 1):
        position += 1
    return tuple(frame) if position == len(loops) else None
