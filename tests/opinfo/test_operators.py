"""torch's operator database (`op_db`) on the device, compared with the CPU.

TORCH_NEURONX_OPINFO_SAMPLES says how many samples of each operator and dtype run: a number, or "all".
"""

from __future__ import annotations

import warnings
from functools import partial

import torch
from torch.testing._internal.common_device_type import (
    OpDTypes,
    PrivateUse1TestBase,
    instantiate_device_type_tests,
    ops,
)
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_utils import TestCase
from torch.testing._internal.opinfo.core import OpInfo
from torch.utils._pytree import tree_flatten, tree_map_only

import torch_neuronx

from .exceptions import Table
from .samples import Parts, call, check, first, parts

DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.int32, torch.bool, torch.complex64)
DIFFERENTIABLE = (torch.float32, torch.bfloat16, torch.complex64)
TABLE = Table.load()
PrivateUse1TestBase.set_test_configs(op_overrides=TABLE.overrides(op_db))


def results(got: object) -> list[torch.Tensor]:
    """Differentiable tensors of a result."""
    return [x for x in tree_flatten(got)[0] if isinstance(x, torch.Tensor) and x.requires_grad]


def gradients(op: OpInfo, sample: Parts, seed: int) -> list[torch.Tensor | None]:
    """Gradients of sum(result * (1 + index % 3)) in all leaves."""
    outputs = results(call(op, sample, seed))
    leaves = [x for x in tree_flatten(sample)[0] if isinstance(x, torch.Tensor) and x.requires_grad]
    if not outputs or not leaves:
        return []
    weights = [(1 + torch.arange(x.numel()) % 3).view(x.shape).to(x.device, x.dtype) for x in outputs]
    return list(torch.autograd.grad(outputs, leaves, weights, allow_unused=True))


def in_place(op: OpInfo, sample: Parts, seed: int) -> torch.Tensor:
    """The argument that the operator has written."""
    call(op.inplace_variant, sample, seed)
    return sample[0]


def with_out(op: OpInfo, strided: bool, sample: Parts, seed: int) -> object:
    """What the operator writes into `out`: dense, or every other element of a larger tensor."""
    input, args, kwargs = sample

    def out_like(x: torch.Tensor) -> torch.Tensor:
        if not strided or x.dim() == 0:
            return torch.empty_like(x)
        return x.new_empty(*x.shape[:-1], 2 * x.shape[-1])[..., ::2]

    out = tree_map_only(torch.Tensor, out_like, call(op, sample, seed))
    call(op, (input, args, kwargs | {"out": out}), seed)
    return out


class TestOperators(TestCase):
    def setUp(self):
        super().setUp()
        warnings.simplefilter("ignore")

    @ops(op_db, allowed_dtypes=DTYPES)
    def test_values(self, device, dtype, op):
        torch_neuronx.clear_op_tracking()
        for sample in first(op.sample_inputs("cpu", dtype)):
            check(self, partial(call, op), parts(sample), device, undefined="empty" in op.name)
        left = sorted(torch_neuronx.get_fallback_ops())
        self.assertTrue(op.full_name in TABLE.fallback or not left, f"left to the CPU: {left}")

    @ops(op_db, allowed_dtypes=DIFFERENTIABLE)
    def test_gradients(self, device, dtype, op):
        if dtype not in op.supported_backward_dtypes("cpu"):
            self.skipTest("no gradient on the CPU")
        for sample in first(op.sample_inputs("cpu", dtype, requires_grad=True)):
            check(self, partial(gradients, op), parts(sample), device)

    @ops(op_db, dtypes=OpDTypes.any_one)
    def test_in_place(self, device, dtype, op):
        if op.inplace_variant is None:
            self.skipTest("no in-place form")
        for sample in first(op.sample_inputs("cpu", dtype)):
            if not sample.broadcasts_input:
                check(self, partial(in_place, op), parts(sample), device)

    @ops(op_db, dtypes=OpDTypes.any_one)
    def test_out(self, device, dtype, op):
        if not op.supports_out:
            self.skipTest("no out= form")
        for sample in first(op.sample_inputs("cpu", dtype)):
            for strided in (False, True):
                check(self, partial(with_out, op, strided), parts(sample), device, undefined="empty" in op.name)

    @ops(op_db, dtypes=OpDTypes.any_one)
    def test_noncontiguous(self, device, dtype, op):
        for sample in first(op.sample_inputs("cpu", dtype)):
            check(self, partial(call, op), parts(sample.noncontiguous()), device, undefined="empty" in op.name)

    @ops([op for op in op_db if op.error_inputs_func is not None], dtypes=OpDTypes.none)
    def test_error_inputs(self, device, op):
        for error in op.error_inputs(device):
            sample = error.sample_input
            with self.assertRaisesRegex(error.error_type, error.error_regex):
                op(sample.input, *sample.args, **sample.kwargs)


instantiate_device_type_tests(TestOperators, globals(), only_for="privateuse1")
