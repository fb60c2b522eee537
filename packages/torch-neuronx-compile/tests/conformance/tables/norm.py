"""Layer, batch and group normalisation with their backward forms."""

from __future__ import annotations

import torch

from ..case import Case, Tensor, Tolerance

F32, F64, BF16, F16 = torch.float32, torch.float64, torch.bfloat16, torch.float16

STEPS = Tolerance(ulp=16, absolute=1e-5, reason="sums in another order, then several rounded steps")
HALF = Tolerance(ulp=2, absolute=0.03, reason="torch rounds statistics and intermediate results to the element type")
KINDS = {F32: STEPS, F64: STEPS, BF16: HALF, F16: HALF}
MASKS = ([True, True, True], [True, False, False], [False, True, True])


def _layer() -> list[Case]:
    cases: list[Case] = []
    for dtype, tolerance in KINDS.items():
        for shape, normalized in (((4, 37), [37]), ((2, 3, 5), [3, 5]), ((5,), [5]), ((3, 1), [1])):
            x, w = Tensor(dtype, shape), Tensor(dtype, tuple(normalized))
            for weight, bias in ((w, w), (None, None), (w, None)):
                cases.append(Case("aten::native_layer_norm", (x, normalized, weight, bias, 1e-5), {}, tolerance))
            if shape == (3, 1):
                continue  # every element is its own mean: the gradient is 0 / eps, pure cancellation
            rows = shape[: len(shape) - len(normalized)] + (1,) * len(normalized)
            mean, rstd = Tensor(dtype, rows, scale=0.1), Tensor(dtype, rows, low=0.5, high=1.5)
            for mask in MASKS:
                arguments = (Tensor(dtype, shape, scale=0.5), x, normalized, mean, rstd, w, w, mask)
                cases.append(Case("aten::native_layer_norm_backward", arguments, {}, BACKWARD[dtype]))
    cases.append(Case("aten::native_layer_norm", (Tensor(F32, (0, 5)), [5], None, None, 1e-5), {}, STEPS))
    return cases


BACKWARD = {F32: STEPS, F64: STEPS, BF16: Tolerance(ulp=3, absolute=0.05, reason=HALF.reason),
            F16: Tolerance(ulp=3, absolute=0.01, reason=HALF.reason)}  # fmt: skip


def _batch() -> list[Case]:
    cases: list[Case] = []
    for dtype in (F32, F64, BF16):
        tolerance = KINDS[dtype]
        for shape in ((6, 3), (2, 3, 5), (2, 3, 4, 5)):
            x, w = Tensor(dtype, shape), Tensor(dtype, (3,))
            running = (Tensor(dtype, (3,)), Tensor(dtype, (3,), low=0.5, high=2.0))
            for weight, bias in ((w, w), (None, None)):
                for training in (True, False):
                    arguments = (x, weight, bias, *running, training, 0.1, 1e-5)
                    cases.append(Case("aten::_native_batch_norm_legit_functional", arguments, {}, tolerance))
                    cases.append(Case("aten::native_batch_norm", arguments, {}, tolerance, reference=_with_statistics))
                cases.append(
                    Case("aten::_native_batch_norm_legit.no_stats", (x, weight, bias, True, 0.1, 1e-5), {}, tolerance)
                )
                cases.append(
                    Case(
                        "aten::_native_batch_norm_legit_no_training",
                        (x, weight, bias, *running, 0.1, 1e-5),
                        {},
                        tolerance,
                    )
                )
            saved = (Tensor(dtype, (3,), scale=0.1), Tensor(dtype, (3,), low=0.5, high=1.5))
            for training in (True, False):
                for mask in MASKS:
                    arguments = (Tensor(dtype, shape, scale=0.5), x, w, *running, *saved, training, 1e-5, mask)
                    cases.append(Case("aten::native_batch_norm_backward", arguments, {}, BACKWARD[dtype]))
    return cases


def _with_statistics(x, weight, bias, mean, var, *rest):
    """torch updates the running statistics without saying so; here they are results."""
    mean, var = mean.clone(), var.clone()
    return (*torch.ops.aten.native_batch_norm(x, weight, bias, mean, var, *rest), mean, var)


def _group() -> list[Case]:
    cases: list[Case] = []
    for dtype in (F32, BF16):
        x, w = Tensor(dtype, (2, 6, 4, 5)), Tensor(dtype, (6,))
        for groups in (1, 3, 6):
            for weight in (w, None):
                cases.append(
                    Case("aten::native_group_norm", (x, weight, weight, 2, 6, 20, groups, 1e-5), {}, KINDS[dtype])
                )
            mean, rstd = Tensor(dtype, (2, groups), scale=0.1), Tensor(dtype, (2, groups), low=0.5, high=1.5)
            for mask in MASKS:
                arguments = (Tensor(dtype, (2, 6, 4, 5), scale=0.5), x, mean, rstd, w, 2, 6, 20, groups, mask)
                cases.append(Case("aten::native_group_norm_backward", arguments, {}, BACKWARD[dtype]))
    return cases


CASES = [*_layer(), *_batch(), *_group()]
