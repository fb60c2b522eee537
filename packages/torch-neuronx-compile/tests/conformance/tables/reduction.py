"""Reductions, scans and softmax."""

from __future__ import annotations

import math

import torch

from ..case import ALL_DTYPES, FLOATS, Case, Tensor, Tolerance

F32, F64, BF16, F16 = torch.float32, torch.float64, torch.bfloat16, torch.float16
I64, I32, U8, BOOL = torch.int64, torch.int32, torch.uint8, torch.bool

ORDER = Tolerance(ulp=4, absolute=2e-5, reason="summation order")
ORDER_HALF = Tolerance(ulp=1, absolute=2e-5, reason="summation order of the f32 accumulation, then one rounding")
SEVERAL = Tolerance(ulp=16, absolute=1e-6, reason="exp, sum and quotient, each rounded, on both sides")
NANSUM = dict.fromkeys(
    (BF16, F16), Tolerance(ulp=1, absolute=0.05, reason="torch's nansum rounds partial sums to the element type")
)
LOG_HALF = Tolerance(
    ulp=1, absolute=0.004, reason="torch rounds the maximum and the logarithm to the element type before it subtracts"
)
LOGSUM = dict.fromkeys(
    (BF16, F16),
    Tolerance(ulp=1, absolute=0.01, reason="torch rounds the maximum and the logarithm before it adds them"),
)
STEPS = {F32: ORDER, F64: ORDER, BF16: ORDER_HALF, F16: ORDER_HALF}

# (shape, dims): last, first, middle, several, all, none, 0-d, empty.
REDUCED = (
    ((3, 5), [1]),
    ((3, 5), [0]),
    ((2, 3, 37), [1]),
    ((2, 3, 37), [0, -1]),
    ((3, 4), []),
    ((), []),
    ((0, 3), [0]),
    ((3, 0), [0]),
)
SINGLE = (((3, 5), 1), ((3, 5), 0), ((2, 3, 37), -2), ((), 0), ((3, 0), 0), ((3, 1), 1))


def _sums() -> list[Case]:
    cases: list[Case] = []
    for dtype in ALL_DTYPES:
        tolerance = STEPS.get(dtype, Tolerance())
        for shape, dims in REDUCED if dtype in (F32, I64) else REDUCED[1:4]:
            x = Tensor(dtype, shape)
            for keepdim in (False, True):
                cases.append(Case("aten::sum.dim_IntList", (x, dims, keepdim), {}, tolerance))
                if dtype.is_floating_point:
                    cases.append(Case("aten::mean.dim", (x, dims, keepdim), {}, tolerance))
                    cases.append(Case("aten::nansum", (x, dims, keepdim), {}, NANSUM.get(dtype, tolerance)))
        cases.append(Case("aten::sum", (Tensor(dtype, (2, 3, 37)),), {}, tolerance))
        if dtype.is_floating_point:
            cases.append(Case("aten::mean", (Tensor(dtype, (2, 3, 37)),), {}, tolerance))
    cases.append(Case("aten::sum.dim_IntList", (Tensor(BF16, (3, 5)), [1]), {"dtype": F32}, ORDER))
    cases.append(Case("aten::sum.dim_IntList", (Tensor(I64, (3, 5)), [1]), {"dtype": F32}, ORDER))
    cases.append(Case("aten::mean.dim", (Tensor(I64, (3, 5)), [1]), {"dtype": F32}, ORDER))
    cases.append(Case("aten::nansum", (Tensor(F32, (3, 5), special=True), [0]), {}, ORDER))
    for dtype in (F32, I64):
        for shape in ((3, 5), (4, 4), (0, 3)):
            cases.append(Case("aten::trace", (Tensor(dtype, shape),), {}, STEPS.get(dtype, Tolerance())))
    cases.append(Case("aten::sum.dim_IntList", (Tensor(F32, (3, 5), special=True), [0]), {}, ORDER))
    for dtype in (F32, BF16, I64):
        positive = Tensor(dtype, (3, 5), low=1, high=3)
        half = Tolerance(ulp=2, reason="order of the products")
        tolerance = half if dtype.is_floating_point else Tolerance()
        cases.append(Case("aten::prod", (positive,), {}, tolerance))
        cases.append(Case("aten::prod.dim_int", (positive, 1, True), {}, tolerance))
        cases.append(Case("aten::prod.dim_int", (Tensor(dtype, (3, 0)), 1), {}))
    return cases


def _extrema() -> list[Case]:
    cases: list[Case] = []
    for dtype in ALL_DTYPES:
        special = dtype.is_floating_point
        for name in ("amax", "amin"):
            for shape, dims in REDUCED[:6]:
                for keepdim in (False, True):
                    cases.append(Case(f"aten::{name}", (Tensor(dtype, shape, special=special), dims, keepdim)))
        for name in ("max", "min"):
            cases.append(Case(f"aten::{name}", (Tensor(dtype, (3, 5), special=special),)))
            for shape, dim in SINGLE:
                if shape != (3, 0):
                    cases.append(Case(f"aten::{name}.dim", (Tensor(dtype, shape, special=special), dim, False)))
                    cases.append(Case(f"aten::{name}.dim", (Tensor(dtype, shape), dim, True)))
        cases.append(Case("aten::aminmax", (Tensor(dtype, (3, 5)),), {"dim": 1, "keepdim": True}))
        if dtype != BOOL:
            for name in ("argmax", "argmin"):
                cases.append(Case(f"aten::{name}", (Tensor(dtype, (2, 3, 37)),)))
                cases.append(Case(f"aten::{name}", (Tensor(dtype, (2, 3, 37)), None, True)))
                for shape, dim in SINGLE:
                    if shape != (3, 0):
                        cases.append(Case(f"aten::{name}", (Tensor(dtype, shape, special=special), dim, False)))
        for name in ("any", "all"):
            for shape, dims in REDUCED:
                x = (
                    Tensor(dtype, shape, low=0, high=3)
                    if not dtype.is_floating_point
                    else Tensor(dtype, shape, special=True)
                )
                if dims or not shape:
                    cases.append(Case(f"aten::{name}.dims", (x, dims or None, True)))
                if len(dims) == 1:
                    cases.append(Case(f"aten::{name}.dim", (x, dims[0], False)))
                if dims != [1]:  # two shapes are listed twice, for their dimensions; here all of them are reduced
                    cases.append(Case(f"aten::{name}", (x,)))
    return cases


