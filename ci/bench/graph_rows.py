"""The compiled rows: each returns the call to be timed, with `compiler(function)` around what is compiled."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from eager_rows import Call, filled
from torch import nn

Compiler = Callable[[Callable], Callable]
Row = Callable[[str, Compiler], Call]


def gelu_chain(device: str, compiler: Compiler, approximate: str) -> Call:
    x, r = filled(device, 4096, 1024), filled(device, 4096, 1024)
    w, b = filled(device, 1024), filled(device, 1024)
    step = compiler(lambda x, w, b, r: F.gelu(x * w + b, approximate=approximate) + r)
    return lambda: step(x, w, b, r)


def gelu_erf(device: str, compiler: Compiler) -> Call:
    return gelu_chain(device, compiler, "none")


def gelu_tanh(device: str, compiler: Compiler) -> Call:
    return gelu_chain(device, compiler, "tanh")


def softmax(device: str, compiler: Compiler) -> Call:
    x = filled(device, 4096, 1024)
    step = compiler(lambda x: torch.softmax(x, -1))
    return lambda: step(x)


def layer_norm(device: str, compiler: Compiler) -> Call:
    x, w, b = filled(device, 4096, 1024), filled(device, 1024), filled(device, 1024)
    step = compiler(lambda x, w, b: F.layer_norm(x, (1024,), w, b))
    return lambda: step(x, w, b)


def mm(device: str, compiler: Compiler, dtype: torch.dtype = torch.float32) -> Call:
    a, b = filled(device, 1024, 1024, dtype=dtype), filled(device, 1024, 1024, dtype=dtype)
    step = compiler(lambda a, b: a @ b)
    return lambda: step(a, b)


def mm_bf16(device: str, compiler: Compiler) -> Call:
    return mm(device, compiler, torch.bfloat16)


def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Attention written out: (batch, heads, tokens, width) each."""
    return torch.softmax(q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5, -1) @ v


def attention(device: str, compiler: Compiler) -> Call:
    q, k, v = (filled(device, 4, 8, 512, 64) for _ in range(3))
    step = compiler(attend)
    return lambda: step(q, k, v)


def attention_train(device: str, compiler: Compiler) -> Call:
    q, k, v = (filled(device, 4, 8, 512, 64).requires_grad_() for _ in range(3))
    gradient = filled(device, 4, 8, 512, 64)
    step = compiler(attend)

    def call() -> None:
        for tensor in (q, k, v):
            tensor.grad = None
        step(q, k, v).backward(gradient)

    return call


class GptBlock(nn.Module):
    """Pre-norm block of width 512 with 8 heads; (1, 512, 512) in and out."""

    def __init__(self, width: int = 512, heads: int = 8) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, tokens, width = x.shape
        q, k, v = (
            part.view(batch, tokens, self.heads, width // self.heads).transpose(1, 2)
            for part in self.qkv(self.norm1(x)).split(width, -1)
        )
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(x.shape)
        x = x + self.out(attended)
        return x + self.mlp(self.norm2(x))


class ConvStack(nn.Module):
    """Stem and seven 3x3 convolutions of 64 channels on 32x32 images, each with batch norm and ReLU."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for channels in (3, *[64] * 7):
            layers += [nn.Conv2d(channels, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU()]
        self.layers = nn.Sequential(*layers)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


def training(
    device: str, compiler: Compiler, make: Callable[[], nn.Module], shape: tuple[int, ...], step: bool
) -> Call:
    """Forward, backward and, if `step`, AdamW of a module; the module and the optimizer's step are compiled."""
    torch.manual_seed(0)
    module = make().to(device)
    x = filled(device, *shape)
    forward = compiler(lambda x: module(x).square().mean())
    optimizer = torch.optim.AdamW(module.parameters())
    update = compiler(optimizer.step) if step else None

    def call() -> None:
        optimizer.zero_grad()
        forward(x).backward()
        if update:
            update()

    return call


def gpt_train(device: str, compiler: Compiler) -> Call:
    return training(device, compiler, GptBlock, (1, 512, 512), step=True)


def conv_train(device: str, compiler: Compiler) -> Call:
    return training(device, compiler, ConvStack, (8, 3, 32, 32), step=False)


GRAPHS: dict[str, Row] = {
    "gelu-erf chain 4M": gelu_erf,
    "gelu-tanh chain 4M": gelu_tanh,
    "softmax 4096x1024": softmax,
    "layer_norm 4096x1024": layer_norm,
    "mm 1024 fp32": mm,
    "mm 1024 bf16": mm_bf16,
    "attention fwd": attention,
    "attention fwd+bwd": attention_train,
    "GPT block fwd+bwd+AdamW": gpt_train,
    "conv stack fwd+bwd": conv_train,
}
FIRST_CALLS = ("gelu-erf chain 4M", "GPT block fwd+bwd+AdamW")
