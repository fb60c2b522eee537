"""View operations on strided windows, and the composition of one view with another."""

from __future__ import annotations

from collections.abc import Sequence

from torch_neuronx_compile.dim import Size, hint
from torch_neuronx_compile.passes.sizes import at_most, is_number, quotient, row_major, same

Strides = tuple[Size, ...]


def reshape(shape: Sequence[Size], strides: Strides, target: Sequence[Size]) -> Strides | None:
    """Strides under which a window shows the same elements, in row-major order, with sizes `target`; None when no strides do.

    Both sizes have one product.
    """
    if any(is_number(size, 0) for size in target):
        return row_major(target)
    old = [(size, stride) for size, stride in zip(shape, strides, strict=True) if not is_number(size, 1)]
    if _contiguous(old):
        step = old[-1][1] if old else 1
        return tuple(stride * step for stride in row_major(target))
    result: list[Size] = []
    taken = 0  # old dimensions used up
    position = 0
    while position < len(target):
        if is_number(target[position], 1):
            result.append(0)
            position += 1
            continue
        if taken == len(old):
            return None
        # The shortest runs of old and of new dimensions that hold equally many elements.
        old_end, new_end = taken + 1, position + 1
        held, wanted = old[taken][0], target[position]
        while not same(held, wanted):
            grow_new = new_end < len(target) and (old_end == len(old) or hint(wanted) < hint(held))
            if grow_new:
                wanted = wanted * target[new_end]
                new_end += 1
            elif old_end < len(old):
                held = held * old[old_end][0]
                old_end += 1
            else:
                return None
        run = old[taken:old_end]
        if not _contiguous(run):
            return None
        result.extend(stride * run[-1][1] for stride in row_major(target[position:new_end]))
        taken, position = old_end, new_end
    return tuple(result) if taken == len(old) else None


def _contiguous(run: Sequence[tuple[Size, Size]]) -> bool:
    """Whether (size, stride) pairs are one dimension cut into several."""
    for (_, outer), (size, inner) in zip(run, run[1:], strict=False):
        if not same(outer, size * inner):
            return False
    return True


def collapse(shape: Sequence[Size], windows: Sequence[Strides]) -> tuple[list[Size], list[list[Size]]]:
    """Fewest dimensions that visit the same elements in the same order, for all windows at once. Sizes of 1 disappear."""
    sizes: list[Size] = []
    kept: list[list[Size]] = [[] for _ in windows]
    for d, size in enumerate(shape):
        if is_number(size, 1):
            continue
        if sizes and all(same(mine[-1], size * window[d]) for mine, window in zip(kept, windows, strict=True)):
            sizes[-1] = sizes[-1] * size
            for mine, window in zip(kept, windows, strict=True):
                mine[-1] = window[d]
        else:
            sizes.append(size)
            for mine, window in zip(kept, windows, strict=True):
                mine.append(window[d])
    return sizes, kept


def compose(shape: Sequence[Size], inner_offset: Size, inner: Strides, extents: Sequence[Size], offset: Size,
            outer: Strides) -> tuple[Size, Strides] | None:  # fmt: skip
    """Window of the composition of two views, or None when it is not one window.

    The outer view reads, at index e of a space of sizes `extents`, element number k = offset + sum(e * outer) of an
    array of sizes `shape` in row-major order; the inner one says that this element lies at inner_offset + sum(i * inner),
    where i are the digits of k.
    """
    sizes, (steps,) = collapse(shape, (inner,))
    if not sizes:
        return inner_offset, (0,) * len(outer)
    places = row_major(sizes)  # element numbers per step of each digit
    first: list[Size] = []  # digits of the offset
    rest = offset
    for place in places:
        if isinstance(rest, int) and isinstance(place, int):
            first.append(rest // place)
            rest = rest - first[-1] * place
        elif is_number(rest, 0):
            first.append(0)
        else:
            whole = quotient(rest, place)
            if whole is None:
                return None
            first.append(whole)
            rest = 0
    last = list(first)  # the largest value that each digit takes
    low = list(first)
    result: list[Size] = []
    for size, stride in zip(extents, outer, strict=True):
        if is_number(stride, 0) or is_number(size, 1):
            result.append(0)
            continue
        for digit, place in enumerate(places):  # noqa: B007 (read after the loop)
            step = quotient(stride, place)
            if step is not None and not is_number(step, 0):
                break
        else:
            return None
        result.append(step * steps[digit])
        if at_most(0, step):
            last[digit] = last[digit] + (size - 1) * step
        else:
            low[digit] = low[digit] + (size - 1) * step
    if len(sizes) > 1 and not all(
        at_most(0, a) and at_most(b, n - 1) for a, b, n in zip(low, last, sizes, strict=True)
    ):
        return None
    where = inner_offset
    for digit, step in zip(first, steps, strict=True):
        where = where + digit * step
    return where, tuple(result)
