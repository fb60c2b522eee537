"""torch's database of modules on the device: outputs and gradients equal the CPU's."""

from __future__ import annotations

import warnings

import torch
from torch.nn.modules.lazy import LazyModuleMixin
from torch.testing._internal.common_device_type import instantiate_device_type_tests
from torch.testing._internal.common_modules import module_db, modules
from torch.testing._internal.common_utils import TestCase
from torch.utils._pytree import tree_flatten

from .samples import SEED, Parts, check, moved


def tensors(value: object) -> list[torch.Tensor]:
    return [x for x in tree_flatten(value)[0] if isinstance(x, torch.Tensor)]


def outputs_and_gradients(sample: Parts, seed: int) -> list[torch.Tensor | None]:
    module, args, kwargs = sample
    torch.manual_seed(seed)
    outputs = [x for x in tensors(module(*args, **kwargs)) if x.layout == torch.strided]
    leaves = [x for x in [*tensors((args, kwargs)), *module.parameters()] if x.requires_grad]
    roots = [x for x in outputs if x.requires_grad]
    gradients = torch.autograd.grad([x.sum() for x in roots], leaves, allow_unused=True) if roots and leaves else ()
    return [*outputs, *gradients]


class TestModules(TestCase):
    def setUp(self):
        super().setUp()
        warnings.simplefilter("ignore")

    @modules(module_db, allowed_dtypes=(torch.float32,))
    def test_outputs_and_gradients(self, device, dtype, module_info, training):
        samples = module_info.module_inputs_func(
            module_info, device="cpu", dtype=dtype, requires_grad=True, training=training
        )
        for sample in samples:
            if sample.forward_input is None:
                continue
            torch.manual_seed(SEED)
            made, given = sample.constructor_input, sample.forward_input
            module = module_info.module_cls(*made.args, **made.kwargs).to(dtype).train(training)
            if isinstance(module, LazyModuleMixin):
                module(*moved(given.args, "cpu"), **moved(given.kwargs, "cpu"))  # makes the parameters
            check(self, outputs_and_gradients, (module, given.args, given.kwargs), device)


instantiate_device_type_tests(TestModules, globals(), only_for="privateuse1")
