"""Activation functions and their backward forms."""

from __future__ import annotations

import torch

from ..case import FLOATS, SHAPES, Case, Tensor, Tolerance, grid

F32, F64, BF16, F16, I64 = torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64

STEPS = Tolerance(
    ulp=12, absolute=1e-6, reason="a formula of several rounded steps, each side with its own polynomials"
)
HALF = Tolerance(
    ulp=2, absolute=2e-3, reason="torch rounds some intermediate results to the element type, the device rounds once"
)
PLAIN = {"data": {"special": False}}


def _pair(op: str, *arguments: object, tolerance: dict[torch.dtype, Tolerance] | None = None, first: dict | None = None,
          second: dict | None = None) -> list[Case]:  # fmt: skip
    """A backward form with two tensors, in every float dtype."""
    cases = []
    for dtype in FLOATS:
        for shape in SHAPES if dtype == F32 else SHAPES[-1:]:
            pair = (Tensor(dtype, shape, **(first or {})), Tensor(dtype, shape, **(second or {})))
            bound = (STEPS if dtype in (F32, F64) else HALF) if tolerance is None else tolerance.get(dtype, Tolerance())
            cases.append(Case(op, (*pair, *arguments), {}, bound))
    return cases


def _forward(op: str, *arguments: object, exact: bool = False, special: bool = False) -> list[Case]:
    cases = []
    for dtype in FLOATS:
        bound = Tolerance() if exact else STEPS if dtype in (F32, F64) else HALF
        cases += grid(op, (dtype,), SHAPES, *arguments, tolerance=bound, data={"scale": 2.0, "special": special})
    return cases


def _cases() -> list[Case]:
    cases: list[Case] = []
    cases += _forward("aten::relu", exact=True, special=True) + grid("aten::relu", (I64,), SHAPES)
    cases += _forward("aten::threshold", 0.25, -1.5, exact=True, special=True)
    cases += _forward("aten::leaky_relu", 0.01, special=True)
    cases += _forward("aten::hardtanh", -1, 1, exact=True, special=True) + grid("aten::hardtanh", (I64,), SHAPES, -1, 4)
    cases += _forward("aten::elu", 1.5, 1.1, 0.9)
    for approximate in ("none", "tanh"):
        for dtype in FLOATS:
            tolerance = STEPS if dtype in (F32, F64) else HALF
            cases += grid(
                "aten::gelu", (dtype,), SHAPES, approximate=approximate, tolerance=tolerance, data={"special": False}
            )
            for shape in SHAPES:
                pair = (Tensor(dtype, shape), Tensor(dtype, shape, scale=2.0))
                cases.append(Case("aten::gelu_backward", pair, {"approximate": approximate}, tolerance))
    for name in ("silu", "hardsigmoid", "hardswish", "mish"):
        cases += _forward(f"aten::{name}")
        cases += _pair(f"aten::{name}_backward", second={"scale": 3.0})
    cases += _forward("aten::softplus", 1.5, 20) + _pair("aten::softplus_backward", 1.5, 20)
    cases += _forward("aten::softplus", 2, 1)
    for dtype in (F32, BF16):
        for shape in SHAPES:
            x = Tensor(dtype, shape, scale=3.0)
            bound = STEPS if dtype == F32 else HALF
            # The second result is a buffer whose contents are the kernel's own business.
            cases.append(Case("aten::log_sigmoid_forward", (x,), {}, bound, compare=(0,)))
            buffer = Tensor(dtype, shape, low=0.1, high=0.9)
            cases.append(
                Case(
                    "aten::log_sigmoid_backward",
                    (Tensor(dtype, shape), x, buffer),
                    {},
                    bound,
                    reference=_log_sigmoid_backward,
                )
            )
        shapes = ((2, 3, 5), (1, 3, 1))
        cases.append(Case("aten::_prelu_kernel", (Tensor(dtype, shapes[0]), Tensor(dtype, shapes[1]))))
        arguments = (Tensor(dtype, shapes[0]), Tensor(dtype, shapes[0]), Tensor(dtype, shapes[1]))
        cases.append(Case("aten::_prelu_kernel_backward", arguments))
        for dim in (0, 1):
            x = Tensor(dtype, (4, 6))
            grad = Tensor(dtype, (2, 6) if dim == 0 else (4, 3))
            cases.append(Case("aten::glu", (x, dim), {}, STEPS if dtype == F32 else HALF))
            cases.append(Case("aten::glu_backward", (grad, x, dim), {}, STEPS if dtype == F32 else HALF))
    for name in ("hardshrink", "softshrink"):
        cases += _forward(f"aten::{name}", 0.5, exact=True) if name == "hardshrink" else _softshrink()
        cases += _pair(f"aten::{name}_backward", 0.5, tolerance={})
    cases += _pair("aten::threshold_backward", 0.25, tolerance={}, second={"special": True})
    cases += _pair("aten::threshold_backward", 0, tolerance={})
    cases += _pair("aten::leaky_relu_backward", 0.01, False)
    cases += _pair("aten::hardtanh_backward", -1, 1, tolerance={})
    for is_result in (False, True):
        for dtype in (F32, BF16):
            x = Tensor(dtype, (3, 7), low=-1.0, high=2.0)
            arguments = (Tensor(dtype, (3, 7)), 1.5, 1.1, 0.9, is_result, x)
            cases.append(Case("aten::elu_backward", arguments, {}, STEPS if dtype == F32 else HALF))
    cases += _pair("aten::sigmoid_backward", second={"low": 0.0, "high": 1.0})
    cases += _pair("aten::tanh_backward", second={"low": -1.0, "high": 1.0})
    for eps in (None, 0.1):
        for dtype in (F32, BF16):
            arguments = (Tensor(dtype, (3, 7)), Tensor(dtype, (3, 7), low=-0.2, high=1.2), eps)
            cases.append(Case("aten::logit_backward", arguments, {}, STEPS if dtype == F32 else LOGIT))
    return cases


def _softshrink() -> list[Case]:
    zero = Tolerance(absolute=1e-38, reason="torch's vector loop gives 0.0 where its scalar loop gives -0.0")
    return grid("aten::softshrink", FLOATS, SHAPES, 0.5, data={"special": False}, tolerance=zero)


LOGIT = Tolerance(ulp=4, absolute=2e-3, reason="torch rounds x * (1 - x) to the element type")


def _log_sigmoid_backward(grad, x, buffer):
    """torch's kernel reads a buffer of its own making; the mathematical result does not need it."""
    return (grad.double() * torch.sigmoid(-x.double())).to(x.dtype)


CASES = _cases()
