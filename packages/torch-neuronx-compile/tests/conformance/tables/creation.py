"""Tensors out of numbers, and copies. Results of `empty` are undefined, so only dtype and shape are compared."""

from __future__ import annotations

import torch
import torch._prims  # defines the operators of `prims`

from ..case import ALL_DTYPES, FLOATS, INTEGERS, SHAPES, Case, Tensor, Tolerance, grid

F32, F64, BF16, F16 = torch.float32, torch.float64, torch.bfloat16, torch.float16
I64, I32, U8, BOOL = torch.int64, torch.int32, torch.uint8, torch.bool

RANGE = Tolerance(
    ulp=2, absolute=1e-6, reason="torch fuses start + i * step, or counts vectors in steps of their length"
)


def _numbers() -> list[Case]:
    cases: list[Case] = []
    for shape in SHAPES:
        cases.append(Case("aten::full", (list(shape), 2.7), {"dtype": F32}))
        for name in ("zeros", "ones"):
            cases.append(Case(f"aten::{name}", (list(shape),), {"dtype": BF16}))
        cases.append(Case("aten::empty.memory_format", (list(shape),), {"dtype": F32}, compare=()))
    for dtype in ALL_DTYPES:
        like = Tensor(dtype, (3, 5))
        cases.append(Case("aten::full", ([3, 5], 1), {"dtype": dtype}))
        cases.append(Case("aten::full_like", (like, 1)))
        cases.append(Case("aten::new_full", (like, [2, 2], 1)))
        cases.append(Case("aten::fill.Scalar", (like, 1)))
        cases.append(Case("aten::fill.Tensor", (like, Tensor(dtype, ()))))
        cases.append(Case("aten::zero", (like,)))
        for name in ("zeros", "ones"):
            cases.append(Case(f"aten::{name}_like", (like,)))
            cases.append(Case(f"aten::new_{name}", (like, [4])))
        cases.append(Case("aten::scalar_tensor", (1,), {"dtype": dtype}))
    cases.append(Case("aten::full", ([2], float("-inf")), {"dtype": BF16}))
    cases.append(Case("aten::fill.Scalar", (Tensor(BF16, (3,)), 0.1)))
    cases.append(Case("aten::empty_like", (Tensor(F32, (3, 5)),), compare=()))
    cases.append(Case("aten::new_empty", (Tensor(F32, (3, 5)), [2]), compare=()))
    cases.append(Case("aten::empty_strided", ([2, 3], [1, 2]), {"dtype": F32}, compare=()))
    cases.append(Case("aten::new_empty_strided", (Tensor(F32, (3, 5)), [2, 3], [3, 1]), compare=()))
    cases.append(Case("aten::empty_permuted", ([2, 3], [1, 0]), {"dtype": F32}, compare=()))
    return cases


def _ranges() -> list[Case]:
    cases: list[Case] = []
    for dtype in (*INTEGERS, *FLOATS):
        cases.append(Case("aten::arange", (7,), {"dtype": dtype}))
        cases.append(Case("aten::arange.start", (2, 9), {"dtype": dtype}))
        cases.append(Case("aten::arange.start_step", (1, 12, 3), {"dtype": dtype}))
    cases.append(Case("aten::arange", (0,)))
    cases.append(Case("aten::arange.start_step", (9, -9, -4)))
    cases.append(Case("aten::arange.start_step", (0.5, 2.0, 0.1), {"dtype": F32}, RANGE))
    cases.append(Case("aten::arange.start_step", (1 << 40, (1 << 40) + 30, 7)))
    for dtype in (F32, BF16, I64):
        for steps in (0, 1, 2, 9):
            cases.append(Case("aten::linspace", (-2, 7, steps), {"dtype": dtype}, EXACT_OR_RANGE[dtype]))
    for dtype in (F32, BF16, I64, BOOL):
        cases.append(Case("aten::eye", (4,), {"dtype": dtype}))
        cases.append(Case("aten::eye.m", (2, 5), {"dtype": dtype}))
    return cases


EXACT_OR_RANGE = {F32: RANGE, BF16: Tolerance(ulp=1, reason="torch rounds the step to bf16"), I64: Tolerance()}


def _copies() -> list[Case]:
    cases: list[Case] = []
    cases += grid("aten::clone", ALL_DTYPES, SHAPES)
    for source in ALL_DTYPES:
        for target in ALL_DTYPES:
            # A negative float has no defined uint8; integers wrap.
            data = {"low": 0, "high": 9} if source.is_floating_point and target is U8 else {}
            x = Tensor(source, (3, 5), scale=4.0, **data)
            cases.append(Case("aten::_to_copy", (x,), {"dtype": target}))
            cases.append(Case("aten::copy", (Tensor(target, (2, 3, 5)), x)))
            cases.append(Case("prims::convert_element_type", (x, target)))
    cases.append(Case("aten::_to_copy", (Tensor(F32, (2, 1, 37), special=True),), {"dtype": BF16}))
    cases.append(Case("aten::_to_copy", (Tensor(F32, (2, 1, 37), special=True),), {"dtype": BOOL}))
    return cases


CASES = [*_numbers(), *_ranges(), *_copies()]
