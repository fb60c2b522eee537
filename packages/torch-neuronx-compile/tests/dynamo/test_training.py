"""Training steps through compiled modules."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

F = torch.nn.functional


class Block(nn.Module):
    """A small transformer block with a buffer that every call changes."""

    def __init__(self, width: int = 16, heads: int = 2):
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        batch, length, width = x.shape
        q, k, v = self.qkv(self.first(x)).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        scores = (q @ k.transpose(-1, -2)) * (width // self.heads) ** -0.5
        causal = torch.ones(length, length, dtype=torch.bool, device=x.device).tril()
        mixed = scores.masked_fill(~causal, float("-inf")).softmax(-1) @ v
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.second(x))))


def steps(module: nn.Module, function, data: torch.Tensor, count: int, **options) -> list[float]:
    """Losses of a few AdamW steps."""
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-2, **options)
    losses = []
    for _ in range(count):
        optimizer.zero_grad()
        loss = (function(data) - data.flip(0)).pow(2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_gradients_of_a_compiled_module():
    host = Block()
    device = copy.deepcopy(host).to("neuron")
    x = torch.randn(2, 6, 16)
    inputs = x.clone().requires_grad_(), x.to("neuron").requires_grad_()
    host(inputs[0]).square().sum().backward()
    torch.compile(device, backend="neuron", fullgraph=True)(inputs[1]).square().sum().backward()
    torch.testing.assert_close(inputs[1].grad.cpu(), inputs[0].grad, rtol=1e-4, atol=1e-4)
    for (name, p), q in zip(host.named_parameters(), device.parameters(), strict=True):
        torch.testing.assert_close(
            q.grad.cpu(), p.grad, rtol=1e-4, atol=1e-4, msg=lambda text, name=name: f"{name}: {text}"
        )
    assert device.calls.item() == 1


def test_training_learns_what_the_cpu_learns():
    host = Block()
    device = copy.deepcopy(host).to("neuron")
    data = torch.randn(3, 5, 16)
    want = steps(host, host, data, 5)
    got = steps(device, torch.compile(device, backend="neuron"), data.to("neuron"), 5)
    torch.testing.assert_close(torch.tensor(got), torch.tensor(want), rtol=1e-3, atol=1e-4)
    assert got[-1] < got[0] and device.calls.item() == 5


def test_a_compiled_optimizer_step_updates_its_state():
    host = nn.Linear(6, 3)
    device = copy.deepcopy(host).to("neuron")
    results = []
    for module, where in ((host, "cpu"), (device, "neuron")):
        optimizer = torch.optim.AdamW(module.parameters(), lr=1e-2, foreach=True, capturable=where != "cpu")
        step = optimizer.step if where == "cpu" else torch.compile(optimizer.step, backend="neuron")
        x = torch.arange(12.0).view(2, 6).to(where)
        for _ in range(3):
            optimizer.zero_grad()
            module(x).square().sum().backward()
            step()
        results.append([p.detach().cpu() for p in module.parameters()])
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(b, a, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_reduced_precision_forward_and_backward(dtype: torch.dtype):
    host = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 4)).to(dtype)
    device = copy.deepcopy(host).to("neuron")
    x = torch.randn(8, 16).to(dtype)
    host(x).float().square().sum().backward()
    torch.compile(device, backend="neuron", fullgraph=True)(x.to("neuron")).float().square().sum().backward()
    for p, q in zip(host.parameters(), device.parameters(), strict=True):
        torch.testing.assert_close(
            q.grad.cpu().float(), p.grad.float(), rtol=5e-2, atol=5e-2 * p.grad.float().abs().max().item()
        )


@pytest.mark.parametrize("seed", [3, -1])
def test_a_checkpointed_dropout_is_recomputed_with_the_numbers_of_the_forward_pass(seed: int):
    def block(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.dropout(torch.nn.functional.dropout(x * 2, 0.5) + 1, 0.3)

    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)

    results = []
    for call in (function, torch.compile(function, backend="neuron")):
        x = torch.ones(256, device="neuron", requires_grad=True)
        torch.neuron.manual_seed(seed)
        y = call(x)
        torch.rand(5, device="neuron")  # between forward and backward
        y.sum().backward()
        results.append((y.detach().cpu(), x.grad.cpu(), torch.rand(3, device="neuron").cpu()))
    for eager, compiled in zip(*results, strict=True):
        assert torch.equal(eager, compiled)