def _statistics() -> list[Case]:
    cases: list[Case] = []
    for dtype in FLOATS:
        tolerance = Tolerance(
            ulp=8 if dtype in (F32, F64) else 1, absolute=1e-5, reason="torch uses Welford's one-pass update"
        )
        for shape, dims in REDUCED[:5]:
            for name in ("var", "std", "var_mean", "std_mean"):
                cases.append(
                    Case(f"aten::{name}.correction", (Tensor(dtype, shape), dims or None), {"correction": 1}, tolerance)
                )
                cases.append(
                    Case(
                        f"aten::{name}.correction",
                        (Tensor(dtype, shape), dims or None),
                        {"keepdim": True, "correction": 0},
                        tolerance,
                    )
                )
        for ord in (2.0, 1.0, 0.0, math.inf, -math.inf, 3.0):
            for shape, dims in REDUCED[:5]:
                cases.append(
                    Case("aten::linalg_vector_norm", (Tensor(dtype, shape), ord, dims or None, True), {}, STEPS[dtype])
                )
        for shape, dims in REDUCED[:5]:
            if dims:
                cases.append(Case("aten::logsumexp", (Tensor(dtype, shape), dims), {}, LOGSUM.get(dtype, ORDER)))
    cases.append(Case("aten::var.correction", (Tensor(F32, (3, 1)), [1]), {"correction": 1}))
    cases.append(Case("aten::linalg_vector_norm", (Tensor(BF16, (3, 5)),), {"dtype": F32}, ORDER))
    cases.append(Case("aten::logsumexp", (Tensor(F32, (4,), values=(-math.inf,) * 4), [0])))
    cases.append(Case("aten::norm.ScalarOpt_dim", (Tensor(F32, (3, 5)), None, [1], True), {}, ORDER))
    cases.append(Case("aten::norm.Scalar", (Tensor(F32, (3, 5)), 2), {}, ORDER))
    for dtype in ALL_DTYPES:
        cases.append(Case("aten::count_nonzero.dim_IntList", (Tensor(dtype, (3, 5), low=0, high=2), [0])))
    return cases


def _scans() -> list[Case]:
    cases: list[Case] = []
    for dtype in (F32, F64, BF16, F16, I64, I32, U8, BOOL):
        tolerance = Tolerance(ulp=8 if dtype == F32 else 1, absolute=2e-5, reason="torch accumulates in double")
        tolerance = tolerance if dtype.is_floating_point else Tolerance()
        for shape, dim in SINGLE:
            cases.append(Case("aten::cumsum", (Tensor(dtype, shape), dim), {}, tolerance))
            cases.append(Case("aten::cumprod", (Tensor(dtype, shape), dim), {}, tolerance))
    cases.append(Case("aten::cumsum", (Tensor(BF16, (3, 5)), 1), {"dtype": F32}, ORDER))
    return cases


def _softmax() -> list[Case]:
    cases: list[Case] = []
    for name in ("_softmax", "_log_softmax"):
        for dtype in FLOATS:
            tolerance = SEVERAL if dtype in (F32, F64) else ORDER_HALF
            for shape, dim in SINGLE:
                x = Tensor(dtype, shape, scale=3.0)
                cases.append(
                    Case(
                        f"aten::{name}",
                        (x, dim, False),
                        {},
                        LOG_HALF if name == "_log_softmax" and tolerance is ORDER_HALF else tolerance,
                    )
                )
                output = (
                    Tensor(dtype, shape, low=-3.0, high=-0.1)
                    if name == "_log_softmax"
                    else Tensor(dtype, shape, low=0.0, high=1.0)
                )
                cases.append(
                    Case(
                        f"aten::{name}_backward_data",
                        (x, output, dim, dtype),
                        {},
                        ORDER if dtype in (F32, F64) else ORDER_BACKWARD,
                    )
                )
    for dtype, tolerance in ((F32, SEVERAL), (BF16, ORDER_HALF)):
        for shape, dim in SINGLE:
            cases.append(Case("aten::_safe_softmax", (Tensor(dtype, shape, scale=3.0), dim), {}, tolerance))
    masked = Tensor(F32, (2, 4), values=(0.0, -math.inf, 1.0, -math.inf, -math.inf, -math.inf, -math.inf, -math.inf))
    cases.append(Case("aten::_softmax", (masked, 1, False), {}, SEVERAL))
    cases.append(Case("aten::_safe_softmax", (masked, 1), {}, SEVERAL))
    cases.append(Case("aten::_safe_softmax", (masked, 1), {"dtype": F64}, SEVERAL))
    return cases


ORDER_BACKWARD = Tolerance(ulp=2, absolute=0.05, reason="torch rounds the row sum to the element type")

CASES = [*_sums(), *_extrema(), *_statistics(), *_scans(), *_softmax()]
