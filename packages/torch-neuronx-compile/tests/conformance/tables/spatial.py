"""Pooling, padding by the tensor's own elements, resizing."""

from __future__ import annotations

import torch

from ..case import ALL_DTYPES, Case, Tensor, Tolerance

F32, F64, BF16, F16, I64 = torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64

STEPS = Tolerance(ulp=8, absolute=1e-6, reason="order of additions")
HALF = Tolerance(ulp=2, absolute=0.03, reason="torch rounds partial sums to the element type, the device once")
KINDS = {F32: STEPS, F64: STEPS, BF16: HALF, F16: HALF}

# kernel, stride, padding, dilation, ceil_mode
MAX_WINDOWS = (
    ([2], [], [0], [1], False),
    ([3, 2], [2, 1], [1, 0], [1], False),
    ([3], [2], [1], [1], True),
    ([2, 3], [3, 2], [1, 1], [1], True),
    ([2], [1], [1], [2], False),
)
# kernel, stride, padding, ceil_mode, count_include_pad, divisor_override
AVERAGE_WINDOWS = (
    ([2], [], [0], False, True, None),
    ([3, 2], [2, 1], [1, 0], False, True, None),
    ([3], [2], [1], True, False, None),
    ([2, 3], [3, 2], [1, 1], True, True, None),
    ([2], [1], [0], False, True, 3),
)


def _max() -> list[Case]:
    cases: list[Case] = []
    for dtype, tolerance in KINDS.items():
        for arguments in MAX_WINDOWS:
            for shape in ((2, 3, 7, 8), (3, 6, 7)):
                x = Tensor(dtype, shape)
                cases.append(Case("aten::max_pool2d_with_indices", (x, *arguments)))
                out = torch.ops.aten.max_pool2d_with_indices(torch.zeros(shape), *arguments)[0].shape
                indices = Tensor(I64, tuple(out), low=0, high=shape[-1] * shape[-2])
                grad = Tensor(dtype, tuple(out))
                cases.append(
                    Case("aten::max_pool2d_with_indices_backward", (grad, x, *arguments, indices), {}, tolerance)
                )
    cases.append(Case("aten::max_pool2d_with_indices", (Tensor(F32, (1, 4, 6), special=True), [2], [2])))
    infinities = Tensor(F32, (1, 2, 2), values=(float("-inf"),) * 4)
    cases.append(Case("aten::max_pool2d_with_indices", (infinities, [2], [1], [1])))
    return cases


def _average() -> list[Case]:
    cases: list[Case] = []
    for dtype, tolerance in KINDS.items():
        for arguments in AVERAGE_WINDOWS:
            for shape in ((2, 3, 7, 8), (3, 6, 7)):
                x = Tensor(dtype, shape)
                cases.append(Case("aten::avg_pool2d", (x, *arguments), {}, tolerance))
                grad = Tensor(dtype, tuple(torch.ops.aten.avg_pool2d(torch.zeros(shape), *arguments).shape))
                cases.append(Case("aten::avg_pool2d_backward", (grad, x, *arguments), {}, tolerance))
        for size in ([3, 2], [6, 8]):
            x = Tensor(dtype, (2, 3, 6, 8))
            cases.append(Case("aten::_adaptive_avg_pool2d", (x, size), {}, tolerance))
            grad = Tensor(dtype, (2, 3, *size))
            cases.append(Case("aten::_adaptive_avg_pool2d_backward", (grad, x), {}, tolerance))
    return cases


PADS = {1: [1, 2], 2: [1, 2, 0, 1], 3: [1, 0, 2, 1, 0, 1]}


def _pads() -> list[Case]:
    cases: list[Case] = []
    for mode in ("reflection", "replication"):
        for rank, padding in PADS.items():
            space = (3, 4, 5)[3 - rank :]
            for dtype in (F32, BF16):
                for lead in ((2, 3), (3,)):
                    x = Tensor(dtype, (*lead, *space))
                    cases.append(Case(f"aten::{mode}_pad{rank}d", (x, padding)))
                    out = [s + padding[2 * n] + padding[2 * n + 1] for n, s in enumerate(reversed(space))][::-1]
                    grad = Tensor(dtype, (*lead, *out))
                    cases.append(Case(f"aten::{mode}_pad{rank}d_backward", (grad, x, padding), {}, KINDS[dtype]))
    return cases


def _resizing() -> list[Case]:
    cases: list[Case] = []
    for dtype in (F32, BF16):
        cases.append(Case("aten::upsample_nearest1d", (Tensor(dtype, (2, 3, 5)), [10], 2.0)))
        cases.append(Case("aten::upsample_nearest1d", (Tensor(dtype, (2, 3, 5)), [7])))
        cases.append(Case("aten::upsample_nearest2d", (Tensor(dtype, (2, 3, 4, 5)), [8, 15], 2.0, 3.0)))
        cases.append(Case("aten::upsample_nearest2d", (Tensor(dtype, (2, 3, 4, 5)), [3, 11])))
        cases.append(Case("aten::upsample_nearest3d", (Tensor(dtype, (1, 2, 2, 3, 4)), [4, 3, 7])))
    for dtype in ALL_DTYPES:
        cases.append(Case("aten::pixel_shuffle", (Tensor(dtype, (2, 8, 3, 4)), 2)))
        cases.append(Case("aten::pixel_unshuffle", (Tensor(dtype, (2, 2, 4, 6)), 2)))
    cases.append(Case("aten::channel_shuffle", (Tensor(F32, (2, 6, 3, 4)), 3)))
    return cases


CASES = [*_max(), *_average(), *_pads(), *_resizing()]
