"""The operation table: for each operation its name in the text, its type rule, its attributes and how it prints.

The names are StableHLO's and CHLO's. Operations of our own stand for an idiom that StableHLO spells with several
operations or a region, and print as exactly that idiom: `scan` (a windowed reduction), `random_bits` (a Philox bit
generator), and the named bodies of `reduce` and `scatter`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from torch_neuronx_compile.stablehlo.value import Operation, TensorType, Value

Rule = Callable[["OpSpec", tuple[Value, ...], Mapping[str, Any]], tuple[TensorType, ...]]


class HloTypeError(TypeError):
    """An operation was applied to operands or attributes that its type rule does not accept."""


@dataclass(frozen=True, slots=True)
class OpSpec:
    """One row of the table.

    name:       the operation's name in this package
    text:       its name in StableHLO's text, with the dialect
    rule:       gives the result types, or raises `HloTypeError`
    accepts:    the element types of the operands, as letters: f(loat), i(nteger), b(oolean)
    attributes: the names of its attributes, all of which every operation carries
    style:      the printer's function for it
    """

    name: str
    text: str
    rule: Rule
    accepts: str = "fib"
    attributes: tuple[str, ...] = ()
    style: str = "generic"


OPS: dict[str, OpSpec] = {}

_LETTER = {"i1": "b", "ui8": "i", "i8": "i", "i16": "i", "i32": "i", "i64": "i"}
_WORDS = {"f": "float", "i": "integer", "b": "boolean"}


def define(
    name: str, text: str, rule: Rule, accepts: str = "fib", attributes: tuple[str, ...] = (), style: str = "generic"
) -> None:
    """Add a row to the table. Raises ValueError when the name is taken."""
    if name in OPS:
        raise ValueError(f"operation {name!r} is defined twice")
    OPS[name] = OpSpec(name, text, rule, accepts, attributes, style)


def make(name: str, operands: tuple[Value, ...], attributes: Mapping[str, Any] = {}) -> Value:  # noqa: B006 (never written)
    """The first result of a new operation, after its type rule accepted it."""
    spec = OPS[name]
    types = spec.rule(spec, operands, attributes)
    return Value(Operation(name, operands, attributes, types), 0, types[0])


def make_all(name: str, operands: tuple[Value, ...], attributes: Mapping[str, Any]) -> tuple[Value, ...]:
    """All results of a new operation, after its type rule accepted it."""
    spec = OPS[name]
    return Operation(name, operands, attributes, spec.rule(spec, operands, attributes)).results()


def verify(operation: Operation) -> None:
    """Check an operation that was not made by `make`: known name, exact attributes, types as the rule gives them."""
    spec = OPS.get(operation.name)
    if spec is None:
        raise HloTypeError(f"unknown operation {operation.name!r}")
    if set(operation.attributes) != set(spec.attributes):
        raise HloTypeError(
            f"{spec.text}: got attributes {sorted(operation.attributes)}; accepted: {sorted(spec.attributes)}"
        )
    types = spec.rule(spec, operation.operands, operation.attributes)
    if types != operation.types:
        raise HloTypeError(f"{spec.text}: carries types {operation.types}; its rule gives {types}")


def refuse(spec: OpSpec, operands: tuple[Value, ...], accepted: str) -> HloTypeError:
    """The error for operands that a type rule does not accept."""
    got = ", ".join(str(operand.type) for operand in operands) or "no operands"
    return HloTypeError(f"{spec.text}: got {got}; accepted: {accepted}")


def kind(dtype: str) -> str:
    """'f', 'i' or 'b' for an element type."""
    return _LETTER.get(dtype, "f")


def kinds_in_words(accepts: str) -> str:
    """'fi' -> 'float or integer'."""
    return " or ".join(_WORDS[letter] for letter in accepts)


def check_kinds(spec: OpSpec, operands: tuple[Value, ...]) -> None:
    """Raise unless every operand's element type is among those the row accepts."""
    for operand in operands:
        if _LETTER.get(operand.dtype, "f") not in spec.accepts:
            raise refuse(spec, operands, f"{kinds_in_words(spec.accepts)} element types")


def check_count(spec: OpSpec, operands: tuple[Value, ...], count: int) -> None:
    """Raise unless the number of operands is `count`."""
    if len(operands) != count:
        raise refuse(spec, operands, f"{count} operand{'s' if count != 1 else ''}")
