"""Guards as text hold exactly where the symbolic comparison holds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torch_neuronx_compile.cache import guards
from torch_neuronx_compile.dim import ShapeEnv, maximum, minimum

SIZES = st.integers(2, 50)


@pytest.mark.parametrize("compare", [
    lambda a, b: a == b, lambda a, b: a < b, lambda a, b: a * 3 + 1 <= b * b, lambda a, b: a // 2 == b % 3,
    lambda a, b: maximum(a, b) == a, lambda a, b: minimum(a, 7) < b, lambda a, b: a - b == 4, lambda a, b: (a * b) % 5 == 0,
])  # fmt: skip
@given(hints=st.tuples(SIZES, SIZES), other=st.tuples(SIZES, SIZES))
def test_a_text_decides_as_the_guard_does(compare, hints: tuple[int, int], other: tuple[int, int]):
    env = ShapeEnv()
    a, b = (env.symbol(name, size, source=slot) for slot, (name, size) in enumerate(zip("ab", hints, strict=True)))
    answer = bool(compare(a, b))
    text = guards.encode(env.guards)
    assert guards.holds(text, hints)
    plain = _plain(compare, other)
    assert guards.holds(text, other) == (plain == answer)


def _plain(compare, sizes: tuple[int, int]) -> bool:
    env = ShapeEnv()
    a, b = (env.symbol(name, size, source=slot) for slot, (name, size) in enumerate(zip("ab", sizes, strict=True)))
    return bool(compare(a, b))
