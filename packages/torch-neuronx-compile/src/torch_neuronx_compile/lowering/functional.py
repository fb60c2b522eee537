"""From the operator that was called to the row that lowers it.

In-place and out= forms have no rows of their own: they are their functional form, whose results are then written into the
arguments that the called form mutates. The correspondence is read off the schemas.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from torch_neuronx_compile.lowering.registry import Row, lookup, schema

# Arguments that the schema does not mark as written, but that are: running statistics.
_HIDDEN_WRITES = {"aten::native_batch_norm": ("running_mean", "running_var")}

_FACTORY = (
    "dtype",
    "layout",
    "device",
    "pin_memory",
)  # what a factory's functional form takes and its out= form does not


@dataclass(frozen=True, slots=True)
class Functional:
    """How one operator maps to a row.

    name:     the operator that was called
    row:      the row of its functional form
    padding:  how many trailing arguments the functional form has beyond those of the call; they are None
    operands: positions in the called operator's arguments of the scalars that are given at launch
    mutated:  positions of the arguments that the called form writes, `out` arguments excluded
    out:      number of `out` arguments
    returned: number of the row's results that are not written into a mutated argument (tensor lists count as one)
    dtype:    of an out form, position of the argument `dtype`, which is the `out` argument's dtype unless given: torch
              converts what it sums to that first; None if there is no such argument

    Results come in this order: those the operator returns as new tensors, then one per mutated argument in schema order
    (a list gives one per element, an argument that is None gives none).
    A mutated or out argument has its own dtype, to which the result is converted.
    """

    name: str
    row: Row
    padding: int
    operands: tuple[int, ...]
    mutated: tuple[int, ...]
    out: int
    returned: int
    dtype: int | None

    def arguments(self, args: Sequence[Any], out_dtype: torch.dtype | None = None) -> tuple[Any, ...]:
        """The row's arguments for the called operator's arguments (without its `out` arguments, whose dtype is given)."""
        if self.dtype is not None and args[self.dtype] is None:
            args = (*args[: self.dtype], out_dtype, *args[self.dtype + 1 :])
        return (*args, *(None,) * self.padding)


_FOUND: dict[str, Functional] = {}


def functional(name: str) -> Functional | None:
    """The row that computes an operator such as "aten::add_.Tensor" or "aten::mean.out"; None if there is none.

    A None is not remembered: an operator may be defined later (`prims` when torch.compile is first used, libraries of users).
    """
    found = _FOUND.get(name)
    if found is None and (found := _find(name)) is not None:
        _FOUND[name] = found
    return found


def _find(name: str) -> Functional | None:
    called = schema(name)
    if called is None:
        return None
    inputs = [a for a in called.arguments if not a.is_out]
    hidden = _HIDDEN_WRITES.get(name, ())
    mutated = tuple(
        i for i, a in enumerate(inputs) if a.name in hidden or (a.alias_info is not None and a.alias_info.is_write)
    )
    out = len(called.arguments) - len(inputs)
    row, padding = lookup(name), 0
    if row is None:
        for candidate in _candidates(called, bool(mutated)):
            padding = _extra_arguments(inputs, candidate.arguments)
            if padding is not None and (row := lookup(_full_name(candidate))):
                break
    if row is None:
        return None
    names = [a.name for a in inputs]
    operands = tuple(names.index(operand) for operand in row.operands)
    fresh = sum(1 for r in called.returns if r.alias_info is None or not r.alias_info.is_write)
    dtype = names.index("dtype") if out == 1 and "dtype" in names else None
    return Functional(name, row, padding, operands, mutated, out, fresh, dtype)


def _full_name(candidate: torch.FunctionSchema) -> str:
    return f"{candidate.name}.{candidate.overload_name}" if candidate.overload_name else candidate.name


def _candidates(called: torch.FunctionSchema, in_place: bool) -> list[torch.FunctionSchema]:
    base = called.name
    bases = (base,)
    if in_place:
        stem = base.removesuffix("_")
        bases = (stem, f"{stem}_functional")
    return [
        candidate
        for name in bases
        for candidate in torch._C._jit_get_schemas_for_operator(name)
        if not any(a.alias_info is not None and a.alias_info.is_write for a in candidate.arguments)
    ]


def _extra_arguments(inputs: Sequence[torch.Argument], candidate: Sequence[torch.Argument]) -> int | None:
    """How many factory arguments the candidate adds to these inputs; None if it is another function."""
    own = [a for a in candidate if a.name not in _FACTORY or any(a.name == i.name for i in inputs)]
    same = len(own) == len(inputs) and all(
        a.name == b.name and str(a.type) == str(b.type) for a, b in zip(inputs, own, strict=True)
    )
    return len(candidate) - len(own) if same else None
