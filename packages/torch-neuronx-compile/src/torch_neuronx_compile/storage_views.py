"""Operators of a graph that see a tensor's storage instead of its elements: as_strided and as_strided_scatter.

Values of a graph are elements in logical order. What such an operator asks for is the memory behind them: known where a
tensor of the graph fills its piece of memory without gaps, and for an argument of the graph by taking more of the
argument's storage than the tensor shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import torch
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg

import torch_neuronx_compile.stablehlo as hlo
from torch_neuronx_compile.passes.sizes import span
from torch_neuronx_compile.stablehlo.value import Value
from torch_neuronx_compile.symbolic import DataDependentSize, Shapes

OPERATORS = {
    "aten::as_strided": 3,
    "aten::as_strided_copy": 3,
    "aten::as_strided_scatter": 4,
}  # -> position of the offset


def storage(tensor: torch.Tensor) -> int:
    """Identity of a (fake) tensor's storage."""
    return tensor.untyped_storage()._cdata


def is_dense(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether a tensor's elements fill a piece of memory without gaps and without overlaps."""
    expected = 1
    for stride, size in sorted((stride, size) for size, stride in zip(shape, strides, strict=True) if size != 1):
        if stride != expected:
            return False
        expected *= size
    return True


def reach(shape: Sequence[int], strides: Sequence[int], offset: int) -> tuple[int, int]:
    """Storage positions of a view, [first, end)."""
    return offset, offset + span(shape, strides)


def _order(shape: Sequence[int], strides: Sequence[int]) -> list[int]:
    """Dimensions of a dense tensor from the outermost in memory to the innermost."""
    return sorted(range(len(shape)), key=lambda d: (-strides[d], shape[d] == 1))


def to_memory(x: Value, strides: Sequence[int]) -> Value:
    """Elements of a dense tensor in the order of its memory, one dimension."""
    return hlo.reshape(hlo.transpose(x, _order(x.shape, strides)), (prod(x.shape),))


def owners(graph: GraphModule) -> dict[int, Node]:
    """By storage: the first node that has it, of which the others are views."""
    found: dict[int, Node] = {}
    for node in graph.graph.nodes:
        if isinstance(node.meta.get("val"), torch.Tensor):
            found.setdefault(storage(node.meta["val"]), node)
    return found


def wider_arguments(graph: GraphModule, owner_of: dict[int, Node], shapes: Shapes) -> dict[Node, tuple[int, int]]:
    """Arguments of whose storage the graph's storage operators see more than the dense argument itself: the positions
    [first, end) that they reach."""
    found: dict[Node, tuple[int, int]] = {}
    for node in graph.graph.nodes:
        place = OPERATORS.get(node.target.name()) if isinstance(node.target, torch._ops.OpOverload) else None
        if place is None:
            continue
        source = node.args[0].meta["val"]
        owner = owner_of[storage(source)]
        if owner.op != "placeholder":
            continue
        # In a graph with symbolic sizes the numbers among the arguments are nodes of their own.
        args = map_arg((*node.args[: place + 1], node.kwargs.get("storage_offset")), lambda n: n.meta["val"])
        offset = source.storage_offset() if args[place] is None else args[place]
        base = owner.meta["val"]
        try:
            first, end = reach(shapes.all(args[place - 2]), shapes.all(args[place - 1]), shapes.concrete(offset))
        except DataDependentSize:
            continue  # the operator that makes the size is refused
        shape, strides = shapes.all(base.shape), shapes.all(base.stride())
        known = found.get(owner) or reach(shape, strides, shapes.concrete(base.storage_offset()))
        if not is_dense(shape, strides) or first < known[0] or end > known[1]:
            found[owner] = min(known[0], first), max(known[1], end)
    return found
