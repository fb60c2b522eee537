"""Which operators a traced graph may contain: those with a lowering stay whole, the others are decomposed if torch knows how."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch

from torch_neuronx_compile.lowering import functional


@cache
def decompositions() -> dict[Any, Callable[..., Any]]:
    """torch's decompositions of the operators that have no lowering of their own."""
    from torch._decomp import global_decomposition_table

    return {
        op: function
        for op, function in global_decomposition_table["post_autograd"].items()
        if isinstance(op, torch._ops.OpOverload) and functional(op.name()) is None
    }
