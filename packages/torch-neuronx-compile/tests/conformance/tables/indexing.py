"""Reading and writing at indices."""

from __future__ import annotations

import torch

from ..case import ALL_DTYPES, Case, Tensor, Tolerance

F32, BF16, F16, I64, I32, U8, BOOL = (
    torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.int32, torch.uint8, torch.bool,
)  # fmt: skip
X = Tensor(F32, (3, 4, 5))
ROUNDED = Tolerance(
    ulp=4, absolute=0.05, reason="torch rounds to the element type after each addition, the device once"
)
ORDER = Tolerance(ulp=2, absolute=1e-6, reason="order of additions")


def index(shape: tuple[int, ...], high: int, low: int = 0, dtype: torch.dtype = I64) -> Tensor:
    return Tensor(dtype, shape, low=low, high=high)


def _reads() -> list[Case]:
    cases: list[Case] = []
    for dtype in ALL_DTYPES:
        cases.append(Case("aten::index_select", (Tensor(dtype, (3, 5)), 1, index((7,), 5))))
        cases.append(Case("aten::gather", (Tensor(dtype, (3, 5)), 1, index((3, 7), 5))))
        cases.append(Case("aten::index.Tensor", (Tensor(dtype, (3, 5)), [index((4,), 3, -3), index((4,), 5, -5)])))
    for dim in (0, -1):
        cases.append(Case("aten::index_select", (X, dim, index((2,), 3, dtype=I32))))
    cases.append(Case("aten::index_select", (Tensor(F32, ()), 0, index((1,), 1))))
    cases.append(Case("aten::index_select", (X, 1, index((0,), 1))))
    cases.append(Case("aten::gather", (X, 0, index((2, 4, 3), 3))))
    cases.append(Case("aten::gather", (X, 2, index((3, 4, 0), 1))))
    cases.append(Case("aten::gather", (Tensor(F32, ()), 0, index((), 1))))
    for indices in (
        [index((2, 3), 3, -3)],
        [None, index((6,), 4)],
        [index((2, 1), 3), index((3,), 4)],
        [index((2,), 3), None, index((2,), 5)],
        [None, index((2, 3), 4), index((3,), 5, -5)],
        [index((2,), 3, dtype=I32)],
        [index((), 3)],
        [index((0,), 1)],
    ):
        cases.append(Case("aten::index.Tensor", (X, indices)))
    cases.append(Case("aten::_unsafe_index.Tensor", (X, [None, index((2, 3), 4), index((3,), 5)])))
    cases.append(Case("aten::take", (X, index((2, 3), 60, -60))))
    cases.append(Case("aten::embedding", (Tensor(F32, (7, 3)), index((2, 5), 7))))
    cases.append(Case("aten::embedding", (Tensor(BF16, (7, 3)), index((), 7, dtype=I32), 2)))
    cases.append(Case("aten::embedding", (Tensor(F32, (7, 3)), index((0,), 7))))
    return cases


def _writes() -> list[Case]:
    cases: list[Case] = []
    distinct = Tensor(I64, (3, 2), values=(0, 3, 4, 1, 2, 0))
    for dtype in (F32, BF16, I64, BOOL):
        cases.append(Case("aten::scatter.src", (Tensor(dtype, (3, 5)), 1, distinct, Tensor(dtype, (3, 2)))))
        cases.append(Case("aten::scatter.value", (Tensor(dtype, (3, 5)), 1, distinct, 1)))
    cases.append(Case("aten::scatter.src", (Tensor(F32, (6, 5)), 1, distinct, Tensor(F32, (4, 3)))))
    cases.append(Case("aten::scatter.src", (Tensor(F32, (5, 2)), 0, distinct, Tensor(F32, (3, 2)))))
    cases.append(Case("aten::scatter.src", (Tensor(F32, ()), 0, Tensor(I64, (), values=(0,)), Tensor(F32, ()))))
    cases.append(Case("aten::scatter.src", (Tensor(F32, (3, 5)), 1, index((3, 0), 1), Tensor(F32, (3, 2)))))
    many = index((3, 9), 5)
    for dtype, tolerance in ((F32, ORDER), (BF16, ROUNDED), (I64, Tolerance())):
        x, source = Tensor(dtype, (3, 5)), Tensor(dtype, (3, 9))
        cases.append(Case("aten::scatter_add", (x, 1, many, source), {}, tolerance))
        cases.append(
            Case(
                "aten::scatter_add", (Tensor(dtype, (7, 4)), 0, index((5, 3), 7), Tensor(dtype, (6, 3))), {}, tolerance
            )
        )
        for reduce in ("add", "multiply"):
            cases.append(Case("aten::scatter.reduce", (x, 1, many, Tensor(dtype, (3, 9), low=1, high=3)), {"reduce": reduce},
                              ROUNDED_PRODUCT if dtype == BF16 else tolerance))  # fmt: skip
        cases.append(Case("aten::scatter.value_reduce", (x, 1, many, 2), {"reduce": "add"}, tolerance))
        for reduce in ("sum", "prod", "amax", "amin"):
            cases.append(Case("aten::scatter_reduce.two", (x, 1, many, Tensor(dtype, (3, 9), low=1, high=3), reduce), {},
                              ROUNDED_PRODUCT if dtype == BF16 else tolerance))  # fmt: skip
        cases.append(Case("aten::index_add", (X3[dtype], 1, index((6,), 4), Tensor(dtype, (3, 6, 5))), {}, tolerance))
        cases.append(
            Case("aten::index_add", (X3[dtype], 0, index((2,), 3), Tensor(dtype, (2, 4, 5))), {"alpha": 2}, tolerance)
        )
    order = Tensor(I64, (2,), values=(2, 0))
    for dtype in (F32, BF16, I64, BOOL):
        cases.append(Case("aten::index_copy", (X3[dtype], 0, order, Tensor(dtype, (2, 4, 5)))))
        cases.append(Case("aten::index_fill.int_Scalar", (X3[dtype], 1, Tensor(I64, (2,), values=(-1, 0)), 1)))
        cases.append(Case("aten::index_fill.int_Tensor", (X3[dtype], 1, order, Tensor(dtype, ()))))
    cases.append(Case("aten::index_copy", (Tensor(F32, ()), 0, Tensor(I64, (1,), values=(0,)), Tensor(F32, (1,)))))
    return cases


