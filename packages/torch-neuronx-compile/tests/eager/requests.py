"""Requests for calls of an operator, made as the device makes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from torch_neuronx._op_compiler import LaunchScalar, OpRequest, TensorSpec
from torch_neuronx_compile.lowering import functional
from torch_neuronx_compile.lowering.registry import schema


class Call:
    """One call: the request, and the tensors and numbers of its launch.

    args and kwargs: CPU tensors stand for device tensors; wrapped numbers are given as plain numbers where the schema has a tensor.
    outputs: what the operator returns (meta or CPU tensors), `aliases` the input that each of them overwrites.
    """

    def __init__(self, op: str, args: Sequence[Any], kwargs: dict[str, Any] | None = None, *, outputs: Sequence[torch.Tensor],
                 aliases: Sequence[int | None] | None = None):  # fmt: skip
        self.inputs: list[torch.Tensor] = []
        self.scalars: list[int | float] = []
        found = functional(op)
        assert found is not None, f"{op} has no lowering"
        signature = [a for a in schema(op).arguments if not a.is_out]
        values = list(args)
        for argument in signature[len(args) :]:
            given = (kwargs or {}).get(argument.name, argument.default_value if argument.has_default_value() else None)
            values.append(given)
        converted = []
        for position, (value, argument) in enumerate(zip(values, signature, strict=True)):
            if isinstance(value, int) and not isinstance(value, bool) and str(argument.type) == "float":
                value = float(value)
            converted.append(self.argument(value, position in found.operands, "Tensor" in str(argument.type)))
        if found.row.random:
            self.scalars += [1234, 5]
        specs = []
        for number, output in enumerate(outputs):
            alias = aliases[number] if aliases else None
            specs.append(TensorSpec(output.dtype, tuple(output.shape), output.stride(), None, None, False, alias))
        slots: list[int] = []
        for tensor in (*self.inputs, *outputs):
            slots += [*tensor.shape, *tensor.stride()]
        self.outputs = list(outputs)
        self.request = OpRequest(op, tuple(converted), tuple(specs), tuple(slots))

    def argument(self, value: Any, operand: bool, tensor: bool) -> Any:
        if isinstance(value, torch.Tensor):
            self.inputs.append(value)
            return TensorSpec(value.dtype, tuple(value.shape), value.stride(), len(self.inputs) - 1, None, False, None)
        if isinstance(value, (list, tuple)):
            return [self.argument(item, operand, tensor) for item in value]
        if isinstance(value, (bool, int, float)) and (operand or tensor):
            self.scalars.append(value)
            position = len(self.scalars) - 1
            if operand:
                return LaunchScalar(position, type(value))
            dtype = {bool: torch.bool, int: torch.int64, float: torch.float64}[type(value)]
            return TensorSpec(dtype, (), (), None, position, True, None)
        return value
