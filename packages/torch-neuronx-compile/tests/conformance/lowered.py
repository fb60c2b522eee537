"""A case as StableHLO: parameters for its tensors and launch scalars, and the results of its row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from torch_neuronx_compile.dim import ShapeEnv, Size
from torch_neuronx_compile.lowering import HLO_DTYPE, functional
from torch_neuronx_compile.lowering.registry import schema
from torch_neuronx_compile.stablehlo import Parameter, TensorType, Value

from .case import Case, Number
from .philox import OFFSET, SEED


@dataclass
class Lowered:
    """inputs and parameters correspond; results are those of the functional row, converted by nobody."""

    parameters: list[Parameter]
    inputs: list[torch.Tensor]
    results: list[Value]


def lower(case: Case, args: tuple, kwargs: dict[str, Any], expected: list[torch.Tensor], first: int = 0,
          env: ShapeEnv | None = None) -> Lowered:  # fmt: skip
    """Lower a case, with parameters numbered from `first`; with an environment, every size from 2 on is a symbol of it."""
    mapped = functional(case.op)
    assert mapped is not None, f"{case.op} has no row"
    parameters: list[Parameter] = []
    inputs: list[torch.Tensor] = []

    def shape_of(tensor: torch.Tensor) -> tuple[Size, ...]:
        if env is None:
            return tuple(tensor.shape)
        return tuple(s if s < 2 else env.symbol(f"s{len(env.symbols)}", s) for s in tensor.shape)

    def parameter(tensor: torch.Tensor, type: TensorType, role: str, wrapped: bool = False) -> Parameter:
        made = Parameter(first + len(parameters), type, role, wrapped=wrapped)
        parameters.append(made)
        inputs.append(tensor)
        return made

    def scalar(number: bool | int | float) -> Parameter:
        dtype = {bool: torch.bool, int: torch.int64, float: torch.float64}[type(number)]
        return parameter(torch.tensor(number, dtype=dtype), TensorType((), HLO_DTYPE[dtype]), "scalar", wrapped=True)

    def convert(argument: Any, operand: bool) -> Any:
        if isinstance(argument, torch.Tensor):
            return parameter(argument, TensorType(shape_of(argument), HLO_DTYPE[argument.dtype]), "tensor")
        if isinstance(argument, Number):
            return scalar(argument.value)
        if operand and isinstance(argument, (bool, int, float)):
            return scalar(argument)
        if isinstance(argument, (list, tuple)):
            return [convert(a, operand) for a in argument]
        return argument

    signature = [a for a in schema(case.op).arguments if not a.is_out]
    values = list(args)
    for argument in signature[len(args) :]:
        values.append(kwargs[argument.name] if argument.name in kwargs else argument.default_value)
    converted = [
        float(v) if isinstance(v, int) and str(a.type) == "float" else v for v, a in zip(values, signature, strict=True)
    ]
    converted = [convert(v, i in mapped.operands) for i, v in enumerate(converted)]
    seed = offset = None
    if mapped.row.random:
        seed, offset = (parameter(torch.tensor(n), TensorType((), "i64"), "scalar") for n in (SEED, OFFSET))
    outputs = [TensorType(shape_of(e), HLO_DTYPE[e.dtype]) for e in expected]
    results = mapped.row.lower(mapped.arguments(converted), outputs=outputs, seed=seed, offset=offset)
    return Lowered(parameters, inputs, results)
