"""Matrix products."""

from __future__ import annotations

import torch

from ..case import Case, Tensor, Tolerance

F32, F64, BF16, F16, I64 = torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64

ORDER = Tolerance(ulp=4, absolute=1e-5, reason="summation order")
ROUNDED = Tolerance(ulp=1, absolute=1e-5, reason="summation order, then one rounding")
KINDS = {F32: ORDER, F64: ORDER, BF16: ROUNDED, F16: ROUNDED, I64: Tolerance()}
OUTER = dict.fromkeys(
    (BF16, F16), Tolerance(ulp=1, absolute=0.02, reason="torch rounds the product before the addition")
)
SIZES = ((3, 5, 4), (1, 1, 1), (7, 33, 2), (0, 3, 2), (2, 0, 3), (2, 3, 0))


def _cases() -> list[Case]:
    cases: list[Case] = []
    for dtype, tolerance in KINDS.items():
        for m, k, n in SIZES if dtype == F32 else SIZES[:3]:
            a, b = Tensor(dtype, (m, k)), Tensor(dtype, (k, n))
            cases.append(Case("aten::mm", (a, b), {}, tolerance))
            cases.append(Case("aten::bmm", (Tensor(dtype, (2, m, k)), Tensor(dtype, (2, k, n))), {}, tolerance))
            cases.append(Case("aten::mv", (a, Tensor(dtype, (k,))), {}, tolerance))
            for bias in dict.fromkeys(((n,), (m, n), (m, 1), ())):
                cases.append(Case("aten::addmm", (Tensor(dtype, bias), a, b), {}, tolerance))
            cases.append(Case("aten::addmv", (Tensor(dtype, (m,)), a, Tensor(dtype, (k,))), {}, tolerance))
            batch = (Tensor(dtype, (2, m, k)), Tensor(dtype, (2, k, n)))
            cases.append(Case("aten::baddbmm", (Tensor(dtype, (2, m, n)), *batch), {}, tolerance))
            cases.append(
                Case(
                    "aten::addr",
                    (Tensor(dtype, (m, n)), Tensor(dtype, (m,)), Tensor(dtype, (n,))),
                    {},
                    OUTER.get(dtype, tolerance),
                )
            )
        for k in (5, 1, 33, 0):
            cases.append(Case("aten::dot", (Tensor(dtype, (k,)), Tensor(dtype, (k,))), {}, tolerance))
        cases.append(Case("aten::vdot", (Tensor(dtype, (9,)), Tensor(dtype, (9,))), {}, tolerance))
    a, b = Tensor(F32, (3, 5)), Tensor(F32, (5, 4))
    for beta, alpha in ((0, 1), (2, 3), (0.5, 0.25), (1, 0)):
        cases.append(Case("aten::addmm", (Tensor(F32, (3, 4)), a, b), {"beta": beta, "alpha": alpha}, ORDER))
        three = (Tensor(F32, (2, 3, 4)), Tensor(F32, (2, 3, 5)), Tensor(F32, (2, 5, 4)))
        cases.append(Case("aten::baddbmm", three, {"beta": beta, "alpha": alpha}, ORDER))
        cases.append(Case("aten::addbmm", (Tensor(F32, (3, 4)), *three[1:]), {"beta": beta, "alpha": alpha}, ORDER))
        cases.append(
            Case(
                "aten::addr",
                (Tensor(F32, (3, 4)), Tensor(F32, (3,)), Tensor(F32, (4,))),
                {"beta": beta, "alpha": alpha},
                ORDER,
            )
        )
    cases.append(Case("aten::addmm", (Tensor(F32, (3, 4), special=True), a, b), {"beta": 0}, ORDER))
    cases.append(
        Case(
            "aten::addmm",
            (Tensor(BF16, (4,)), Tensor(BF16, (3, 5)), Tensor(BF16, (5, 4))),
            {"beta": 2, "alpha": 0.5},
            ROUNDED,
        )
    )
    return cases


CASES = _cases()
