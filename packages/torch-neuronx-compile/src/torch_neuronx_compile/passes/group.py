"""A group: the computations of one instruction, and where each of them stands in the instruction's loops."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from torch_neuronx_compile.dim import Size, hint
from torch_neuronx_compile.passes.plan import MOVERS, Access, Node
from torch_neuronx_compile.passes.sizes import is_number, quotient, same

# A row that is read again after its reduction should stay in the cache, unless there are many rows to share among threads.
ROW_LIMIT = 1 << 16
MANY_ROWS = 64
# Innermost loops shorter than this waste most of a vector instruction.
SHORT_LOOP = 64

Frame = tuple[tuple[int, ...], ...]  # for each dimension of a member: the factors that it is made of, outermost first


class Group:
    """kind: "TILE", "MATMUL" or the operation that moves memory. mode: "MAP" without a reduction, "ROW" if the last dimension is reduced,
    else "COLUMN".

    `factors` are sizes whose product, in row-major order, is the space of the elements; every dimension of every member is a run
    of them (sizes of 1 are left out), so that members of different shapes share loops: a [6, 4] and a [2, 3, 4] have the
    factors 2, 3, 4. `reduced` are the factors that the reductions combine. `frames` say which factors make up a member's dimensions.
    """

    __slots__ = ("kind", "mode", "factors", "reduced", "frames", "uses", "moving", "first", "last", "size", "random")

    def __init__(self, node: Node, accesses: Sequence[Access], size: int):
        shape = node.shape
        self.kind = node.op if node.op in MOVERS else "MATMUL" if node.op == "dot_general" else "TILE"
        self.mode = "MAP"
        dims: tuple[int, ...] = ()
        if node.op == "reduce":
            shape = node.attributes["shape"]
            dims = node.attributes["dimensions"]
            self.mode = reduction_mode(shape, dims)
        large = [d for d, n in enumerate(shape) if not is_number(n, 1)]
        self.factors: tuple[Size, ...] = tuple(shape[d] for d in large)
        self.reduced: frozenset[int] = frozenset(i for i, d in enumerate(large) if d in dims)
        numbers = {d: (i,) for i, d in enumerate(large)}
        self.frames: dict[Node, Frame] = {
            node: tuple(numbers.get(d, ()) for d in range(len(shape)) if node.op != "reduce" or d not in dims)
        }
        self.uses: dict[Node, list[Access]] = {node: list(accesses)}  # what each member reads
        self.moving: set[Node] = set()  # with a reduction: members over all elements that change along a row
        self.first = self.last = node.number
        self.size = size
        self.random = node.op == "random_bits"

    def __lt__(self, other: Group) -> bool:
        return self.first < other.first

    def __repr__(self) -> str:
        names = ", ".join(f"%{node.number} {node.op}" for node in self.members)
        kept, reduced = self.loops
        sizes = [[self.factors[i] for i in part] for part in (kept, reduced)]
        return (
            f"{self.kind} {self.mode} {sizes[0]} over {sizes[1]}: {names}"
            if reduced
            else f"{self.kind} {sizes[0]}: {names}"
        )

    @property
    def members(self) -> list[Node]:
        """The nodes of the group, operands first."""
        return sorted(self.frames, key=lambda node: node.number)

    @property
    def accesses(self) -> list[Access]:
        """What the members read, with repetitions."""
        return [access for accesses in self.uses.values() for access in accesses]

    @property
    def loops(self) -> tuple[list[int], list[int]]:
        """Factors in the order of the instruction's loops: the kept ones, then the reduced ones."""
        kept = [i for i in range(len(self.factors)) if i not in self.reduced]
        return kept, sorted(self.reduced)

    def window(self, strides: Sequence[Size], frame: Frame) -> list[Size]:
        """Strides per factor of what a member accesses with `strides` per dimension of its own."""
        window: list[Size] = [0] * len(self.factors)
        for stride, run in zip(strides, frame, strict=True):
            for i in reversed(run):
                window[i] = stride
                if len(run) > 1:
                    stride = stride * self.factors[i]
        return window

    def space_frame(self, node: Node) -> Frame:
        """Factors of the dimensions of the space in which a member accesses its operands."""
        if node.op != "reduce":
            return self.frames[node]
        kept = iter(self.frames[node])
        shape, dims = node.attributes["shape"], node.attributes["dimensions"]
        left = sorted(self.reduced)
        frame: list[tuple[int, ...]] = []
        for d, size in enumerate(shape):
            if d not in dims:
                frame.append(next(kept))
                continue
            run: list[int] = []
            held: Size = 1
            while left and not same(held, size):
                run.append(left.pop(0))
                held = held * self.factors[run[-1]]
            frame.append(tuple(run))
        return tuple(frame)

    def agrees(self, reader: Node, access: Access) -> bool:
        """Whether a member reads, at every point of the loops, just what another member computes at that point."""
        node = access.node
        if access.dtype != node.dtype or not is_number(access.offset, 0):
            return False
        read = self.window(access.strides, self.space_frame(reader))
        made = self.window(node.strides, self.frames[node])
        return all(map(same, read, made))

    def union(self, other: Group) -> Group | None:
        """One group with the members of both, or None when one instruction cannot do the work of both or should not."""
        base, added = (self, other) if self.reduced or self.kind == "MATMUL" or not other.reduced else (other, self)
        if (
            base.kind not in ("TILE", "MATMUL")
            or added.kind != "TILE"
            or (base.kind == "MATMUL" and added.mode != "MAP")
        ):
            return None
        if base.kind == "MATMUL" and (base.random or added.random):
            return None
        if added.mode != "MAP" and added.mode != base.mode:
            return None
        union = base._joined(added, range(len(base.factors))) or (
            base._joined(added, base.loops[0]) if base.reduced and not added.reduced else None
        )
        if union is None:
            return None
        union.random = base.random or added.random
        if union.random and not union._counts_elements():
            return None
        union.uses = {**base.uses, **added.uses}
        newest = added.first > base.last  # then no member of the base reads a new one
        for readers, frames in ((added.uses, base.frames), ({} if newest else base.uses, added.frames)):
            for reader, accesses in readers.items():
                for access in accesses:
                    if access.node in frames and not union.agrees(reader, access):
                        return None
        if union.reduced:
            known = newest and bool(base.reduced)
            union.moving = set(base.moving) if known else set()
            if not union._fits_rows(added.frames if known else union.frames):
                return None
        else:
            union.moving = base.moving
        union.first = min(base.first, added.first)
        union.last = max(base.last, added.last)
        union.size = base.size + added.size
        return union

    def _joined(self, added: Group, positions: Sequence[int]) -> Group | None:
        """Factors and frames of a union in which the added group's factors are those of this one at `positions`."""
        split = refine([self.factors[i] for i in positions], added.factors)
        if split is None:
            return None
        mine, theirs, sizes = split
        union = object.__new__(Group)
        union.kind, union.mode = self.kind, self.mode
        if len(sizes) == len(positions):  # nothing was cut
            union.factors, union.reduced = self.factors, self.reduced
            own = None
            runs = [tuple(positions[i] for i in run) for run in theirs]
        else:
            factors: list[Size] = []
            own = []  # new numbers of the old factors
            new: list[int] = []  # new numbers of the refined ones
            at = {p: i for i, p in enumerate(positions)}
            for i, size in enumerate(self.factors):
                pieces = [sizes[k] for k in mine[at[i]]] if i in at else [size]
                run = tuple(range(len(factors), len(factors) + len(pieces)))
                own.append(run)
                if i in at:
                    new.extend(run)
                factors.extend(pieces)
            if self.mode != "MAP" or self.kind == "MATMUL":
                # Vectors run along the last loop, and a product is fast when its columns are one loop: what would cut it
                # is not worth a pass over memory saved.
                kept = [i for i in range(len(self.factors)) if i not in self.reduced]
                inner = len(self.factors) - 1 if self.mode != "COLUMN" else kept[-1] if kept else -1
                if (
                    inner >= 0
                    and len(own[inner]) > 1
                    and (self.kind == "MATMUL" or hint(factors[own[inner][-1]]) < SHORT_LOOP)
                ):
                    return None
            union.factors = tuple(factors)
            union.reduced = frozenset(k for i in self.reduced for k in own[i])
            runs = [tuple(new[i] for i in run) for run in theirs]
        # A reduction of dimensions of one element has no factors of its own, and must not get another's.
        if added.mode != "MAP" and frozenset(k for i in added.reduced for k in runs[i]) != union.reduced:
            return None
        union.frames = (
            dict(self.frames) if own is None else {node: _moved(frame, own) for node, frame in self.frames.items()}
        )
        for node, frame in added.frames.items():
            union.frames[node] = _moved(frame, runs)
        return union

    def is_row(self, node: Node) -> bool:
        """Whether a member has one result per row."""
        return not any(i in self.reduced for run in self.frames[node] for i in run)

    def _counts_elements(self) -> bool:
        """Whether the loops visit the elements of random members in row-major order, by which the numbers are counted."""
        kept, reduced = self.loops
        in_order = kept + reduced == list(range(len(self.factors)))
        return in_order and not any(
            node.op == "random_bits" and self.reduced and self.is_row(node) for node in self.frames
        )

    def _fits_rows(self, nodes: Iterable[Node]) -> bool:
        """Whether new members may share an instruction with its reductions: elements are visited again after a reduction only
        where that is cheap. Notes which of them move along a row.
        """
        again = self._may_visit_again()
        for node in sorted(nodes, key=lambda node: node.number):
            if node.op != "reduce" and self.is_row(node):
                continue
            accesses = self.uses[node]
            if not again and any(access.node in self.frames and access.node not in self.moving for access in accesses):
                return False
            if node.op == "random_bits" or (
                node.op != "reduce" and any(self._moves(node, access) for access in accesses)
            ):
                self.moving.add(node)
        return True

    def repeats_along_rows(self, node: Node) -> bool:
        """Whether a member over all elements is computed from nothing that changes along a row."""
        return bool(self.reduced) and node not in self.moving and node.op != "reduce" and not self.is_row(node)

    def _may_visit_again(self) -> bool:
        rows, row = 1, 1
        for i, size in enumerate(self.factors):
            if i in self.reduced:
                row *= hint(size)
            else:
                rows *= hint(size)
        return self.mode == "ROW" and (row <= ROW_LIMIT or rows >= MANY_ROWS)

    def _moves(self, node: Node, access: Access) -> bool:
        if access.node in self.frames:
            return access.node in self.moving
        if access.node.op in ("splat", "scalar"):
            return False
        window = self.window(access.strides, self.space_frame(node))
        return any(not is_number(window[i], 0) for i in self.reduced)


