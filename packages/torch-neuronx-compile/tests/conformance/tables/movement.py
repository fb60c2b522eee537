"""Views as graph nodes, and rearrangements of elements. All exact."""

from __future__ import annotations

import torch
import torch._prims  # defines the operators of `prims`

from ..case import ALL_DTYPES, Case, Tensor

F32, BF16, I64, I32, BOOL = torch.float32, torch.bfloat16, torch.int64, torch.int32, torch.bool
X, EMPTY, SCALAR = Tensor(F32, (3, 4, 5)), Tensor(F32, (0, 4)), Tensor(F32, ())


def _views() -> list[Case]:
    cases: list[Case] = []
    for name in ("view", "_unsafe_view", "reshape", "view_copy"):
        for size in ([12, 5], [-1], [3, -1, 1, 2]):
            cases.append(Case(f"aten::{name}", (X, size)))
        cases.append(Case(f"aten::{name}", (EMPTY, [4, 0, 2])))
        cases.append(Case(f"aten::{name}", (SCALAR, [1, 1])))
    cases.append(Case("aten::_reshape_copy", (X, [4, 15])))
    for name in ("_reshape_alias", "_reshape_alias_copy"):
        cases.append(Case(f"aten::{name}", (X, [12, 5], [5, 1])))
    for name in ("view.dtype", "view_copy.dtype"):
        for source, target in ((F32, I32), (BF16, torch.int16), (I64, torch.float64), (F32, F32)):
            cases.append(Case(f"aten::{name}", (Tensor(source, (3, 5)), target)))
    for suffix in ("", "_copy"):
        cases.append(Case(f"aten::permute{suffix}", (X, [2, 0, -2])))
        cases.append(Case(f"aten::permute{suffix}", (SCALAR, [])))
        cases.append(Case(f"aten::transpose{suffix}.int", (X, 0, -1)))
        cases.append(Case(f"aten::transpose{suffix}.int", (SCALAR, 0, -1)))
        for shape in ((3, 5), (4,), ()):
            cases.append(Case(f"aten::t{suffix}", (Tensor(F32, shape),)))
        cases.append(Case(f"aten::expand{suffix}", (Tensor(F32, (3, 1)), [2, -1, 4])))
        cases.append(Case(f"aten::expand{suffix}", (SCALAR, [2, 3])))
        cases.append(Case(f"aten::expand{suffix}", (Tensor(F32, (1,)), [0])))
        for bounds in ((0, None, None, 1), (1, 1, 3, 1), (2, -3, -1, 1), (1, 0, 100, 2), (0, 2, 1, 1), (-1, 1, 5, 3)):
            cases.append(Case(f"aten::slice{suffix}.Tensor", (X, *bounds)))
        cases.append(Case(f"aten::select{suffix}.int", (X, 1, -1)))
        cases.append(Case(f"aten::select{suffix}.int", (Tensor(F32, (4,)), 0, 2)))
        ones = Tensor(F32, (1, 3, 1))
        cases.append(Case(f"aten::squeeze{suffix}", (ones,)))
        cases.append(Case(f"aten::squeeze{suffix}.dim", (ones, -1)))
        cases.append(Case(f"aten::squeeze{suffix}.dim", (ones, 1)))
        cases.append(Case(f"aten::squeeze{suffix}.dims", (ones, [0, 1])))
        for dim in (0, 1, -1):
            cases.append(Case(f"aten::unsqueeze{suffix}", (X, dim)))
        cases.append(Case(f"aten::unsqueeze{suffix}", (SCALAR, 0)))
        cases.append(Case(f"aten::split_with_sizes{suffix}", (X, [1, 0, 3], 1)))
        cases.append(Case(f"aten::split{suffix}.Tensor", (X, 2, -1)))
        cases.append(Case(f"aten::unbind{suffix}.int", (X, 1)))
        for offset in (0, 2, -1):
            cases.append(Case(f"aten::diagonal{suffix}", (X, offset, 1, 2)))
            cases.append(Case(f"aten::diagonal{suffix}", (X, offset, 2, 0)))
        cases.append(Case(f"aten::diagonal{suffix}", (X, 9, 1, 2)))
        cases.append(Case(f"aten::as_strided{suffix}", (X, [4, 3], [5, 2], 7)))
        cases.append(Case(f"aten::as_strided{suffix}", (X, [2, 2, 2], [1, 0, 3])))
        cases.append(Case(f"aten::as_strided{suffix}", (X, [], [], 3)))
        cases.append(Case(f"aten::unfold{suffix}", (X, 1, 2, 1)))
        cases.append(Case(f"aten::unfold{suffix}", (X, -1, 3, 2)))
    return cases


