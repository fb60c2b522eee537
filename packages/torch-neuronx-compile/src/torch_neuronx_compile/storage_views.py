"""Operators of a graph that see a tensor's storage instead of its elements: as_strided and as_strided_scatter.

Values of a graph are elements in logical order. What such an operator asks for is the memory behind them: known where a
tensor of the graph fills its piece of memory without gaps, and for an argument of the graph by taking more of the
argument's storage than the tensor shows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import torch
from torch.fx import GraphModule, Node

import torch_neuronx_compile.stablehlo as hlo
from torch_neuronx_compile.passes.sizes import span
from torch_neuronx_compile.stablehlo.value import Value

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


def wider_arguments(
    graph: GraphModule, owner_of: dict[int, Node], concrete: Callable[[Any], int]
) -> dict[Node, tuple[int, int]]:
    """Arguments of whose storage the graph's storage operators see more than the dense argument itself: the positions
    [first, end) that they reach. `concrete` makes numbers of symbolic sizes."""
    found: dict[Node, tuple[int, int]] = {}
    for node in graph.graph.nodes:
        place = OPERATORS.get(node.target.name()) if isinstance(node.target, torch._ops.OpOverload) else None
        if place is None:
            continue
        source = node.args[0].meta["val"]
        owner = owner_of[storage(source)]
        if owner.op != "placeholder":
            continue
        size, stride = ([concrete(n) for n in numbers] for numbers in node.args[place - 2 : place])
        given = node.args[place] if len(node.args) > place else node.kwargs.get("storage_offset")
        base = owner.meta["val"]
        shape, strides = ([concrete(n) for n in numbers] for numbers in (base.shape, base.stride()))
        own = reach(shape, strides, concrete(base.storage_offset()))
        first, end = reach(size, stride, concrete(source.storage_offset() if given is None else given))
        known = found.get(owner, own)
        if not is_dense(shape, strides) or first < known[0] or end > known[1]:
            found[owner] = min(known[0], first), max(known[1], end)
    return found
