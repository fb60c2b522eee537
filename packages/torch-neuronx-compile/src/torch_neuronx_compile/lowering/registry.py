"""The lowering table: one row, one function, per functional ATen operator.

    @lowers("aten::add.Tensor", operands=("alpha",))
    def add(x, y, alpha):
        ...

The function takes the operator's schema arguments in order, positionally, defaults filled in. A tensor is a `Value`; so is
a scalar argument that the row names in `operands` and that is given at launch (rank 0; its element type is "f64", "i64" or
"i1"); in a graph such an argument may also be a plain number. Everything else is a Python value. The function returns one
`Value` per result of the functional form, in the result's own dtype, shape and order; tensor lists may stay lists.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib.metadata import entry_points
from typing import Any

import torch

from torch_neuronx_compile.stablehlo import TensorType, Value, location

ENTRY_POINTS = "torch_neuronx.lowerings"  # modules of other packages whose import adds rows


class Unsupported(Exception):
    """A row cannot express this call (not an error of the user's). Says which operator, what about it, and what would work."""


class Row:
    """One lowering.

    name:     the functional operator, "aten::add.Tensor"
    operands: names of scalar arguments that are given at launch and so do not belong to a program's key
    sizing:   the results' sizes depend on the scalars of `operands`
    random:   the function takes `seed` and `offset`, rank-0 i64 Values of the device generator
    outputs:  the function takes `outputs`, the TensorTypes of the results (for factories, whose arguments alone
              do not tell a symbolic size)
    """

    __slots__ = ("name", "function", "operands", "random", "outputs", "sizing")

    def __init__(self, name: str, function: Callable[..., Any], operands: tuple[str, ...], random: bool, outputs: bool,
                 sizing: bool):  # fmt: skip
        self.name = name
        self.function = function
        self.operands = operands
        self.random = random
        self.outputs = outputs
        self.sizing = sizing

    def __repr__(self) -> str:
        return f"<lowering row {self.name}>"

    def lower(self, args: Sequence[Any], *, outputs: Sequence[TensorType] = (), seed: Value | None = None,
              offset: Value | None = None) -> list[Value]:  # fmt: skip
        """The results for one call, tensor lists flattened; an undefined result (output_mask) is left out.

        Raises `Unsupported` when the row cannot express the call.
        """
        extra: dict[str, Any] = {}
        if self.random:
            extra["seed"], extra["offset"] = seed, offset
        if self.outputs:
            extra["outputs"] = outputs
        with location(self.name):
            result = self.function(*args, **extra)
        return [result] if isinstance(result, Value) else list(_flatten(result))


def _flatten(results: Iterable[Any]) -> Iterable[Value]:
    for result in results:
        if isinstance(result, Value):
            yield result
        elif result is not None:
            yield from _flatten(result)


ROWS: dict[str, Row] = {}


def lowers(*names: str, operands: tuple[str, ...] = (), random: bool = False, outputs: bool = False,
           sizing: bool = False) -> Callable:  # fmt: skip
    """Register the decorated function as the lowering of functional operators; the flags are `Row`'s.

    Raises ValueError when an operator already has a row or is not written "namespace::name[.overload]".
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            if "::" not in name:
                raise ValueError(
                    f'lowers({name!r}): write the operator as "namespace::name" or "namespace::name.overload"'
                )
            if name in ROWS:
                raise ValueError(f"lowers({name!r}): the operator already has a row ({ROWS[name].function.__module__})")
            ROWS[name] = Row(name, function, operands, random, outputs, sizing)
        return function

    return register


@cache
def load_entry_points() -> None:
    """Import the modules that other packages offer in the entry-point group. One that fails is named in a warning:
    its operators have no rows, all others work."""
    for entry in entry_points(group=ENTRY_POINTS):
        try:
            entry.load()
        except Exception as error:
            warnings.warn(
                f"lowerings {entry.name!r} ({entry.value}) could not be loaded: {type(error).__name__}: {error}",
                RuntimeWarning, stacklevel=2,
            )  # fmt: skip


def lookup(name: str) -> Row | None:
    """The row of a functional operator such as "aten::add.Tensor", or None."""
    load_entry_points()
    return ROWS.get(name)


def schema(name: str) -> torch.FunctionSchema | None:
    """The operator's schema, or None if torch does not know it."""
    base, _, overload = name.partition(".")
    for candidate in torch._C._jit_get_schemas_for_operator(base):
        if candidate.overload_name == overload:
            return candidate
    return None
