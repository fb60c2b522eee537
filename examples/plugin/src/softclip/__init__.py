"""`softclip(x, limit)`: a smooth clip to (-limit, limit), for every device and with a gradient."""

from __future__ import annotations

import torch


@torch.library.custom_op("softclip::softclip", mutates_args=())
def softclip(x: torch.Tensor, limit: float) -> torch.Tensor:
    """limit * tanh(x / limit), element by element; any floating-point dtype."""
    return limit * torch.tanh(x / limit)


@softclip.register_fake
def _(x: torch.Tensor, limit: float) -> torch.Tensor:
    return torch.empty_like(x)


def _setup_context(ctx, inputs, output) -> None:
    _, ctx.limit = inputs
    ctx.save_for_backward(output)


def _backward(context, gradient: torch.Tensor):
    (output,) = context.saved_tensors
    return gradient * (1 - (output / context.limit) ** 2), None


softclip.register_autograd(_backward, setup_context=_setup_context)
