"""The eager rows: each makes its inputs on a device and returns the call to be timed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F

Call = Callable[[], object]
Row = Callable[[str], Call]


def filled(device: str, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Normal numbers, the same on every device."""
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(*shape, generator=generator).to(dtype).to(device)


def indices(device: str, bound: int, *shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(bound)
    return torch.randint(bound, shape, generator=generator).to(device)


def add_small(device: str) -> Call:
    a, b = filled(device, 16, 16), filled(device, 16, 16)
    return lambda: a + b


def mul(device: str) -> Call:
    a, b = filled(device, 1 << 22), filled(device, 1 << 22)
    return lambda: a * b


def gelu(device: str) -> Call:
    a = filled(device, 1 << 22)
    return lambda: F.gelu(a)


def softmax(device: str) -> Call:
    a = filled(device, 4096, 1024)
    return lambda: torch.softmax(a, -1)


def layer_norm(device: str) -> Call:
    a, weight, bias = filled(device, 4096, 1024), filled(device, 1024), filled(device, 1024)
    return lambda: F.layer_norm(a, (1024,), weight, bias)


def sum_rows(device: str) -> Call:
    a = filled(device, 4096, 1024)
    return lambda: a.sum(0)


def cat(device: str) -> Call:
    a, b = filled(device, 1 << 21), filled(device, 1 << 21)
    return lambda: torch.cat([a, b])


def index_select(device: str) -> Call:
    a, index = filled(device, 8192, 512), indices(device, 8192, 8192)
    return lambda: a.index_select(0, index)


def embedding(device: str) -> Call:
    index, weight = indices(device, 32000, 64, 128), filled(device, 32000, 512)
    return lambda: F.embedding(index, weight)


def mm(device: str, dtype: torch.dtype = torch.float32) -> Call:
    a, b = filled(device, 1024, 1024, dtype=dtype), filled(device, 1024, 1024, dtype=dtype)
    return lambda: a @ b


def mm_bf16(device: str) -> Call:
    return mm(device, torch.bfloat16)


def bmm(device: str) -> Call:
    a, b = filled(device, 32, 256, 256), filled(device, 32, 256, 256)
    return lambda: torch.bmm(a, b)


def conv2d(device: str) -> Call:
    a, weight = filled(device, 8, 64, 32, 32), filled(device, 64, 64, 3, 3)
    return lambda: F.conv2d(a, weight, padding=1)


def sdpa(device: str) -> Call:
    q, k, v = (filled(device, 4, 8, 512, 64) for _ in range(3))
    return lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True)


SMALL: dict[str, Row] = {"add 16x16": add_small}
LARGE: dict[str, Row] = {
    "x*y 4M": mul,
    "gelu 4M": gelu,
    "softmax 4096x1024": softmax,
    "layer_norm 4096x1024": layer_norm,
    "sum(0) 4096x1024": sum_rows,
    "cat 2x2M": cat,
    "index_select 8192 of 8192x512": index_select,
    "embedding 64x128 of 32000x512": embedding,
    "mm 1024 fp32": mm,
    "mm 1024 bf16": mm_bf16,
    "bmm 32x256": bmm,
    "conv2d 8x64x32x32 3x3": conv2d,
    "causal SDPA 4x8x512x64": sdpa,
}

# Ops whose first call is timed one by one: a miss compiles a program of one op.
MISSES = (
    "exp",
    "log",
    "sin",
    "cos",
    "tanh",
    "sigmoid",
    "sqrt",
    "rsqrt",
    "abs",
    "neg",
    "floor",
    "reciprocal",
    "erf",
    "relu",
)


def misses(device: str) -> list[tuple[str, Call]]:
    """(name, first call) of programs that nothing else in this process has compiled."""
    made = []
    for dtype in (torch.float32, torch.bfloat16):
        x = filled(device, 64, 64, dtype=dtype).abs_().add_(1)
        made += [(f"{name} {dtype}", partial(getattr(torch, name), x)) for name in MISSES]
    return made
