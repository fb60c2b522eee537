"""The plugin's operator on the device: found by entry point, native in eager and compiled code, with its gradient."""

from __future__ import annotations

import pytest
import torch
from softclip import softclip

import torch_neuronx


@pytest.fixture(autouse=True)
def fresh_tracking():
    torch_neuronx.clear_op_tracking()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", [(5, 7), (0, 3), ()])
def test_eager_equals_cpu(dtype: torch.dtype, shape: tuple[int, ...]):
    x = (3 * torch.randn(shape)).to(dtype)
    y = softclip(x.to("neuron"), 2.0)
    assert y.device.type == "neuron" and y.dtype == dtype
    torch.testing.assert_close(y.cpu(), (2.0 * torch.tanh(x.float() / 2.0)).to(dtype))
    assert torch_neuronx.get_fallback_ops() == []


def test_compiled_equals_eager_with_gradient():
    def loss(x: torch.Tensor) -> torch.Tensor:
        return (softclip(x, 1.5) * 3).sum()

    x = torch.randn(16, 16)
    gradients = []
    for function in (loss, torch.compile(loss, backend="neuron", fullgraph=True)):
        leaf = x.to("neuron").requires_grad_()
        function(leaf).backward()
        gradients.append(leaf.grad.cpu())
    assert torch.equal(*gradients)
    torch.testing.assert_close(gradients[0], 3 * (1 - torch.tanh(x / 1.5) ** 2))
    assert torch_neuronx.get_fallback_ops() == []