ROUNDED_PRODUCT = Tolerance(
    ulp=8, absolute=0.05, reason="torch rounds to the element type after each step, the device once"
)
X3 = {dtype: Tensor(dtype, (3, 4, 5)) for dtype in (F32, BF16, I64, BOOL)}


def _puts() -> list[Case]:
    cases: list[Case] = []
    pair = [Tensor(I64, (3,), values=(0, 2, -2)), Tensor(I64, (3,), values=(1, 3, 0))]
    for name in ("index_put", "_unsafe_index_put", "_index_put_impl"):
        for dtype in (F32, BF16, I64, BOOL) if name == "index_put" else (F32,):
            cases.append(Case(f"aten::{name}", (X3[dtype], pair, Tensor(dtype, (3, 5)))))
            cases.append(Case(f"aten::{name}", (X3[dtype], pair, Tensor(dtype, ()))))
            cases.append(
                Case(f"aten::{name}", (X3[dtype], [None, Tensor(I64, (2,), values=(3, 1))], Tensor(dtype, (5,))))
            )
    separated = [Tensor(I64, (2,), values=(2, 0)), None, Tensor(I64, (2,), values=(4, 4))]
    cases.append(Case("aten::index_put", (X, separated, Tensor(F32, (2, 4)))))
    cases.append(Case("aten::index_put", (X, [index((0,), 1)], Tensor(F32, (0, 4, 5)))))
    for dtype, tolerance in ((F32, ORDER), (BF16, ROUNDED), (I64, Tolerance())):
        cases.append(
            Case(
                "aten::index_put",
                (X3[dtype], [index((9,), 3), index((9,), 4)], Tensor(dtype, (9, 5)), True),
                {},
                tolerance,
            )
        )
    mask = Tensor(BOOL, (3, 4, 5))
    cases.append(Case("aten::index_put", (X, [mask], Tensor(F32, ()))))
    cases.append(Case("aten::index_put", (X, [Tensor(BOOL, (3,))], Tensor(F32, ()))))
    cases.append(Case("aten::index_put", (X, [mask], Tensor(F32, ()), True)))
    return cases


def _embedding_backward() -> list[Case]:
    cases: list[Case] = []
    for dtype, tolerance in ((F32, ORDER), (BF16, ROUNDED), (F16, ROUNDED)):
        for padding, by_frequency in ((-1, False), (2, False), (-1, True), (0, True)):
            grad = Tensor(dtype, (2, 9, 3))
            cases.append(
                Case(
                    "aten::embedding_dense_backward", (grad, index((2, 9), 5), 7, padding, by_frequency), {}, tolerance
                )
            )
    cases.append(Case("aten::embedding_dense_backward", (Tensor(F32, (0, 3)), index((0,), 5), 7, -1, False)))
    cases.append(
        Case(
            "aten::embedding_dense_backward", (Tensor(F32, (4, 3)), index((4,), 5, dtype=I32), 7, -1, False), {}, ORDER
        )
    )
    return cases


CASES = [*_reads(), *_writes(), *_puts(), *_embedding_backward()]
