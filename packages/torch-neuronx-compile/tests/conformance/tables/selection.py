"""Comparisons, selection, bounds and fused arithmetic of three operands."""

from __future__ import annotations

import torch
import torch._inductor.inductor_prims  # defines prims::fma, which Dynamo writes
import torch._prims  # defines the other operators of `prims`

from ..case import ALL_DTYPES, FLOATS, SHAPES, Case, Number, Tensor, Tolerance, grid

F32, F64, BF16, F16 = torch.float32, torch.float64, torch.bfloat16, torch.float16
I64, I32, U8, BOOL = torch.int64, torch.int32, torch.uint8, torch.bool

PAIRS = (((3, 5), (5,)), ((3, 1), (1, 5)), ((), (4,)), ((0, 3), (1, 3)), ((2, 3, 4), (2, 3, 4)))
TRIPLES = (((3, 5), (5,), (3, 1)), ((), (4,), (4,)), ((0, 3), (0, 3), (0, 3)), ((2, 3, 4), (2, 3, 4), (2, 3, 4)))

FUSED = Tolerance(
    ulp=2, absolute=1e-6, reason="torch fuses multiplication and addition in vector loops, which saves a rounding"
)
FUSED_HALF = Tolerance(
    ulp=1, absolute=0.02, reason="torch rounds intermediate results to the element type in scalar loops"
)


def _comparisons() -> list[Case]:
    cases: list[Case] = []
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        cases += grid(f"aten::{name}.Tensor", ALL_DTYPES, PAIRS)
        cases += grid(f"aten::{name}.Scalar", (F32, BF16, F16, I64, I32, U8), SHAPES, 1)
        cases += grid(f"aten::{name}.Scalar", (F32, BF16, I64), SHAPES, 0.3)
        cases.append(Case(f"aten::{name}.Tensor", (Tensor(I64, (3, 5)), Tensor(F32, (5,)))))
        cases.append(Case(f"aten::{name}.Tensor", (Tensor(F32, (3, 5)), Number(0.25))))
    cases += grid("aten::isin.Tensor_Scalar", (I64, F32), SHAPES, 3)
    for invert in (False, True):
        tests = Tensor(I64, (4,))
        cases.append(Case("aten::isin.Tensor_Tensor", (Tensor(I64, (3, 5)), tests), {"invert": invert}))
    for invert in (False, True):
        cases.append(Case("aten::isin.Scalar_Tensor", (3, Tensor(I64, (2, 3), low=0, high=5)), {"invert": invert}))
    cases.append(Case("aten::isin.Tensor_Tensor", (Tensor(I64, ()), Tensor(I64, (2, 3)))))
    return cases


def _selections() -> list[Case]:
    cases: list[Case] = []
    for dtype in ALL_DTYPES:
        for shapes in TRIPLES:
            condition, x, y = shapes
            special = dtype.is_floating_point
            arguments = (Tensor(BOOL, condition), Tensor(dtype, x, special=special), Tensor(dtype, y, special=special))
            cases.append(Case("aten::where.self", arguments))
    for x, y in ((F32, BF16), (I64, F32), (I32, I64), (BF16, F16)):
        cases.append(Case("aten::where.self", (Tensor(BOOL, (3, 5)), Tensor(x, (3, 5)), Tensor(y, ()))))
        cases.append(Case("aten::where.self", (Tensor(BOOL, (3, 5)), Tensor(x, (3, 5)), Tensor(y, (5,)))))
    cases.append(Case("aten::where.self", (Tensor(BOOL, (3, 5)), Tensor(F32, (3, 5)), Number(float("-inf")))))
    cases.append(Case("aten::where.ScalarOther", (Tensor(BOOL, (3, 5)), Tensor(BF16, (3, 5)), 0.3)))
    cases.append(Case("aten::where.ScalarSelf", (Tensor(BOOL, (3, 5)), 2, Tensor(I64, (5,)))))
    cases.append(Case("aten::where.Scalar", (Tensor(BOOL, (3, 5)), 1.5, 2.5)))
    for dtype in ALL_DTYPES:
        cases.append(Case("aten::masked_fill.Scalar", (Tensor(dtype, (3, 5)), Tensor(BOOL, (5,)), 1)))
        cases.append(Case("aten::masked_fill.Tensor", (Tensor(dtype, (3, 1)), Tensor(BOOL, (3, 5)), Tensor(dtype, ()))))
    cases.append(Case("aten::masked_fill.Scalar", (Tensor(F32, (3, 5)), Tensor(BOOL, (3, 5)), float("-inf"))))
    for low, high in ((-0.5, 0.5), (None, 0.25), (0, None), (1.0, -1.0)):
        cases += grid("aten::clamp", FLOATS, SHAPES, low, high)
    cases += grid("aten::clamp", (I64, U8), SHAPES, 1, 4)
    cases.append(Case("aten::clamp", (Tensor(I64, (3, 5)), -0.5, 2.5)))
    cases += grid("aten::clamp.Tensor", (F32, BF16, I64), TRIPLES)
    for name in ("clamp_min", "clamp_max"):
        cases += grid(f"aten::{name}", (*FLOATS, I64), SHAPES, 1)
        cases += grid(f"aten::{name}.Tensor", (F32, I64), PAIRS)
    return cases


def _fused() -> list[Case]:
    cases: list[Case] = []
    for weight in (0.3, 0.9, 0.0, 1.0):
        cases += grid("aten::lerp.Scalar", (F32,), PAIRS, weight, data={"special": False}, tolerance=FUSED)
        cases += grid("aten::lerp.Scalar", (BF16, F16), PAIRS, weight, data={"special": False}, tolerance=FUSED_HALF)
    cases += grid("aten::lerp.Tensor", (F32,), TRIPLES, data={"special": False}, tolerance=FUSED)
    cases += grid("aten::lerp.Tensor", (BF16,), TRIPLES, data={"special": False}, tolerance=FUSED_HALF)
    for name in ("addcmul", "addcdiv"):
        for value in (1, 0.37):
            cases += grid(
                f"aten::{name}", (F32,), TRIPLES, value=value, data={"low": 0.5, "high": 2.0}, tolerance=FUSED
            )
            cases += grid(
                f"aten::{name}", (BF16, F16), TRIPLES, value=value, data={"low": 0.5, "high": 2.0}, tolerance=FUSED_HALF
            )
    cases += grid("prims::fma", (F32,), TRIPLES[2:], data={"special": False}, tolerance=FUSED)
    cases += grid("aten::addcmul", (I64,), TRIPLES, value=2)
    return cases


CASES = [*_comparisons(), *_selections(), *_fused()]
