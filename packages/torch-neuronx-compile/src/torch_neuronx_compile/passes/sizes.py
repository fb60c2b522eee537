"""Decisions about sizes that may be symbolic, taken from the expressions alone: nothing here records a guard.

A "no" means "not known": the caller then keeps the general form, which is right for every size.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch_neuronx_compile.dim import Dim, Size, lower_bound


def same(a: Size, b: Size) -> bool:
    """Whether two sizes are known to be equal."""
    if a is b:
        return True
    if isinstance(a, int):
        if isinstance(b, int):
            return a == b
        b = b.resolved()
        return isinstance(b, int) and a == b
    a = a.resolved()
    if isinstance(b, Dim):
        b = b.resolved()
    if isinstance(a, int) or isinstance(b, int):
        return isinstance(a, int) and isinstance(b, int) and a == b
    return a.terms == b.terms


def same_all(a: Sequence[Size], b: Sequence[Size]) -> bool:
    """Whether two lists of sizes are known to be equal."""
    return a is b or len(a) == len(b) and all(map(same, a, b))


def is_number(size: Size, number: int) -> bool:
    """Whether a size is the constant `number`."""
    return size == number if isinstance(size, int) else False


def resolved(size: Size) -> Size:
    """The size after all unifications; an int if it has become constant."""
    return size if isinstance(size, int) else size.resolved()


def quotient(a: Size, b: Size) -> Size | None:
    """a / b where b is known to divide a, else None."""
    if isinstance(b, int):
        if b == 0:
            return None
        if b == 1:
            return a
        if isinstance(a, int):
            return a // b if a % b == 0 else None
    if isinstance(a, int) and a == 0:
        return 0
    rest = a % b
    return a // b if isinstance(rest, int) and rest == 0 else None


def at_most(a: Size, b: Size) -> bool:
    """Whether a <= b is known."""
    if isinstance(a, int) and isinstance(b, int):
        return a <= b
    low = lower_bound(b - a)
    return low is not None and low >= 0


def row_major(shape: Sequence[Size]) -> tuple[Size, ...]:
    """Strides of a row-major array, in elements."""
    strides: list[Size] = [1] * len(shape)
    for d in range(len(shape) - 2, -1, -1):
        strides[d] = strides[d + 1] * shape[d + 1]
    return tuple(strides)


def span(shape: Sequence[Size], strides: Sequence[Size]) -> Size:
    """Number of elements from the lowest to the highest address of a window without negative strides; 0 when it is empty."""
    total: Size = 1
    for size, stride in zip(shape, strides, strict=True):
        if is_number(size, 0):
            return 0
        total = total + (size - 1) * stride
    return total