def _scatters() -> list[Case]:
    cases: list[Case] = []
    cases.append(Case("aten::as_strided_scatter", (X, Tensor(F32, (4, 3)), [4, 3], [5, 1], 7)))
    cases.append(Case("aten::as_strided_scatter", (X, Tensor(F32, ()), [], [], 3)))
    for bounds in ((1, 1, 3, 1), (2, None, None, 2), (0, -1, None, 1), (1, 2, 2, 1)):
        shape = list(torch.ops.aten.slice.Tensor(torch.empty(3, 4, 5), *bounds).shape)
        cases.append(Case("aten::slice_scatter", (X, Tensor(F32, tuple(shape)), *bounds)))
    for dim, index in ((0, 1), (1, -1), (2, 0)):
        shape = tuple(s for d, s in enumerate((3, 4, 5)) if d != dim)
        cases.append(Case("aten::select_scatter", (X, Tensor(F32, shape), dim, index)))
        cases.append(Case("aten::select_backward", (Tensor(F32, shape), [3, 4, 5], dim, index)))
    cases.append(Case("aten::slice_backward", (Tensor(F32, (3, 2, 5)), [3, 4, 5], 1, 1, 3, 1)))
    cases.append(Case("aten::slice_backward", (Tensor(F32, (3, 2, 5)), [3, 4, 5], 1, 0, 4, 2)))
    cases.append(Case("aten::slice_backward", (Tensor(BF16, (3, 0, 5)), [3, 4, 5], 1, 2, 2, 1)))
    for offset in (0, 1, -2):
        count = 4 if offset >= 0 else 2
        cases.append(Case("aten::diagonal_scatter", (X, Tensor(F32, (3, count)), offset, 1, 2)))
    cases.append(Case("aten::diagonal_scatter", (X, Tensor(F32, (4, 3)), 0, 2, 0)))
    return cases


def _rearrangements() -> list[Case]:
    cases: list[Case] = []
    for dtype in ALL_DTYPES:
        a, b = Tensor(dtype, (3, 2)), Tensor(dtype, (3, 5))
        cases.append(Case("aten::cat", ([a, b, a], 1)))
        cases.append(Case("aten::stack", ([b, b], -1)))
        cases.append(Case("aten::constant_pad_nd", (b, [1, 2, 0, 1], 1)))
        cases.append(Case("aten::tril", (b,)))
    cases.append(Case("aten::cat", ([Tensor(F32, (0,)), Tensor(F32, (2, 3))], 0)))
    cases.append(Case("aten::cat", ([Tensor(F32, (0,)), Tensor(F32, (0,))],)))
    cases.append(Case("aten::cat", ([Tensor(BF16, (2, 3)), Tensor(F32, (1, 3)), Tensor(I64, (1, 3))],)))
    cases.append(Case("aten::stack", ([SCALAR, SCALAR], 0)))
    for dims in ([0], [0, 2], [-1], []):
        cases.append(Case("aten::flip", (X, dims)))
    cases.append(Case("aten::flip", (SCALAR, [0])))
    cases.append(Case("aten::roll", (X, [1], [0])))
    cases.append(Case("aten::roll", (X, [-2, 7], [1, 2])))
    cases.append(Case("aten::roll", (X, [4])))
    cases.append(Case("aten::roll", (EMPTY, [1], [0])))
    cases.append(Case("aten::repeat", (X, [2, 1, 3])))
    cases.append(Case("aten::repeat", (X, [2, 1, 1, 2])))
    cases.append(Case("aten::repeat", (SCALAR, [3])))
    cases.append(Case("aten::repeat", (X, [0, 1, 1])))
    cases.append(Case("aten::constant_pad_nd", (X, [-1, 2, 0, -1], 0.5)))
    cases.append(Case("aten::constant_pad_nd", (X, [1, 1], float("-inf"))))
    for name in ("tril", "triu"):
        for diagonal in (0, 1, -2, 9):
            cases.append(Case(f"aten::{name}", (X, diagonal)))
        cases.append(Case(f"aten::{name}", (Tensor(F32, (4, 4), special=True),)))
    cases.append(Case("aten::triu", (Tensor(BOOL, (4, 4)), 1)))
    cases.append(
        Case("prims::broadcast_in_dim", (Tensor(F32, (3,)), [2, 3], [1]), reference=lambda x, s, d: x.expand(s))
    )
    cases.append(
        Case(
            "prims::iota",
            (5,),
            {"start": 2, "step": 3, "dtype": I64, "device": torch.device("cpu"), "requires_grad": False},
        )
    )
    return cases


CASES = [*_views(), *_scatters(), *_rearrangements()]
