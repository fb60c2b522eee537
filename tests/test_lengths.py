"""Sequences of many lengths in eager mode: programs serve classes of calls, not shapes."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

import torch_neuronx

WIDTH, HEADS = 32, 4


class Attention(nn.Module):
    """One layer of causal self-attention with a residual; (batch, tokens, WIDTH) in and out."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, tokens, _ = x.shape
        q, k, v = (
            part.view(batch, tokens, HEADS, WIDTH // HEADS).transpose(1, 2)
            for part in self.qkv(self.norm(x)).split(WIDTH, -1)
        )
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.out(attended.transpose(1, 2).reshape(x.shape))


def programs() -> int:
    """Programs that this process asked for so far, whether they had to be made or were on disk."""
    stats = torch_neuronx._C._get_compilation_cache_stats()
    return stats["total_compilations"] + stats["persistent_hits"]


def test_500_lengths_need_the_programs_of_the_first_ten():
    torch.manual_seed(0)
    model = nn.Sequential(Attention(), Attention())
    on_device = nn.Sequential(Attention(), Attention())
    on_device.load_state_dict(model.state_dict())
    on_device.to("neuron")
    generator = torch.Generator().manual_seed(0)
    lengths = (2 + torch.randperm(500, generator=generator)).tolist()
    torch_neuronx.clear_op_tracking()
    after_ten = 0
    with torch.no_grad():
        for number, length in enumerate(lengths):
            x = torch.randn(2, length, WIDTH, generator=generator)
            y = on_device(x.to("neuron"))
            if number % 50 == 0:
                torch.testing.assert_close(y.cpu(), model(x))
            if number == 9:
                after_ten = programs()
    assert programs() == after_ten
    assert torch_neuronx.get_fallback_ops() == []
