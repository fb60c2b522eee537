"""Loss functions and their backward forms."""

from __future__ import annotations

import torch

from ..case import Case, Tensor, Tolerance

F32, F64, BF16, I64 = torch.float32, torch.float64, torch.bfloat16, torch.int64

STEPS = Tolerance(ulp=12, absolute=1e-6, reason="sums in another order, then several rounded steps")
HALF = Tolerance(ulp=3, absolute=0.02, reason="torch rounds each step to bf16, the device once")
KINDS = {F32: STEPS, F64: STEPS, BF16: HALF}


def _regression() -> list[Case]:
    cases: list[Case] = []
    for dtype, tolerance in KINDS.items():
        for reduction in (0, 1, 2):
            x, t = Tensor(dtype, (3, 7)), Tensor(dtype, (3, 7))
            grad = Tensor(dtype, (3, 7) if reduction == 0 else ())
            cases.append(Case("aten::mse_loss", (x, t, reduction), {}, tolerance))
            cases.append(Case("aten::mse_loss_backward", (grad, x, t, reduction), {}, tolerance))
            for beta in (1.0, 0.5):
                cases.append(Case("aten::smooth_l1_loss", (x, t, reduction, beta), {}, tolerance))
                cases.append(Case("aten::smooth_l1_loss_backward", (grad, x, t, reduction, beta), {}, tolerance))
                cases.append(Case("aten::huber_loss", (x, t, reduction, beta), {}, tolerance))
                cases.append(Case("aten::huber_loss_backward", (grad, x, t, reduction, beta), {}, tolerance))
            p, weight = Tensor(dtype, (3, 7), low=0.02, high=0.98), Tensor(dtype, (3, 7), low=0.5, high=2.0)
            chance = Tensor(dtype, (3, 7), low=0.0, high=1.0)
            for w in (None, weight):
                cases.append(Case("aten::binary_cross_entropy", (p, chance, w, reduction), {}, tolerance))
                cases.append(
                    Case("aten::binary_cross_entropy_backward", (grad, p, chance, w, reduction), {}, tolerance)
                )
                for positive in (None, Tensor(dtype, (7,), low=0.5, high=2.0)):
                    arguments = (x, chance, w, positive, reduction)
                    cases.append(Case("aten::binary_cross_entropy_with_logits", arguments, {}, tolerance))
    edge = Tensor(F32, (2,), values=(0.0, 1.0))
    cases.append(Case("aten::binary_cross_entropy", (edge, Tensor(F32, (2,), values=(1.0, 0.0)), None, 0)))
    return cases


def _likelihood() -> list[Case]:
    cases: list[Case] = []
    for dtype, tolerance in KINDS.items():
        for reduction in (0, 1, 2):
            for weight in (None, Tensor(dtype, (5,), low=0.5, high=2.0)):
                for shape, target in (((6, 5), (6,)), ((5,), ())):
                    x, t = Tensor(dtype, shape), Tensor(I64, target, low=0, high=5)
                    grad = Tensor(dtype, target if reduction == 0 else ())
                    total = Tensor(dtype, (), low=3.0, high=5.0)
                    for ignored in (-100, 2):
                        cases.append(Case("aten::nll_loss_forward", (x, t, weight, reduction, ignored), {}, tolerance))
                        arguments = (grad, x, t, weight, reduction, ignored, total)
                        cases.append(Case("aten::nll_loss_backward", arguments, {}, tolerance))
                if dtype == BF16:
                    continue  # torch has no nll_loss2d for bf16 on the CPU
                x, t = Tensor(dtype, (2, 5, 3, 4)), Tensor(I64, (2, 3, 4), low=0, high=5)
                grad = Tensor(dtype, (2, 3, 4) if reduction == 0 else ())
                cases.append(Case("aten::nll_loss2d_forward", (x, t, weight, reduction, 1), {}, tolerance))
                arguments = (grad, x, t, weight, reduction, 1, Tensor(dtype, (), low=3.0, high=5.0))
                cases.append(Case("aten::nll_loss2d_backward", arguments, {}, tolerance))
    ignored = Tensor(I64, (2,), values=(-100, -100))
    cases.append(Case("aten::nll_loss_forward", (Tensor(F32, (2, 5)), ignored, None, 1, -100)))
    return cases


CASES = [*_regression(), *_likelihood()]
