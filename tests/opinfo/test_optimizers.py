"""torch's database of optimizers on the device: every configuration steps as on the CPU."""

from __future__ import annotations

import copy
import warnings

import torch
from torch.testing._internal.common_device_type import instantiate_device_type_tests
from torch.testing._internal.common_optimizers import (
    _get_optim_inputs_including_global_cliquey_kwargs,
    optim_db,
    optims,
)
from torch.testing._internal.common_utils import TestCase

from .samples import SEED, moved

STEPS = 3
DIFFERENTIABLE = ("differentiable",)  # asks for parameters that are no leaves; its operators are those of foreach=False


def train(optimizer_class: type, kwargs: dict, device: str) -> list[torch.Tensor]:
    """Parameters after a few steps of a regression."""
    generator = torch.Generator().manual_seed(SEED)
    weight, bias, x, y = (
        torch.randn(shape, generator=generator).to(device) for shape in ((4, 3), (4,), (8, 3), (8, 4))
    )
    if optimizer_class is torch.optim.Muon:  # takes matrices only
        parameters = [weight.requires_grad_()]
    else:
        parameters = [weight.requires_grad_(), bias.requires_grad_()]
    optimizer = optimizer_class(parameters, **moved(copy.deepcopy(kwargs), device))

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = (x @ weight.t() + bias - y).square().mean() * (-1 if kwargs.get("maximize") else 1)
        loss.backward()
        return loss

    for _ in range(STEPS):
        optimizer.step(closure)
    return [p.detach() for p in parameters]


class TestOptimizers(TestCase):
    def setUp(self):
        super().setUp()
        warnings.simplefilter("ignore")

    @optims(optim_db, dtypes=[torch.float32])
    def test_steps(self, device, dtype, optim_info):
        if optim_info.only_supports_sparse_grads:  # which the device refuses to make
            with self.assertRaisesRegex(RuntimeError, "strided tensors"):
                torch.eye(2, device=device).to_sparse()
            return
        for config in _get_optim_inputs_including_global_cliquey_kwargs(device, dtype, optim_info, skip=DIFFERENTIABLE):
            host = {k: v for k, v in config.kwargs.items() if k != "capturable"}
            expected = train(optim_info.optim_cls, host, "cpu")
            got = train(optim_info.optim_cls, config.kwargs, device)
            for a, b in zip(got, expected, strict=True):
                self.assertEqual(a.device.type, "neuron")
                self.assertEqual(a.cpu(), b, msg=f"{config.desc}: {config.kwargs}")


instantiate_device_type_tests(TestOptimizers, globals(), only_for="privateuse1")
