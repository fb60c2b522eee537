"""Operators on lists of tensors, and fused optimizer steps."""

from __future__ import annotations

import torch

from ..case import Case, Tensor, Tolerance

F32, BF16, I64 = torch.float32, torch.bfloat16, torch.int64

STEPS = Tolerance(ulp=8, absolute=2e-6, reason="several rounded steps; torch fuses multiplications and additions")
HALF = Tolerance(ulp=2, absolute=0.05, reason="torch rounds intermediate results to bf16, the device once")
KINDS = {F32: STEPS, BF16: HALF}
SHAPES = ((3, 5), (4,), (), (0, 2))


def tensors(dtype: torch.dtype, **data: object) -> list[Tensor]:
    return [Tensor(dtype, shape, **data) for shape in SHAPES]


def _lists() -> list[Case]:
    cases: list[Case] = []
    for dtype, tolerance in KINDS.items():
        positive = tensors(dtype, low=0.5, high=2.0)
        xs, ys = tensors(dtype), positive
        for name in ("sqrt", "rsqrt", "exp", "log", "tanh", "sigmoid", "neg", "abs", "sign", "reciprocal", "zero"):
            cases.append(Case(f"aten::_foreach_{name}", (positive,), {}, tolerance))
        for name in ("add", "sub", "mul", "div"):
            if name in ("add", "sub"):
                cases.append(Case(f"aten::_foreach_{name}.List", (xs, ys), {"alpha": 0.37}, tolerance))
            cases.append(Case(f"aten::_foreach_{name}.List", (xs, ys), {}, tolerance))
            cases.append(Case(f"aten::_foreach_{name}.Scalar", (xs, 0.7), {}, tolerance))
            cases.append(Case(f"aten::_foreach_{name}.ScalarList", (xs, [0.7, 1.5, -2.0, 3.0]), {}, tolerance))
            if name != "sub":
                cases.append(
                    Case(f"aten::_foreach_{name}.Tensor", (xs, Tensor(dtype, (), low=0.5, high=2.0)), {}, tolerance)
                )
        for name in ("maximum", "minimum", "clamp_min", "clamp_max"):
            cases.append(Case(f"aten::_foreach_{name}.List", (xs, ys)))
            cases.append(Case(f"aten::_foreach_{name}.Scalar", (xs, 0.25)))
            cases.append(Case(f"aten::_foreach_{name}.ScalarList", (xs, [0.5, 1.5, -2.0, 3.0])))
        for name in ("addcmul", "addcdiv"):
            cases.append(Case(f"aten::_foreach_{name}.Scalar", (xs, xs, ys, 0.3), {}, tolerance))
            cases.append(Case(f"aten::_foreach_{name}.ScalarList", (xs, xs, ys, [0.1, -0.2, 0.3, 0.4]), {}, tolerance))
            cases.append(Case(f"aten::_foreach_{name}.Tensor", (xs, xs, ys, Tensor(dtype, (4,))), {}, tolerance))
        cases.append(Case("aten::_foreach_lerp.Scalar", (xs, ys, 0.1), {}, tolerance))
        cases.append(Case("aten::_foreach_lerp.List", (xs, ys, positive), {}, tolerance))
        cases.append(Case("aten::_foreach_lerp.ScalarList", (xs, ys, [0.1, 0.9, 0.5, 0.0]), {}, tolerance))
        cases.append(Case("aten::_foreach_pow.Scalar", (positive, 2), {}, tolerance))
        cases.append(Case("aten::_foreach_pow.ScalarList", (positive, [2, 0.5, 3, 1]), {}, tolerance))
        cases.append(Case("aten::_foreach_pow.List", (positive, positive), {}, tolerance))
        cases.append(Case("aten::_foreach_pow.ScalarAndTensor", (0.9, xs), {}, tolerance))
        for ord in (2, 1):
            cases.append(Case("aten::_foreach_norm.Scalar", (xs, ord), {}, tolerance))
        cases.append(Case("aten::_foreach_copy", (xs, tensors(F32)), {}))
    cases.append(Case("aten::_foreach_norm.Scalar", (tensors(BF16), 2), {"dtype": F32}, STEPS))
    return cases


