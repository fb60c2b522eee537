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


def span(shape: Sequence[int], strides: Sequence[int], offset: int) -> tuple[int, int]:
    """Storage positions that a view reaches, [first, end); empty at its offset when it has no elements."""
    if 0 in shape:
        return offset, offset
    return offset, offset + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True)) + 1


def _order(shape: Sequence[int], strides: Sequence[int]) -> list[int]:
    """Dimensions of a dense tensor from the outermost in memory to the innermost."""
    return sorted(range(len(shape)), key=lambda d: (-strides[d], shape[d] == 1))


def to_memory(x: Value, strides: Sequence[int]) -> Value:
    """Elements of a dense tensor in the order of its memory, one dimension."""
    return hlo.reshape(hlo.transpose(x, _order(x.shape, strides)), (prod(x.shape),))


def wider_arguments(graph: GraphModule, concrete: Callable[[Any], int]) -> dict[Node, tuple[int, int]]:
    """Arguments of whose storage the graph's storage operators see more than the dense argument itself: the positions
    [first, end) that they reach. `concrete` makes numbers of symbolic sizes."""
    owners: dict[int, Node] = {}
    found: dict[Node, tuple[int, int]] = {}
    for node in graph.graph.nodes:
        meta = node.meta.get("val")
        if not isinstance(meta, torch.Tensor):
            continue
        if node.op == "placeholder":
            owners.setdefault(storage(meta), node)
        if not (isinstance(node.target, torch._ops.OpOverload) and node.target.name() in OPERATORS):
            continue
        source = node.args[0].meta["val"]
        owner = owners.get(storage(source))
        if owner is None:
            continue
        window = node.args[1:3] if OPERATORS[node.target.name()] == 3 else node.args[2:4]
        given = node.args[OPERATORS[node.target.name()] :] or (node.kwargs.get("storage_offset"),)
        offset = source.storage_offset() if given[0] is None else given[0]
        base = owner.meta["val"]
        shape, strides = ([concrete(s) for s in sizes] for sizes in (base.shape, base.stride()))
        own = span(shape, strides, concrete(base.storage_offset()))
        reach = span(*([concrete(s) for s in sizes] for sizes in window), concrete(offset))
        first, end = found.get(owner, own)
        if not is_dense(shape, strides) or reach[0] < first or reach[1] > end:
            found[owner] = min(first, reach[0]), max(end, reach[1])
    return found
