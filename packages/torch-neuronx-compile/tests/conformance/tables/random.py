"""Random operators against the same formulas in NumPy double precision over an independent Philox."""

from __future__ import annotations

import math

import numpy as np
import torch

from ..case import FLOATS, Case, Tensor, Tolerance
from ..philox import words

F32, F64, BF16, F16 = torch.float32, torch.float64, torch.bfloat16, torch.float16
I64, I32, I8, U8, BOOL = torch.int64, torch.int32, torch.int8, torch.uint8, torch.bool

ROUNDING = Tolerance(ulp=2, absolute=2e-6, reason="f32 against double arithmetic, then one rounding")
ZERO_SIGN = Tolerance(absolute=1e-38, reason="XLA drops the sign of x * 0")
BITS = {F32: 24, F64: 24, BF16: 8, F16: 11}


def _count(shape) -> int:
    return math.prod(shape)


def _unit(shape, dtype=F32) -> np.ndarray:
    """Uniform in [0, 1) with as many bits as the type holds."""
    bits = BITS[dtype]
    return (words(_count(shape))[:, 0] >> np.uint64(32 - bits)).astype(np.float64).reshape(tuple(shape)) * 2.0**-bits


def _tensor(array: np.ndarray, dtype: torch.dtype) -> torch.Tensor:
    return torch.from_numpy(np.asarray(array)).to(dtype)


def _uniform(x, low, high, generator=None):
    value = _tensor(_unit(x.shape, x.dtype) * (high - low) + low, x.dtype)
    return torch.where(value >= high, torch.tensor(low, dtype=x.dtype), value)


def _normal(x, mean, std, generator=None):
    both = words(x.numel())
    radius = np.sqrt(-2 * np.log(((both[:, 0] >> np.uint64(1)).astype(np.float64) + 1) * 2.0**-31))
    angle = (both[:, 1] >> np.uint64(8)).astype(np.float64) * (2 * math.pi * 2.0**-24)
    return _tensor((radius * np.cos(angle)).reshape(tuple(x.shape)) * std + mean, x.dtype)


def _rand(size, *, dtype):
    return _uniform(torch.empty(size, dtype=dtype), 0.0, 1.0)


def _randn(size, *, dtype):
    return _normal(torch.empty(size, dtype=dtype), 0.0, 1.0)


def _below(x, p):
    return _tensor(_unit(x.shape), F64) < torch.as_tensor(p, dtype=F32).double()


def _bernoulli(x, p, generator=None):
    return _below(x, p).to(x.dtype)


def _dropout(x, p, train):
    if not train:
        return x, torch.ones_like(x, dtype=BOOL)
    mask = _below(x, 1 - p)
    return (x.double() * mask / (1 - p if p < 1 else math.inf)).to(x.dtype), mask


def _integers(shape, low, count) -> np.ndarray:
    both = words(_count(shape))
    number = both[:, 0].astype(object)
    if count > 1 << 63:
        number = (number << 32) | both[:, 1].astype(object)
    elif count > 1 << 32:
        number = ((both[:, 1].astype(object) >> 1) << 32) | number
    low = 0 if count == 1 << 64 else low  # all numbers: the bits as they are
    result = [low + n % count for n in number]
    result = [n - (1 << 64) if n >= 1 << 63 else n for n in result]
    return np.array(result, dtype=np.int64).reshape(tuple(shape))


def _random_from(x, low, high, generator=None):
    return _tensor(_integers(x.shape, low, ((1 << 63) if high is None else high) - low), x.dtype)


COUNTS = {
    I64: 1 << 63,
    I32: 1 << 31,
    I8: 128,
    U8: 256,
    BOOL: 2,
    F32: (1 << 24) + 1,
    F64: (1 << 53) + 1,
    BF16: 257,
    F16: 2049,
}


def _exponential(x, lambd, generator=None):
    return _tensor(-np.log1p(-_unit(x.shape)) / lambd, x.dtype)


def _log_normal(x, mean, std, generator=None):
    return torch.exp(_normal(x.double(), mean, std)).to(x.dtype)


def _cauchy(x, median, sigma, generator=None):
    return _tensor(median + sigma * np.tan(math.pi * (_unit(x.shape) - 0.5)), x.dtype)


def _geometric(x, p, generator=None):
    return _tensor(np.maximum(np.ceil(np.log1p(-_unit(x.shape)) / math.log1p(-p)), 1), x.dtype)


def _multinomial(weights, count, replacement=False, generator=None):
    sums = weights.double().cumsum(-1)
    u = torch.from_numpy(_unit((*weights.shape[:-1], count)))
    index = (sums.unsqueeze(-2) <= (u * sums[..., -1:]).unsqueeze(-1)).sum(-1)
    return index.clamp(max=weights.shape[-1] - 1)


STEEP = {F32: Tolerance(ulp=400, reason="tan near its poles: a rounding of the angle counts as often as the slope"),
         BF16: Tolerance(ulp=1, reason="the same, rounded to bf16")}  # fmt: skip
