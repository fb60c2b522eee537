"""What the passes after `simplify` work on: nodes that compute, and accesses that say which element of a node is meant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch_neuronx_compile.dim import Size, product
from torch_neuronx_compile.passes.access import reshape
from torch_neuronx_compile.passes.sizes import is_number, row_major, same, same_all

# Nodes that hold elements without computing them. Addresses of an "input" are elements of the launch's memory (its strides are
# the caller's), those of "dense" constants are row-major. An "iota" has no memory: its element at address a is a.
# "splat" (one number) and "scalar" (a number of the launch) have a single element.
SOURCES = frozenset(("input", "dense", "iota", "splat", "scalar"))
# Sources that an instruction makes out of nothing, so that reading them costs no memory.
FREE = frozenset(("iota", "splat", "scalar"))
# Nodes that move memory or index it, each an instruction of its own; everything else but "dot_general" goes into a TILE.
MOVERS = frozenset(("concatenate", "pad", "gather", "scatter", "scan"))


class Node:
    """One computation. Its result is addressed as if it lay in memory in row-major order, wherever it will be."""

    __slots__ = ("op", "operands", "shape", "dtype", "attributes", "location", "number", "strides", "contiguous")

    def __init__(self, op: str, operands: tuple[Access, ...], shape: tuple[Size, ...], dtype: str,
                 attributes: Mapping[str, Any], location: str, number: int,
                 contiguous: tuple[Size, ...] | None = None, strides: tuple[Size, ...] | None = None):  # fmt: skip
        """contiguous: row-major strides of the shape; strides: those of the addresses, where they differ."""
        self.op = op
        self.operands = operands
        self.shape = shape
        self.dtype = dtype
        self.attributes = attributes
        self.location = location
        self.number = number
        self.contiguous = row_major(shape) if contiguous is None else contiguous
        self.strides = self.contiguous if strides is None else strides

    def __repr__(self) -> str:
        return f"%{self.number} = {self.op}({', '.join(map(repr, self.operands))}) : {list(self.shape)} {self.dtype}"


class Access:
    """Which element of `node` each index of a consumer's space reads: offset + sum(index[d] * strides[d])."""

    __slots__ = ("node", "offset", "strides", "dtype")

    def __init__(self, node: Node, offset: Size, strides: tuple[Size, ...], dtype: str):
        self.node = node
        self.offset = offset
        self.strides = strides
        self.dtype = dtype

    def __repr__(self) -> str:
        return f"%{self.node.number}[{self.offset} + {list(self.strides)}]"


class Inlined:
    """A computation that every reader repeats instead of reading it from memory; operands as seen from the reader."""

    __slots__ = ("node", "operands")

    def __init__(self, node: Node, operands: tuple[Access | Inlined, ...]):
        self.node = node
        self.operands = operands

    def __repr__(self) -> str:
        return f"{self.node.op}({', '.join(map(repr, self.operands))})"


class Output:
    """One result of the program: what is written, and where the launch wants it."""

    __slots__ = ("access", "shape", "dtype", "strides", "contiguous", "alias")

    def __init__(self, access: Access, shape: tuple[Size, ...], dtype: str, strides: tuple[Size, ...],
                 contiguous: tuple[Size, ...], alias: int | None):  # fmt: skip
        self.access = access
        self.shape = shape
        self.dtype = dtype
        self.strides = strides
        self.contiguous = contiguous  # row-major strides of the shape
        self.alias = alias


class Plan:
    """A module after `layout`: nodes in an order in which operands come first, and the outputs."""

    __slots__ = ("nodes", "inputs", "scalars", "outputs", "excess_precision")

    def __init__(
        self, nodes: list[Node], inputs: list[Node], scalars: int, outputs: list[Output], excess_precision: bool = False
    ):
        self.nodes = nodes
        self.inputs = inputs
        self.scalars = scalars
        self.outputs = outputs
        self.excess_precision = excess_precision

    def __repr__(self) -> str:
        lines = [repr(node) for node in self.nodes]
        return "\n".join([*lines, *(f"output {i} = {o.access} : {list(o.shape)}" for i, o in enumerate(self.outputs))])


def is_identity(access: Access, shape: tuple[Size, ...]) -> bool:
    """Whether an access from a space of sizes `shape` reads the node's elements in the node's own order, each once."""
    node = access.node
    if access.dtype != node.dtype or not is_number(access.offset, 0):
        return False
    if access.strides is node.contiguous and shape is node.shape:
        return True
    mine = [(n, s) for n, s in zip(shape, access.strides, strict=True) if not is_number(n, 1)]
    own = [(n, s) for n, s in zip(node.shape, node.strides, strict=True) if not is_number(n, 1)]
    return len(mine) == len(own) and all(same(a, c) and same(b, d) for (a, b), (c, d) in zip(mine, own, strict=True))


def stored_strides(
    node: Node, access: Access, shape: tuple[Size, ...], strides: tuple[Size, ...]
) -> tuple[Size, ...] | None:
    """Strides under which a node can be stored so that `access`, from a space of sizes `shape`, finds its elements in a
    window with `strides`; None when the access does not read each element of the node exactly once."""
    if access.dtype != node.dtype or not is_number(access.offset, 0):
        return None
    if is_identity(access, shape) and same_all(shape, node.shape):
        return strides
    left = [
        (n, read, wanted) for n, read, wanted in zip(shape, access.strides, strides, strict=True) if not is_number(n, 1)
    ]
    sizes = [n for n, _, _ in left]
    if all(same(read, own) for (_, read, _), own in zip(left, row_major(sizes), strict=True)):
        if same(product(sizes), product(node.shape)):
            return reshape(sizes, tuple(wanted for _, _, wanted in left), node.shape)
    result: list[Size] = []
    for size, stride in zip(node.shape, node.strides, strict=True):
        if is_number(size, 1):
            result.append(0)
            continue
        for i, (extent, read, wanted) in enumerate(left):
            if same(extent, size) and same(read, stride):
                result.append(wanted)
                del left[i]
                break
        else:
            return None
    return tuple(result) if not left else None
