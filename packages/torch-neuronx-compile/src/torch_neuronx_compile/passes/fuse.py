"""fuse: a plan -> kernels, each of which becomes one instruction (or, for what moves memory, a few).

Two decisions are taken. Which computations are *inlined*: repeated by every reader because that is cheaper than memory.
And which share a *group*: a TILE (or the epilogue of a MATMUL) whose members hand their results on in registers.
Neither changes a result: rounding belongs to the operation, and the order of a summation to the reduction alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush

from torch_neuronx_compile.dim import Size, hint
from torch_neuronx_compile.passes.access import compose
from torch_neuronx_compile.passes.group import Group
from torch_neuronx_compile.passes.plan import (
    FREE,
    MOVERS,
    SOURCES,
    Access,
    Inlined,
    Node,
    Plan,
    is_identity,
    stored_strides,
)
from torch_neuronx_compile.passes.sizes import same_all

# Operations that cost about as much as a load. The others are dear: they are computed once and kept.
CHEAP = frozenset((
    "copy", "convert", "add", "subtract", "multiply", "negate", "abs", "maximum", "minimum", "and", "or", "xor", "not",
    "compare", "select", "clamp", "sign", "floor", "ceil", "round_nearest_even", "is_finite",
    "shift_left", "shift_right_arithmetic", "shift_right_logical",
))  # fmt: skip
BYTES = {"f32": 4, "bf16": 2, "f16": 2, "f64": 8, "i1": 1, "ui8": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8}
DEAR_COST = 16
FREE_LIMIT = 8  # cost up to which a computation on indices and numbers alone is repeated by every reader
CHEAP_LIMIT = 3  # the same, for a computation that reads no more bytes than it makes
MEMBER_LIMIT = 96  # operations of one TILE, well below the format's 256 micro-operations

Operand = Access | Inlined


def space(node: Node) -> tuple[Size, ...]:
    """The index space in which a node's operands are accessed."""
    return node.attributes["shape"] if node.op == "reduce" else node.shape


def operand_shapes(node: Node) -> tuple[tuple[Size, ...], ...]:
    """The space in which each operand is accessed."""
    attributes = node.attributes
    match node.op:
        case "reduce":
            return (attributes["shape"],)
        case "dot_general":
            return attributes["lhs_shape"], attributes["rhs_shape"]
        case "gather":
            return attributes["sizes"], attributes["index_shape"]
        case "scatter":
            return node.shape, attributes["index_shape"], attributes["update_shape"]
        case "pad":
            return attributes["shape"], ()
        case "concatenate":
            d = attributes["dimension"]
            return tuple((*node.shape[:d], size, *node.shape[d + 1 :]) for size in attributes["sizes"])
    return (node.shape,) * len(node.operands)


def leaves(operand: Operand) -> Iterator[Access]:
    """The accesses of an operand."""
    if isinstance(operand, Access):
        yield operand
    else:
        for inner in operand.operands:
            yield from leaves(inner)


def elements(shape: Sequence[Size]) -> int:
    """Number of elements in the example call."""
    total = 1
    for size in shape:
        total *= hint(size)
    return total


def is_pointwise(node: Node) -> bool:
    """Whether a node computes each element of its result from the same element of its operands."""
    return node.op not in SOURCES and node.op not in MOVERS and node.op not in ("reduce", "dot_general", "random_bits")


class Fusion:
    """The result: `kernels` in execution order; for every computed node its operands after inlining."""

    __slots__ = ("plan", "kernels", "operands", "group_of", "roots", "stored")

    def __init__(self, plan: Plan):
        self.plan = plan
        self.kernels: list[Group] = []
        self.operands: dict[Node, tuple[Operand, ...]] = {}
        self.group_of: dict[Node, Group] = {}
        self.stored: set[Node] = set()  # nodes that leave their instruction
        self.roots: list[Node] = []  # one node for each output, which can be stored straight into it

    def __repr__(self) -> str:
        return "\n".join(map(repr, self.kernels))