TAIL = Tolerance(ulp=8, absolute=1e-5, reason="f32 against double arithmetic where the function is steep")


def _cases() -> list[Case]:
    cases: list[Case] = []
    for dtype in FLOATS:
        for shape in ((3, 37), (), (0, 4)):
            x = Tensor(dtype, shape)
            cases.append(Case("aten::uniform", (x, -1.5, 2.0), {}, ROUNDING, _uniform))
            cases.append(Case("aten::normal_functional", (x, 0.5, 2.0), {}, ROUNDING, _normal))
            cases.append(Case("aten::bernoulli.p", (x, 0.3), {}, reference=_bernoulli))
            cases.append(Case("aten::native_dropout", (x, 0.25, True), {}, ROUNDING, _dropout))
            cases.append(Case("aten::exponential", (x, 1.5), {}, ROUNDING, _exponential))
            cases.append(Case("aten::rand", (list(shape),), {"dtype": dtype}, reference=_rand))
            cases.append(Case("aten::randn", (list(shape),), {"dtype": dtype}, ROUNDING, _randn))
        x = Tensor(dtype, (3, 37))
        cases.append(Case("aten::rand_like", (x,), {}, reference=lambda x: _uniform(x, 0.0, 1.0)))
        cases.append(Case("aten::randn_like", (x,), {}, ROUNDING, lambda x: _normal(x, 0.0, 1.0)))
        cases.append(Case("aten::native_dropout", (x, 0.0, True), {}, reference=_dropout))
        cases.append(
            Case(
                "aten::native_dropout",
                (x, 1.0, True),
                {},
                ZERO_SIGN,
                lambda x, p, t: (x * 0, torch.zeros_like(x, dtype=BOOL)),
            )
        )
        cases.append(Case("aten::native_dropout", (x, 0.5, False), {}, reference=_dropout))
        mask = Tensor(BOOL, (3, 37))
        cases.append(
            Case(
                "aten::native_dropout_backward",
                (x, mask, 1.25),
                {},
                ROUNDING,
                lambda g, m, s: (g.double() * m * s).to(g.dtype),
            )
        )
        p = Tensor(dtype, (3, 37), low=0.0, high=1.0)
        cases.append(Case("aten::bernoulli", (p,), {}, reference=lambda p, generator=None: _bernoulli(p, p)))
        cases.append(Case("aten::bernoulli.Tensor", (x, p), {}, reference=_bernoulli))
    for dtype in (I64, I32, I8, U8, BOOL, *FLOATS):
        x = Tensor(dtype, (3, 37))
        cases.append(
            Case(
                "aten::random",
                (x,),
                {},
                reference=lambda x, generator=None: _tensor(_integers(x.shape, 0, COUNTS[x.dtype]), x.dtype),
            )
        )
        high = 2 if dtype == BOOL else 100
        cases.append(Case("aten::random.from", (x, 0 if dtype in (U8, BOOL) else -7, high), {}, reference=_random_from))
        cases.append(Case("aten::random.to", (x, high), {}, reference=lambda x, high: _random_from(x, 0, high)))
        if dtype != BOOL:
            cases.append(
                Case(
                    "aten::randint",
                    (100, [3, 5]),
                    {"dtype": dtype},
                    reference=lambda h, s, dtype: _tensor(_integers(s, 0, h), dtype),
                )
            )
            cases.append(
                Case(
                    "aten::randint.low",
                    (3, 100, [3, 5]),
                    {"dtype": dtype},
                    reference=lambda a, h, s, dtype: _tensor(_integers(s, a, h - a), dtype),
                )
            )
            cases.append(Case("aten::randint_like", (x, 100), {}, reference=lambda x, h: _random_from(x, 0, h)))
            cases.append(
                Case("aten::randint_like.low_dtype", (x, 3, 100), {}, reference=lambda x, a, h: _random_from(x, a, h))
            )
    for dtype in (F32, BF16):
        x = Tensor(dtype, (3, 37))
        cases.append(Case("aten::log_normal", (x, 0.5, 0.25), {}, TAIL, _log_normal))
        cases.append(Case("aten::cauchy", (x, 0.5, 2.0), {}, STEEP[dtype], _cauchy))
        cases.append(Case("aten::geometric", (x, 0.3), {}, reference=_geometric))
    for shape, count, replacement in (((5,), 1, False), ((3, 40), 7, True), ((3, 40), 1, False)):
        weights = Tensor(F32, shape, low=0.0, high=4.0)
        cases.append(Case("aten::multinomial", (weights, count, replacement), {}, reference=_multinomial))
    wide = Tensor(I64, (3, 37))
    for low, high in (
        (0, 1 << 32),
        (0, (1 << 40) + 1),
        (-(1 << 63), None),
        (-(1 << 62), 1 << 62),
        (-(1 << 63), 1 << 61),
    ):
        cases.append(Case("aten::random.from", (wide, low, high), {}, reference=_random_from))
    return cases


CASES = _cases()
