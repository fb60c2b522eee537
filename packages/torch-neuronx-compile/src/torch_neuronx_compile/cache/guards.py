"""Guards of stored programs: conditions on a call's slots, as text, decided without the compiler."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

_COMPARE = {"EQ": lambda a, b: a == b, "NE": lambda a, b: a != b, "LT": lambda a, b: a < b, "LE": lambda a, b: a <= b}
_OPERATIONS = {"floordiv": lambda a, b: a // b, "mod": lambda a, b: a % b, "max": max, "min": min}


def encode(guards: Sequence[Any]) -> str:
    """Text of `dim.Guard`s whose symbols' sources are numbers of slots. An expression is a number or a list of
    [coefficient, factor...]; a factor is a slot's number or [operation, expression, expression]."""
    return json.dumps([[g.op, _expression(g.left), _expression(g.right)] for g in guards], separators=(",", ":"))


def _expression(size: Any) -> Any:
    if isinstance(size, int):
        return size
    return [[coefficient, *map(_factor, monomial)] for monomial, coefficient in size.terms]


def _factor(atom: Any) -> Any:
    source = getattr(atom, "source", None)
    return source if source is not None else [atom.op, _expression(atom.a), _expression(atom.b)]


def holds(text: str, slots: Sequence[int]) -> bool:
    """Whether all guards of a text hold for a call."""
    return all(_COMPARE[op](_value(a, slots), _value(b, slots)) for op, a, b in json.loads(text))


def _value(expression: Any, slots: Sequence[int]) -> int:
    if isinstance(expression, int):
        return expression
    total = 0
    for coefficient, *factors in expression:
        for factor in factors:
            if isinstance(factor, int):
                coefficient *= slots[factor]
            else:
                op, a, b = factor
                coefficient *= _OPERATIONS[op](_value(a, slots), _value(b, slots))
        total += coefficient
    return total
