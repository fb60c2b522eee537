"""Symbolic sizes: integer expressions over the symbols of one call, and the guards under which decisions about them hold.

A `Dim` is a polynomial with integer coefficients over *atoms*. An atom is a `Symbol` (a size or stride that is given at
launch) or a `Composite` (floor division, modulo, maximum or minimum of two expressions). Polynomials are kept in one
canonical form, so that equal expressions are found equal without any search. Arithmetic that gives a constant gives an
`int`: a frozen graph holds plain ints only.

A comparison is decided by the expressions alone where that is possible. Where it is not, it is decided by the *hints*
(the sizes of the example call) and recorded as a `Guard`; the program is then right only for calls that satisfy it.
After an equality guard the two sides are unified, and later expressions of both are structurally equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

DEFAULT_MINIMUM = 2  # sizes 0 and 1 are constants of a call's class, so a symbolic size is at least 2


class Symbol:
    """An unknown integer of the launch.

    `name` is unique in its environment, `hint` is its value in the example call, `minimum` a lower bound that every call
    keeps, `source` whatever the owner needs to find it at launch (the eager compiler: the slot's number).
    """

    __slots__ = ("env", "name", "number", "hint", "minimum", "source")

    def __init__(self, env: ShapeEnv, name: str, number: int, hint: int, minimum: int, source: object):
        self.env = env
        self.name = name
        self.number = number
        self.hint = hint
        self.minimum = minimum
        self.source = source

    @property
    def order(self) -> tuple:
        return (0, self.number)

    def __repr__(self) -> str:
        return self.name


class Composite:
    """`op(a, b)` where the result is not a polynomial. op: "floordiv", "mod", "max" or "min"."""

    __slots__ = ("op", "a", "b", "hint", "minimum", "order", "_hash")

    def __init__(self, op: str, a: Size, b: Size):
        self.op = op
        self.a = a
        self.b = b
        self.hint = _FOLD[op](hint(a), hint(b))
        self.minimum = _composite_minimum(op, a, b)
        self.order = (1, op, repr(a), repr(b))
        self._hash = hash(self.order)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Composite) and self.order == other.order

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        if self.op in ("max", "min"):
            return f"{self.op}({self.a}, {self.b})"
        return f"(({self.a}) {'//' if self.op == 'floordiv' else '%'} ({self.b}))"


type Atom = Symbol | Composite
Monomial = tuple[Atom, ...]  # sorted by `order`, repeated for powers; () is the constant term
Terms = tuple[tuple[Monomial, int], ...]  # sorted, no zero coefficients

_FOLD = {"floordiv": lambda a, b: a // b, "mod": lambda a, b: a % b, "max": max, "min": min}


def _composite_minimum(op: str, a: Size, b: Size) -> int | None:
    low_a, low_b = lower_bound(a), lower_bound(b)
    if op == "mod":
        return 0 if low_b is not None and low_b > 0 else None
    if op == "floordiv":
        if low_a is None or low_a < 0 or low_b is None or low_b <= 0:
            return None
        return low_a // b if isinstance(b, int) else 0
    if op == "max":
        known = [low for low in (low_a, low_b) if low is not None]
        return max(known) if known else None
    return None if low_a is None or low_b is None else min(low_a, low_b)


@dataclass(frozen=True, slots=True)
class Guard:
    """A condition on two expressions that held for the example call. op: "EQ", "NE", "LT" or "LE"."""

    op: str
    left: Size
    right: Size

    def __repr__(self) -> str:
        return f"{self.left} {_SIGNS[self.op]} {self.right}"


_SIGNS = {"EQ": "==", "NE": "!=", "LT": "<", "LE": "<="}


class ShapeEnv:
    """The symbols of one call and the guards recorded about them. Not safe for use by several threads at once."""

    __slots__ = ("symbols", "guards", "version", "_facts", "_different", "_substitutions")

    def __init__(self):
        self.symbols: list[Symbol] = []
        self.guards: list[Guard] = []
        self.version = 0  # number of substitutions made
        self._facts: dict[tuple[str, Terms], bool] = {}
        self._different: set[tuple[Symbol, Symbol | int]] = set()
        self._substitutions: dict[Symbol, Size] = {}

    def symbol(self, name: str, hint: int, *, minimum: int = DEFAULT_MINIMUM, source: object = None) -> Dim:
        """A new symbol as an expression. Raises ValueError when the hint breaks the bound."""
        if hint < minimum:
            raise ValueError(f"symbol {name}: its hint {hint} is below its minimum {minimum}")
        symbol = Symbol(self, name, len(self.symbols), hint, minimum, source)
        self.symbols.append(symbol)
        return Dim(self, (((symbol,), 1),))

    def resolve(self, size: Size) -> Size:
        """The expression after all unifications so far; an int if it has become constant."""
        return size if isinstance(size, int) else size.resolved()

    def equal(self, a: Size, b: Size) -> bool:
        """Whether a == b; records EQ or NE when the expressions do not tell."""
        left, right = self.resolve(a), self.resolve(b)
        if isinstance(left, int):
            if isinstance(right, int):
                return left == right
            left, right = right, left
        elif isinstance(right, Dim) and left.terms == right.terms:
            return True
        symbol = left.symbol
        if symbol is not None:
            other = right if isinstance(right, int) else right.symbol
            if other is not None:
                return self._equal_symbol(symbol, other, a, b)
        return self._equal_expressions(left, right, a, b)

    def _equal_symbol(self, symbol: Symbol, other: Symbol | int, a: Size, b: Size) -> bool:
        """`equal` for one symbol against another or a number: the usual case, without arithmetic."""
        if isinstance(other, int):
            if other < symbol.minimum:
                return False
            value = other
        else:
            if other.number > symbol.number:
                symbol, other = other, symbol
            value = other.hint
        if (symbol, other) in self._different:
            return False
        same = symbol.hint == value
        self.guards.append(Guard("EQ" if same else "NE", a, b))
        if same:
            self._substitutions[symbol] = other if isinstance(other, int) else Dim(self, (((other,), 1),))
            self.version += 1
        else:
            self._different.add((symbol, other))
        return same

    def _equal_expressions(self, left: Dim, right: Size, a: Size, b: Size) -> bool:
        difference = _subtract(left, right)
        if isinstance(difference, int):
            return difference == 0
        fact = self._facts.get(("EQ", difference.terms))
        if fact is None:
            fact = self._facts.get(("EQ", _scale(difference, -1).terms))
        if fact is not None:
            return fact
        if _positive(difference) or _positive(_scale(difference, -1)):
            return False
        same = difference.hint == 0
        self.guards.append(Guard("EQ" if same else "NE", a, b))
        self._facts["EQ", difference.terms] = same
        if same:
            self._unify(difference)
        return same

    def less(self, a: Size, b: Size, *, or_equal: bool = False) -> bool:
        """Whether a < b (or a <= b); records LT or LE when the expressions do not tell."""
        slack = _subtract(self.resolve(b), self.resolve(a))  # a < b  <=>  slack > 0
        if not or_equal:
            slack = _subtract(slack, 1)
        if isinstance(slack, int):
            return slack >= 0
        fact = self._facts.get(("LE", slack.terms))
        if fact is not None:
            return fact
        opposite = _subtract(_scale(slack, -1), 1)  # slack >= 0 fails exactly where this is >= 0
        if isinstance(opposite, Dim) and (fact := self._facts.get(("LE", opposite.terms))) is not None:
            return not fact
        low = lower_bound(slack)
        if low is not None and low >= 0:
            return True
        if _positive(_scale(slack, -1)):
            return False
        holds = slack.hint >= 0
        if holds:
            self.guards.append(Guard("LE" if or_equal else "LT", a, b))
        else:
            self.guards.append(Guard("LT" if or_equal else "LE", b, a))
        self._facts["LE", slack.terms] = holds
        return holds

    def _unify(self, difference: Dim) -> None:
        """Use `difference == 0` to eliminate the newest symbol that occurs in it once, linearly, with coefficient 1 or -1."""
        best = None
        for monomial, coefficient in difference.terms:
            if len(monomial) == 1 and coefficient in (1, -1) and isinstance(monomial[0], Symbol):
                symbol = monomial[0]
                elsewhere = any(_mentions(m, symbol) for m, _ in difference.terms if m is not monomial)
                if not elsewhere and (best is None or symbol.number > best[0].number):
                    best = (symbol, coefficient)
        if best is None:
            return
        symbol, coefficient = best
        rest = _subtract(difference, Dim(self, (((symbol,), coefficient),)))
        self._substitutions[symbol] = _scale(rest, -coefficient)
        self.version += 1

    def _substitute(self, terms: Terms) -> Size:
        total: Size = 0
        for monomial, coefficient in terms:
            product: Size = coefficient
            for atom in monomial:
                product = _multiply(product, self._value(atom))
            total = _add(total, product)
        return total

    def _value(self, atom: Atom) -> Size:
        if isinstance(atom, Symbol):
            replacement = self._substitutions.get(atom)
            return Dim(self, (((atom,), 1),)) if replacement is None else self.resolve(replacement)
        return _composite(atom.op, self.resolve(atom.a), self.resolve(atom.b))


class Dim:
    """A size that is an expression. Immutable; behaves as an int in arithmetic and comparisons.

    Comparing two expressions can record a guard (see `ShapeEnv`), and so can every conversion to int: `int(d)`, `range(d)`
    or indexing with `d` records that `d` equals its hint. `hash` follows the canonical form after unification; a table
    that outlives later comparisons should be keyed by `terms` instead.
    """

    __slots__ = ("env", "terms", "hint", "symbol", "_version")

    def __init__(self, env: ShapeEnv, terms: Terms):
        self.env = env
        self.terms = terms
        self.symbol: Symbol | None = None  # the symbol that this is, if it is nothing else
        if len(terms) == 1 and terms[0][1] == 1 and len(terms[0][0]) == 1:
            (atom,) = terms[0][0]
            self.hint = atom.hint
            if isinstance(atom, Symbol):
                self.symbol = atom
        else:
            self.hint = sum(coefficient * prod(atom.hint for atom in monomial) for monomial, coefficient in terms)
        self._version = env.version  # every expression is built from resolved ones

    def resolved(self) -> Size:
        """This expression after all unifications so far."""
        env = self.env
        if self._version == env.version:
            return self
        symbol = self.symbol
        if symbol is not None:
            replacement = env._substitutions.get(symbol)
            if replacement is not None:
                return env.resolve(replacement)
            self._version = env.version
            return self
        value = env._substitute(self.terms)
        if isinstance(value, Dim) and value.terms == self.terms:
            self._version = env.version
            return self
        return value

    def __repr__(self) -> str:
        parts = []
        for monomial, coefficient in self.terms:
            factors = [str(atom) for atom in monomial]
            if coefficient != 1 or not factors:
                factors.insert(0, str(coefficient))
            parts.append("*".join(factors))
        return " + ".join(parts)

    def __hash__(self) -> int:
        value = self.resolved()
        return hash(value) if isinstance(value, int) else hash(value.terms)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return self.env.equal(self, other) if isinstance(other, (int, Dim)) else NotImplemented

    def __lt__(self, other: Size) -> bool:
        return self.env.less(self, other)

    def __le__(self, other: Size) -> bool:
        return self.env.less(self, other, or_equal=True)

    def __gt__(self, other: Size) -> bool:
        return self.env.less(other, self)

    def __ge__(self, other: Size) -> bool:
        return self.env.less(other, self, or_equal=True)

    def __bool__(self) -> bool:
        return not self.env.equal(self, 0)

    def __int__(self) -> int:
        self.env.equal(self, self.hint)
        return self.hint

    __index__ = __int__

    def __add__(self, other: Size) -> Size:
        return _add(self.resolved(), _resolve(other))

    __radd__ = __add__

    def __sub__(self, other: Size) -> Size:
        return _subtract(self.resolved(), _resolve(other))

    def __rsub__(self, other: Size) -> Size:
        return _subtract(_resolve(other), self.resolved())

    def __mul__(self, other: Size) -> Size:
        return _multiply(self.resolved(), _resolve(other))

    __rmul__ = __mul__

    def __neg__(self) -> Size:
        return _scale(self.resolved(), -1)

    def __floordiv__(self, other: Size) -> Size:
        return _composite("floordiv", self.resolved(), _resolve(other))

    def __rfloordiv__(self, other: Size) -> Size:
        return _composite("floordiv", _resolve(other), self.resolved())

    def __mod__(self, other: Size) -> Size:
        return _composite("mod", self.resolved(), _resolve(other))

    def __rmod__(self, other: Size) -> Size:
        return _composite("mod", _resolve(other), self.resolved())


type Size = int | Dim


def hint(size: Size) -> int:
    """The value of a size in the example call. Records nothing."""
    return size if isinstance(size, int) else size.hint


def maximum(a: Size, b: Size) -> Size:
    """The larger of two sizes as an expression. (Python's `max` would compare, and record a guard.)"""
    return _composite("max", _resolve(a), _resolve(b))


def minimum(a: Size, b: Size) -> Size:
    """The smaller of two sizes as an expression."""
    return _composite("min", _resolve(a), _resolve(b))


def ceil_div(a: Size, b: Size) -> Size:
    """a / b rounded up; b > 0."""
    return (a + b - 1) // b


def product(sizes: Sequence[Size]) -> Size:
    """The product of sizes; 1 for none."""
    total: Size = 1
    for size in sizes:
        total = total * size
    return total


def lower_bound(size: Size) -> int | None:
    """A number that the expression is never below, or None if no such number is known."""
    if isinstance(size, int):
        return size
    # With every atom written as (its minimum + something >= 0), a polynomial without negative coefficients, apart from
    # the constant one, is smallest where all the somethings are 0.
    shifted: dict[Monomial, int] = {}
    for monomial, coefficient in size.terms:
        partial: dict[Monomial, int] = {(): coefficient}
        for atom in monomial:
            low = atom.minimum
            if low is None:
                return None
            grown: dict[Monomial, int] = {}
            for factors, number in partial.items():
                longer = tuple(sorted((*factors, atom), key=_order))
                grown[longer] = grown.get(longer, 0) + number
                if low:
                    grown[factors] = grown.get(factors, 0) + number * low
            partial = grown
        for factors, number in partial.items():
            shifted[factors] = shifted.get(factors, 0) + number
    constant = shifted.pop((), 0)
    return constant if all(number >= 0 for number in shifted.values()) else None


def _order(atom: Atom) -> tuple:
    return atom.order


def _term_order(term: tuple[Monomial, int]) -> tuple:
    monomial = term[0]
    return (-len(monomial), tuple(atom.order for atom in monomial))


def _resolve(size: Size) -> Size:
    return size if isinstance(size, int) else size.resolved()


def _positive(size: Size) -> bool:
    low = lower_bound(size)
    return low is not None and low > 0


def _mentions(monomial: Monomial, symbol: Symbol) -> bool:
    return any(
        atom is symbol if isinstance(atom, Symbol) else _occurs(atom.a, symbol) or _occurs(atom.b, symbol)
        for atom in monomial
    )


def _occurs(size: Size, symbol: Symbol) -> bool:
    return isinstance(size, Dim) and any(_mentions(monomial, symbol) for monomial, _ in size.terms)


def _from_terms(env: ShapeEnv, terms: dict[Monomial, int]) -> Size:
    kept = [(monomial, coefficient) for monomial, coefficient in terms.items() if coefficient]
    if not kept:
        return 0
    if len(kept) == 1 and not kept[0][0]:
        return kept[0][1]
    kept.sort(key=_term_order)
    return Dim(env, tuple(kept))


def _add(a: Size, b: Size) -> Size:
    if isinstance(a, int):
        if isinstance(b, int):
            return a + b
        a, b = b, a
    if isinstance(b, int):
        if b == 0:
            return a
        terms = dict(a.terms)
        terms[()] = terms.get((), 0) + b
        return _from_terms(a.env, terms)
    terms = dict(a.terms)
    for monomial, coefficient in b.terms:
        terms[monomial] = terms.get(monomial, 0) + coefficient
    return _from_terms(a.env, terms)


def _scale(a: Size, factor: int) -> Size:
    if isinstance(a, int):
        return a * factor
    return _from_terms(a.env, {monomial: coefficient * factor for monomial, coefficient in a.terms})


def _subtract(a: Size, b: Size) -> Size:
    return _add(a, _scale(b, -1))


def _multiply(a: Size, b: Size) -> Size:
    if isinstance(b, int):
        return a * b if isinstance(a, int) else a if b == 1 else _scale(a, b)
    if isinstance(a, int):
        return b if a == 1 else _scale(b, a)
    terms: dict[Monomial, int] = {}
    for left, x in a.terms:
        for right, y in b.terms:
            monomial = tuple(sorted(left + right, key=_order))
            terms[monomial] = terms.get(monomial, 0) + x * y
    return _from_terms(a.env, terms)


def _exact_quotient(a: Dim, b: Size) -> Size | None:
    """a / b where b is one term that divides every term of a, else None."""
    if isinstance(b, int):
        factors, number = (), b
    elif len(b.terms) == 1:
        factors, number = b.terms[0]
    else:
        return 1 if a.terms == b.terms else None
    terms: dict[Monomial, int] = {}
    for monomial, coefficient in a.terms:
        left = list(monomial)
        for factor in factors:
            if factor not in left:
                return None
            left.remove(factor)
        if coefficient % number:
            return None
        terms[tuple(left)] = coefficient // number
    return _from_terms(a.env, terms)


def _composite(op: str, a: Size, b: Size) -> Size:
    """op(a, b) of two resolved sizes, simplified where the expressions allow it."""
    if isinstance(a, int) and isinstance(b, int):
        return _FOLD[op](a, b)
    if op in ("floordiv", "mod"):
        if isinstance(b, int) and b == 0:
            raise ZeroDivisionError(f"({a}) divided by zero")
        if isinstance(a, int):
            if a == 0:
                return 0
        else:
            quotient = _exact_quotient(a, b)
            if quotient is not None:
                return quotient if op == "floordiv" else 0
        low_a = lower_bound(a)
        if low_a is not None and low_a >= 0 and _positive(_subtract(b, a)):  # 0 <= a < b
            return 0 if op == "floordiv" else a
    else:
        difference = _subtract(a, b)
        low, high = lower_bound(difference), lower_bound(_scale(difference, -1))
        if low is not None and low >= 0:
            return a if op == "max" else b
        if high is not None and high >= 0:
            return b if op == "max" else a
        if repr(a) > repr(b):
            a, b = b, a
    env = a.env if isinstance(a, Dim) else b.env
    return Dim(env, (((Composite(op, a, b),), 1),))