class _Fuser:
    def __init__(self, plan: Plan):
        self.plan = plan
        self.result = Fusion(plan)
        self.operands = self.result.operands
        self.group_of = self.result.group_of
        self.cost: dict[Node, int] = {}

    # ---- outputs ----------------------------------------------------------------------------------------------------

    def root_outputs(self) -> None:
        """Give each output a node of its own that can be stored straight into it."""
        taken: set[Node] = set()
        for output in self.plan.outputs:
            access = output.access
            node = access.node
            direct = node.op not in SOURCES and node not in taken
            if not direct or stored_strides(node, access, output.shape, output.strides) is None:
                node = Node("copy", (access,), output.shape, output.dtype, {}, node.location, len(self.plan.nodes))
                self.plan.nodes.append(node)
                output.access = Access(node, 0, node.strides, node.dtype)
            taken.add(node)
            self.result.roots.append(node)

    # ---- inlining ---------------------------------------------------------------------------------------------------

    def inline(self) -> None:
        users: dict[Node, int] = {}
        for node in self.plan.nodes:
            for access in node.operands:
                users[access.node] = users.get(access.node, 0) + 1
        for root in self.result.roots:
            users[root] = users.get(root, 0) + 1
        for node in self.plan.nodes:
            if node.op in SOURCES:
                continue
            fusible = is_pointwise(node) or node.op == "reduce"
            if fusible:
                self.operands[node] = tuple(self.expand(node, access, users) for access in node.operands)
                self.cost[node] = (1 if node.op in CHEAP else DEAR_COST) + sum(
                    self.cost[o.node] for o in self.operands[node] if isinstance(o, Inlined)
                )
            else:
                self.operands[node] = node.operands

    def expand(self, reader: Node, access: Access, users: dict[Node, int]) -> Operand:
        node = access.node
        if node.op in SOURCES or not is_pointwise(node) or access.dtype != node.dtype:
            return access
        if not self.repeats(reader, access, users[node]):
            return access
        whole = self.operands[node][0] if node.op == "copy" else Inlined(node, self.operands[node])
        if is_identity(access, space(reader)) and same_all(space(reader), node.shape):
            return whole
        moved = self.seen_through(whole, space(reader), access)
        return access if moved is None else moved

    def repeats(self, reader: Node, access: Access, users: int) -> bool:
        """Whether a reader computes the accessed node again."""
        node, cost = access.node, self.cost[access.node]
        sources = [leaf for operand in self.operands[node] for leaf in leaves(operand)]
        if all(leaf.node.op in FREE for leaf in sources):
            return cost <= FREE_LIMIT
        in_memory = all(leaf.node.op in SOURCES or leaf.node.op in MOVERS for leaf in sources)
        if not in_memory:
            return False
        read = sum(BYTES[leaf.dtype] for leaf in sources if leaf.node.op not in FREE)
        if cost <= CHEAP_LIMIT and read <= BYTES[node.dtype]:
            return True
        return users == 1 and not is_identity(access, space(reader)) and elements(space(reader)) <= elements(node.shape)

    def seen_through(self, operand: Operand, extents: Sequence[Size], view: Access) -> Operand | None:
        """An operand of view.node, as the reader of `view` sees it; None when that is not a strided window."""
        if isinstance(operand, Inlined):
            inner = []
            for part in operand.operands:
                moved = self.seen_through(part, extents, view)
                if moved is None:
                    return None
                inner.append(moved)
            return Inlined(operand.node, tuple(inner))
        if operand.node.op in ("splat", "scalar"):
            return Access(operand.node, 0, (0,) * len(extents), operand.dtype)
        found = compose(view.node.shape, operand.offset, operand.strides, extents, view.offset, view.strides)
        return None if found is None else Access(operand.node, found[0], found[1], operand.dtype)

    # ---- grouping ---------------------------------------------------------------------------------------------------

    def needed(self) -> list[Node]:
        """Nodes that are computed somewhere in their own right, operands first."""
        wanted = set(self.result.roots)
        for node in reversed(self.plan.nodes):
            if node in wanted:
                wanted.update(a.node for o in self.operands[node] for a in leaves(o) if a.node.op not in SOURCES)
        return [node for node in self.plan.nodes if node in wanted]

    def group(self, nodes: Sequence[Node]) -> None:
        """Element-wise computations and reductions first, each with what computes its operands; then what is left of them around a
        product becomes its epilogue. (The other way round, a product would store parts of the reductions that follow it.)
        """
        products = []
        for node in nodes:
            accesses = [a for o in self.operands[node] for a in leaves(o)]
            group = Group(node, accesses, self.cost_of(node))
            self.group_of[node] = group
            if group.kind == "MATMUL":
                products.append(node)
            if group.kind != "TILE":
                continue
            candidates = {self.group_of[a.node] for a in accesses if a.node in self.group_of}
            for other in sorted(candidates, key=lambda g: (g.mode == "MAP", -g.last)):
                if other.kind == "TILE":
                    group = self.merge(other, group)
        readers = self.readers()
        for product in products:
            for other in sorted({self.group_of[node] for node in readers.get(product, ())}):
                if other.kind == "TILE" and other.mode == "MAP" and self.group_of[product].kind == "MATMUL":
                    self.merge(self.group_of[product], other)

    def readers(self) -> dict[Node, list[Node]]:
        """The nodes that read each node."""
        found: dict[Node, list[Node]] = {}
        for node in self.group_of:
            for operand in self.operands[node]:
                for access in leaves(operand):
                    found.setdefault(access.node, []).append(node)
        return found

    def cost_of(self, node: Node) -> int:
        """Number of operations that a node adds to its group."""

        def count(operand: Operand) -> int:
            return 0 if isinstance(operand, Access) else 1 + sum(map(count, operand.operands))

        return 1 + sum(map(count, self.operands[node]))

    def merge(self, older: Group, newer: Group) -> Group:
        """The union of two groups if it is legal and good, else `newer`."""
        if older is newer or older.size + newer.size > MEMBER_LIMIT or self.is_between(older, newer):
            return newer
        union = older.union(newer)
        if union is None:
            return newer
        for node in union.members:
            self.group_of[node] = union
        return union

    def is_between(self, a: Group, b: Group) -> bool:
        """Whether a third group must run after one of the two and before the other."""
        start = min(a.first, b.first)
        seen: set[int] = {id(a), id(b)}
        stack = [g for g in self.depends(a) | self.depends(b) if g is not a and g is not b]
        while stack:
            group = stack.pop()
            if id(group) in seen or group.last < start:
                continue
            seen.add(id(group))
            for other in self.depends(group):
                if other is a or other is b:
                    return True
                stack.append(other)
        return False

    def depends(self, group: Group) -> set[Group]:
        found = {self.group_of[a.node] for a in group.accesses if a.node in self.group_of}
        found.discard(group)
        return found

    def store(self) -> None:
        """Find the nodes that other instructions, or the caller, read."""
        stored = self.result.stored
        stored.update(self.result.roots)
        for node, group in self.group_of.items():
            for operand in self.operands[node]:
                stored.update(a.node for a in leaves(operand) if self.group_of.get(a.node, group) is not group)
        stored.update(node for node in self.group_of if node.op in MOVERS)

    # ---- order ------------------------------------------------------------------------------------------------------

    def schedule(self) -> None:
        """Kernels in an order in which operands come first, otherwise as the program had them."""
        groups = set(self.group_of.values())
        waiting = {group: self.depends(group) for group in groups}
        readers: dict[Group, list[Group]] = {}
        for group, needs in waiting.items():
            for other in needs:
                readers.setdefault(other, []).append(group)
        left = {group: len(needs) for group, needs in waiting.items()}
        ready = [(group.last, group) for group in groups if not left[group]]
        heapify(ready)
        while ready:
            _, group = heappop(ready)
            self.result.kernels.append(group)
            for reader in readers.get(group, ()):
                left[reader] -= 1
                if not left[reader]:
                    heappush(ready, (reader.last, reader))
        assert len(self.result.kernels) == len(groups), "kernels depend on each other in a circle"


def fuse(plan: Plan) -> Fusion:
    """Decide which computations are repeated, which share an instruction, and in which order the instructions run."""
    self = _Fuser(plan)
    self.root_outputs()
    self.inline()
    self.group(self.needed())
    self.store()
    self.schedule()
    return self.result