def refine(
    a: Sequence[Size], b: Sequence[Size]
) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]], list[Size]] | None:
    """The fewest sizes of which both lists are made: for each entry of `a`, and of `b`, its run of them; None if there are none."""
    if len(a) == len(b) and all(map(same, a, b)):
        whole = [(i,) for i in range(len(a))]
        return whole, whole, list(a)
    sizes: list[Size] = []
    runs: tuple[list[list[int]], list[list[int]]] = ([[] for _ in a], [[] for _ in b])
    i = j = 0
    left: Size = a[0] if a else 1
    right: Size = b[0] if b else 1
    while i < len(a) and j < len(b):
        runs[0][i].append(len(sizes))
        runs[1][j].append(len(sizes))
        if same(left, right):
            sizes.append(left)
            i, j = i + 1, j + 1
            left = a[i] if i < len(a) else 1
            right = b[j] if j < len(b) else 1
            continue
        rest = quotient(left, right)
        if rest is not None:
            sizes.append(right)
            left, j = rest, j + 1
            right = b[j] if j < len(b) else 1
            continue
        rest = quotient(right, left)
        if rest is None:
            return None
        sizes.append(left)
        right, i = rest, i + 1
        left = a[i] if i < len(a) else 1
    if i < len(a) or j < len(b):
        return None
    return [tuple(run) for run in runs[0]], [tuple(run) for run in runs[1]], sizes


def reduction_mode(shape: Sequence[Size], dimensions: Sequence[int]) -> str:
    """ROW if the last dimension (of those whose size is not 1) is reduced, else COLUMN. It fixes the order of summation, so it
    depends on the operation alone."""
    for d in range(len(shape) - 1, -1, -1):
        if not is_number(shape[d], 1):
            return "ROW" if d in dimensions else "COLUMN"
    return "ROW"


def _moved(frame: Frame, runs: Sequence[tuple[int, ...]]) -> Frame:
    """A frame whose factor i has become the factors runs[i]."""
    return tuple(tuple(k for i in run for k in runs[i]) for run in frame)
