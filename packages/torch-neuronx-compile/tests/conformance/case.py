"""One conformance case: a call of an ATen operator, made-up data for it, and how close the result must be."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

FLOATS = (torch.float32, torch.bfloat16, torch.float16, torch.float64)
HALVES = (torch.bfloat16, torch.float16)
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
ALL_DTYPES = (*FLOATS, *INTEGERS, torch.bool)

# Odd shapes that every element-wise operator must take: 0-d, size 1, empty, longer than a vector register.
SHAPES = ((), (1,), (0,), (3, 5), (2, 1, 37))

SPECIAL = (float("nan"), float("inf"), float("-inf"), -0.0, 0.0, 1.0, -1.0, 0.5, -2.5, 1e-30, 3e4)


@dataclass(frozen=True)
class Tensor:
    """A tensor argument. Floats are normal numbers times `scale` (or uniform from `low` to `high`); integers are uniform
    in [low, high); `special` puts NaN, infinities and signed zeros in front; `values` gives the elements."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    low: float | None = None
    high: float | None = None
    scale: float = 1.0
    special: bool = False
    values: tuple | None = None

    def make(self, generator: torch.Generator) -> torch.Tensor:
        if self.values is not None:
            return torch.tensor(self.values, dtype=self.dtype).reshape(self.shape)
        if self.dtype.is_floating_point:
            if self.low is not None:
                data = torch.rand(self.shape, generator=generator) * (self.high - self.low) + self.low
            else:
                data = torch.randn(self.shape, generator=generator) * self.scale
            if self.special and data.numel():
                flat, count = data.view(-1), min(data.numel(), len(SPECIAL))
                flat[:count] = torch.tensor(SPECIAL[:count])
            return data.to(self.dtype)
        if self.dtype == torch.bool:
            return torch.rand(self.shape, generator=generator) < 0.5
        low = self.low if self.low is not None else (0 if self.dtype == torch.uint8 else -9)
        return torch.randint(int(low), int(self.high if self.high is not None else 10), self.shape, generator=generator,
                             dtype=self.dtype)  # fmt: skip


@dataclass(frozen=True)
class Number:
    """A tensor argument given as a Python number, as in `x + 2.5`: torch wraps it into a 0-d CPU tensor."""

    value: bool | int | float


@dataclass(frozen=True)
class Tolerance:
    """Largest accepted difference: `ulp` units in the last place of the result's dtype plus `absolute`, with the reason.
    `xla` units more are granted to XLA's CPU backend, where that is less exact than the device must be.

    float64 counts in units of float32, in which the device computes it. Signs of zeros and NaNs must agree exactly where
    `absolute` is 0.
    """

    ulp: float = 0
    absolute: float = 0.0
    reason: str = "exact"
    xla: float = 0

    def __post_init__(self):
        assert (self.ulp == self.absolute == self.xla == 0) == (self.reason == "exact"), "a tolerance needs its reason"


EXACT = Tolerance()


@dataclass(frozen=True)
class Case:
    """A call: `op` as in "aten::add.Tensor", and its arguments, keyword-only ones by name.

    `reference` replaces torch's CPU kernel where that does not exist or is known to be wrong; it takes the same arguments.
    `compare` holds the numbers of the results that are compared (default: all).
    """

    op: str
    args: tuple = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    tolerance: Tolerance = EXACT
    reference: Any = None
    compare: tuple[int, ...] | None = None

    @property
    def id(self) -> str:
        return f"{self.op}({', '.join([_text(a) for a in self.args] + [f'{k}={_text(v)}' for k, v in self.kwargs.items()])})"

    @property
    def overload(self) -> torch._ops.OpOverload:
        namespace, _, name = self.op.partition("::")
        base, _, overload = name.partition(".")
        return getattr(getattr(getattr(torch.ops, namespace), base), overload or "default")

    def make(self) -> tuple[tuple, dict[str, Any]]:
        """The arguments with data; always the same for the same case."""
        seed = int.from_bytes(hashlib.sha256(self.id.encode()).digest()[:6], "little")
        generator = torch.Generator().manual_seed(seed)
        return tuple(_make(a, generator) for a in self.args), {k: _make(v, generator) for k, v in self.kwargs.items()}

    def expected(self, args: tuple, kwargs: dict[str, Any]) -> list[torch.Tensor]:
        """torch's own results on the CPU, lists flattened."""
        plain = [a.value if isinstance(a, Number) else a for a in args]
        function = self.reference or self.overload
        if self.reference is None and any(isinstance(a, Number) for a in args):
            function = function.overloadpacket  # chooses the overload that wraps the number
        result = function(*plain, **kwargs)
        return list(flatten(result if isinstance(result, (tuple, list)) else (result,)))


def flatten(results: Iterable) -> Iterable[torch.Tensor]:
    """The tensors of nested results; None is left out."""
    for result in results:
        if isinstance(result, torch.Tensor):
            yield result
        elif isinstance(result, (tuple, list)):
            yield from flatten(result)


def _make(argument: Any, generator: torch.Generator) -> Any:
    if isinstance(argument, Tensor):
        return argument.make(generator)
    if isinstance(argument, (list, tuple)):
        return type(argument)(_make(a, generator) for a in argument)
    return argument


def _text(argument: Any) -> str:
    if isinstance(argument, Tensor):
        name = str(argument.dtype).removeprefix("torch.")
        data = f" from {argument.low} to {argument.high}" if argument.low is not None else ""
        data += f" x {argument.scale}" if argument.scale != 1 else ""
        data += f" = {argument.values}" if argument.values is not None else ""
        return f"{name}{list(argument.shape)}{'*' if argument.special else ''}{data}"
    if isinstance(argument, Number):
        return f"number {argument.value}"
    if isinstance(argument, (list, tuple)):
        return f"[{', '.join(map(_text, argument))}]"
    return str(argument)


def grid(op: str, dtypes: Sequence[torch.dtype], shapes: Sequence[tuple], *args: Any, tolerance: Tolerance = EXACT,
         count: int = 1, data: dict[str, Any] | None = None, **kwargs: Any) -> list[Case]:  # fmt: skip
    """Cases of an operator with `count` tensors of one shape, or one shape each: every dtype, the first also in every shape."""
    cases = []
    for number, (dtype, shape) in enumerate(itertools.product(dtypes, shapes)):
        if number >= len(shapes) and shape is not shapes[-1]:
            continue
        each = shape if shape and isinstance(shape[0], tuple) else (shape,) * count
        special = dtype.is_floating_point and not (data or {}).keys() & {"low", "values"}
        options = {"special": special, **(data or {})}
        tensors = tuple(Tensor(dtype, s, **options) for s in each)
        cases.append(Case(op, (*tensors, *args), dict(kwargs), tolerance))
    return cases
