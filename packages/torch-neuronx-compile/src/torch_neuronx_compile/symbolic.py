"""Symbolic sizes of a graph as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Node

from torch_neuronx_compile.passes.errors import CompileError


class DataDependentSize(CompileError):
    """A size that a graph's arguments do not tell."""

    def __init__(self, size: str, operator: str = "", line: str = ""):
        super().__init__(
            operator, f"size {size} depends on the data, and programs have fixed sizes: leave the operator that makes it outside of the "
            f"compiled function (torch.compiler.disable), or mask instead of selecting\n{line}"
        )  # fmt: skip
        self.size = size


class Shapes:
    """What symbolic sizes of a graph are in one call: FX metadata -> ints."""

    def __init__(self, graph: GraphModule, arguments: Sequence[Any]):
        self.values: dict[Any, int] = {}
        for node, argument in zip(placeholders(graph), arguments, strict=True):
            meta = node.meta.get("val")
            if isinstance(meta, torch.SymInt):
                self._learn(meta, int(argument))
            elif isinstance(meta, torch.Tensor):
                for symbolic, actual in zip(
                    (*meta.shape, *meta.stride()), (*argument.shape, *argument.stride()), strict=True
                ):
                    self._learn(symbolic, actual)

    def _learn(self, symbolic: Any, actual: Any) -> None:
        if isinstance(symbolic, torch.SymInt) and symbolic.node.expr.is_Symbol:
            self.values[symbolic.node.expr] = actual if isinstance(actual, int) else int(actual)

    def concrete(self, size: Any) -> Any:
        """A size as an int."""
        if not isinstance(size, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            return size
        found = size.node.expr.subs(self.values) if hasattr(size.node.expr, "subs") else size.node.expr
        if getattr(found, "free_symbols", None):
            raise DataDependentSize(str(found))
        if isinstance(size, torch.SymBool):
            return bool(found)
        return int(found) if isinstance(size, torch.SymInt) else float(found)

    def all(self, sizes: Sequence[Any]) -> tuple[int, ...]:
        return tuple(map(self.concrete, sizes))

    def text(self, size: Any) -> str:
        """A size for graph_text(); one that depends on data keeps its name."""
        try:
            return repr(self.concrete(size))
        except DataDependentSize as error:
            return error.size


def placeholders(graph: GraphModule) -> list[Node]:
    """The graph's inputs in order."""
    return [node for node in graph.graph.nodes if node.op == "placeholder"]