def _optimizers() -> list[Case]:
    cases: list[Case] = []
    for dtype in (F32,):
        tolerance = STEPS
        params, grads = [Tensor(dtype, (3, 5)), Tensor(dtype, (4,))], [Tensor(dtype, (3, 5)), Tensor(dtype, (4,))]
        first = [Tensor(dtype, (3, 5), scale=0.1), Tensor(dtype, (4,), scale=0.1)]
        second = [Tensor(dtype, (3, 5), low=0.01, high=0.1), Tensor(dtype, (4,), low=0.01, high=0.1)]
        steps = [Tensor(torch.float32, (), values=(1.0,)), Tensor(torch.float32, (), values=(7.0,))]
        unscale = {"grad_scale": Tensor(F32, (), values=(4.0,)), "found_inf": Tensor(F32, (), values=(0.0,))}
        overflow = {"grad_scale": Tensor(F32, (), values=(4.0,)), "found_inf": Tensor(F32, (), values=(1.0,))}
        for name in ("_fused_adam", "_fused_adamw"):
            for amsgrad, maximize, decay, scaling in (
                (False, False, 0.0, {}),
                (True, False, 0.01, {}),
                (False, True, 0.1, {}),
                (True, False, 0.1, unscale),
                (False, False, 0.1, overflow),
            ):
                options = {
                    "beta1": 0.9,
                    "beta2": 0.999,
                    "weight_decay": decay,
                    "eps": 1e-8,
                    "amsgrad": amsgrad,
                    "maximize": maximize,
                }
                lists = (params, grads, first, second, second if amsgrad else [], steps)
                # torch leaves the gradients of a skipped step as they are; so do we.
                cases.append(Case(f"aten::{name}", lists, {"lr": 0.01, **options, **scaling}, tolerance))
                cases.append(
                    Case(
                        f"aten::{name}.tensor_lr",
                        lists,
                        {"lr": Tensor(F32, (), values=(0.01,)), **options, **scaling},
                        tolerance,
                    )
                )
        for momentum, dampening, nesterov, is_first, maximize, scaling in (
            (0.0, 0.0, False, True, False, {}), (0.9, 0.0, False, True, False, {}), (0.9, 0.1, False, False, True, {}),
            (0.9, 0.0, True, False, False, unscale), (0.9, 0.0, False, False, False, overflow),
        ):  # fmt: skip
            options = {"weight_decay": 0.01, "momentum": momentum, "dampening": dampening, "nesterov": nesterov,
                       "maximize": maximize, "is_first_step": is_first}  # fmt: skip
            lists = (params, grads, first if momentum else [])
            cases.append(Case("aten::_fused_sgd", lists, {**options, "lr": 0.1, **scaling}, tolerance))
            cases.append(
                Case(
                    "aten::_fused_sgd.tensor_lr",
                    lists,
                    {**options, "lr": Tensor(F32, (), values=(0.1,)), **scaling},
                    tolerance,
                )
            )
    return cases


def _scaling() -> list[Case]:
    cases: list[Case] = []
    inverse = Tensor(F32, (), values=(0.25,))
    for dtype in (F32, BF16):
        for found in (0.0, 1.0):
            flag = Tensor(F32, (1,), values=(found,))
            for special in (False, True):
                grads = [Tensor(dtype, (3, 5)), Tensor(dtype, (4,), special=special), Tensor(dtype, ())]
                cases.append(Case("aten::_amp_foreach_non_finite_check_and_unscale", (grads, flag, inverse)))
    for found, tracker, scale in ((0.0, 3, 8.0), (0.0, 4, 8.0), (1.0, 4, 8.0), (0.0, 4, 3e38)):
        arguments = (
            Tensor(F32, (), values=(scale,)), Tensor(torch.int32, (), values=(tracker,)), Tensor(F32, (), values=(found,)),
            2.0, 0.5, 5,
        )  # fmt: skip
        cases.append(Case("aten::_amp_update_scale", arguments))
    return cases


CASES = [*_scaling(), *_lists(), *_optimizers()]
