"""The text by which a graph's program is found in the cache."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.fx import GraphModule, Node

from torch_neuronx_compile.symbolic import Shapes


def graph_text(graph: GraphModule, shapes: Shapes) -> str:
    """What decides which program a graph becomes, as text: nodes, arguments, and sizes, strides and dtypes at its borders."""
    names: dict[Node, str] = {}
    lines: list[str] = []
    for number, node in enumerate(graph.graph.nodes):
        names[node] = f"%{number}"
        parts = [f"%{number} {node.op}"]
        if node.op == "call_function":
            target = node.target
            parts.append(
                target.name() if isinstance(target, torch._ops.OpOverload) else f"{target.__module__}.{target.__name__}"
            )
            parts.append(_argument_text(node.args, names, shapes))
            if node.kwargs:
                parts.extend(f"{key}={_argument_text(value, names, shapes)}" for key, value in node.kwargs.items())
        elif node.op == "output":
            parts.append(_argument_text(node.args, names, shapes))
            flat = node.args[0] if isinstance(node.args[0], (tuple, list)) else (node.args[0],)
            parts.extend(_tensor_text(item.meta["val"], shapes) for item in flat if isinstance(item, Node))
        elif node.op == "get_attr":
            value: Any = graph
            for name in str(node.target).split("."):
                value = getattr(value, name)
            parts.append(_tensor_text(value, shapes))
        else:
            parts.append(_tensor_text(node.meta.get("val"), shapes))
        lines.append(" ".join(parts))
    return "\n".join(lines)


def _tensor_text(value: Any, shapes: Shapes) -> str:
    if isinstance(value, torch.Tensor):
        sizes, strides = (",".join(map(shapes.text, numbers)) for numbers in (value.shape, value.stride()))
        return f"{value.dtype}({sizes})({strides}){value.device.type}"
    return shapes.text(value)


def _argument_text(value: Any, names: Mapping[Node, str], shapes: Shapes) -> str:
    if isinstance(value, Node):
        return names[value]
    if isinstance(value, (list, tuple)):
        return f"({','.join(_argument_text(item, names, shapes) for item in value)})"
    if isinstance(value, slice):
        return f"slice{_argument_text((value.start, value.stop, value.step), names, shapes)}"
    return value.hex() if isinstance(value, float) else shapes.text(value)
