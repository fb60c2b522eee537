"""Symbolic sizes: canonical arithmetic, decisions, guards, unification."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torch_neuronx_compile.dim import Dim, Guard, ShapeEnv, ceil_div, hint, lower_bound, maximum, minimum, product


@pytest.fixture
def env() -> ShapeEnv:
    return ShapeEnv()


def test_constants_fold_to_int(env):
    n = env.symbol("n", 5)
    for value, expected in (
        (n - n, 0),
        (n * 0, 0),
        (n + 2 - n, 2),
        (n * 3 // n, 3),
        (n * 4 % n, 0),
        ((n + 1) // (n + 1), 1),
    ):
        assert type(value) is int and value == expected
    assert env.guards == []


def test_equal_expressions_are_equal_without_a_guard(env):
    n, m = env.symbol("n", 5), env.symbol("m", 7)
    assert (n + m) * (n - m) == n * n - m * m
    assert hash(n * m + 1) == hash(1 + m * n)
    assert (n * m * 6) // (m * 2) == n * 3
    assert env.guards == []


def test_division_by_a_sum_stays_symbolic(env):
    n, m = env.symbol("n", 9), env.symbol("m", 3)
    quotient = (n + 1) // m
    assert isinstance(quotient, Dim) and hint(quotient) == 3
    assert (n + 1) // m == quotient
    assert env.guards == []


def test_bounds_decide_without_a_guard(env):
    n, m = env.symbol("n", 5), env.symbol("m", 7)
    assert n != 1 and n != 0 and not n == -3
    assert n > 1 and n >= 2 and not n < 2 and n * m >= 4
    assert n * m > n and n + m > n
    assert lower_bound(n * m - n) == 2 and lower_bound(n - m) is None
    assert n % 4 >= 0 and n // 2 >= 0
    assert 3 % n >= 0
    assert env.guards == []


def test_undecided_comparisons_follow_the_hints_and_are_recorded(env):
    n, m = env.symbol("n", 5), env.symbol("m", 7)
    assert n < m and not m <= n and n < 6 and not n > 10
    assert [str(g) for g in env.guards] == ["n < m", "n < 6", "n <= 10"]
    assert n != m
    assert str(env.guards[-1]) == "n != m"


def test_a_decision_is_recorded_once(env):
    n, m = env.symbol("n", 5), env.symbol("m", 7)
    for _ in range(3):
        assert n != m and m != n and n < m and not n * 2 == m * 2
    assert len(env.guards) == 3  # n * 2 != m * 2 is a statement of its own


def test_equality_unifies(env):
    n, m, k = env.symbol("n", 5), env.symbol("m", 5), env.symbol("k", 10)
    area = n * m
    assert n == m
    assert env.guards == [Guard("EQ", n, m)]
    assert area == m * m and (n - m) == 0 and hash(n) == hash(m)
    assert k == n + m
    assert env.resolve(k) == 2 * n and k // n == 2
    assert len(env.guards) == 2


def test_unification_with_a_number(env):
    n, m = env.symbol("n", 5), env.symbol("m", 7)
    doubled = 2 * n + m
    assert int(n) == 5
    assert env.resolve(n) == 5 and type(env.resolve(n)) is int
    assert env.resolve(doubled) == m + 10
    assert list(range(n)) == [0, 1, 2, 3, 4]
    assert [str(g) for g in env.guards] == ["n == 5"]


def test_index_protocol_pins(env):
    n = env.symbol("n", 2)
    assert "abc"[n] == "c" and "abc"[:n] == "ab"
    assert env.guards == [Guard("EQ", n, 2)]


def test_unequal_sizes_in_tuples(env):
    n, m = env.symbol("n", 5), env.symbol("m", 7)
    assert (n, 3) == (n, 3)
    assert (n, m) != (m, n)
    assert [g.op for g in env.guards] == ["NE"]


def test_maximum_and_minimum(env):
    n, m = env.symbol("n", 5), env.symbol("m", 7)
    assert maximum(n, 1) is n and minimum(n, 2) == 2
    assert maximum(n, m) == maximum(m, n) and hint(maximum(n, m)) == 7 and hint(minimum(n, m)) == 5
    assert minimum(n, n + 1) == n and maximum(n * m, n) == n * m
    assert env.guards == []


def test_products_and_rounding_up(env):
    n = env.symbol("n", 5)
    assert product([n, 2, n]) == 2 * n * n and product([]) == 1
    assert ceil_div(n * 4, 4) == n and hint(ceil_div(n, 2)) == 3


def test_symbols_with_another_minimum(env):
    stride = env.symbol("t", 3, minimum=0)
    assert stride >= 0 and env.guards == []
    assert stride != 0 and [str(g) for g in env.guards] == ["t != 0"]
    assert bool(stride)


def test_wrong_hints_and_zero_divisors_are_errors(env):
    with pytest.raises(ValueError, match="symbol n: its hint 1 is below its minimum 2"):
        env.symbol("n", 1)
    with pytest.raises(ZeroDivisionError):
        env.symbol("m", 4) // 0


# Random expressions: every expression has the hint that the same arithmetic on the hints gives, and so has every
# resolved form after unifications.

LEAVES = st.sampled_from(["a", "b", "c"]) | st.integers(1, 6)
EXPRESSIONS = st.recursive(
    LEAVES,
    lambda inner: st.tuples(st.sampled_from(["+", "-", "*", "//", "%", "max", "min"]), inner, inner),
    max_leaves=8,
)
HINTS = {"a": 4, "b": 4, "c": 9}


def evaluate(expression, leaves):
    """The value of a random expression; None where it divides by something that is not positive."""
    if not isinstance(expression, tuple):
        return leaves.get(expression, expression)
    op, left, right = expression
    x, y = evaluate(left, leaves), evaluate(right, leaves)
    if x is None or y is None or (op in ("//", "%") and hint(y) <= 0):
        return None
    if op in ("//", "%") and hint(x) < 0:
        return None
    return {
        "+": lambda: x + y, "-": lambda: x - y, "*": lambda: x * y, "//": lambda: x // y, "%": lambda: x % y,
        "max": lambda: maximum(x, y), "min": lambda: minimum(x, y),
    }[op]()  # fmt: skip


@given(EXPRESSIONS, EXPRESSIONS)
def test_expressions_agree_with_integers(first, second):
    env = ShapeEnv()
    symbols = {name: env.symbol(name, value) for name, value in HINTS.items()}
    values = [evaluate(e, symbols) for e in (first, second)]
    expected = [evaluate(e, HINTS) for e in (first, second)]
    if None in expected:
        return
    assert [hint(v) for v in values] == expected
    assert symbols["a"] == symbols["b"]
    x, y = values
    assert (x == y) == (expected[0] == expected[1])
    assert (x < y) == (expected[0] < expected[1])
    assert [hint(env.resolve(v)) for v in values] == expected
    for guard in env.guards:
        a, b = hint(guard.left), hint(guard.right)
        assert {"EQ": a == b, "NE": a != b, "LT": a < b, "LE": a <= b}[guard.op]


@given(EXPRESSIONS, st.integers(2, 50), st.integers(2, 50), st.integers(2, 50))
def test_decisions_hold_for_every_size(expression, a, b, c):
    """What is decided without a guard holds whatever the symbols are."""
    env = ShapeEnv()
    symbols = {name: env.symbol(name, value) for name, value in HINTS.items()}
    value = evaluate(expression, symbols)
    number = evaluate(expression, {"a": a, "b": b, "c": c})
    if value is None or number is None:
        return
    low = lower_bound(value)
    assert low is None or number >= low
    for bound in (0, 1, 4):
        answer = value >= bound
        if not env.guards:
            assert answer == (number >= bound)
        env.guards.clear()
