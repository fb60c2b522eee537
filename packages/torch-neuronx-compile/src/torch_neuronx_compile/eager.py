"""One operator's call -> StableHLO -> program. Imported only when a program has to be made."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch

import torch_neuronx_compile.stablehlo as hlo
from torch_neuronx._op_compiler import LaunchScalar, OpRequest, OpTraits, TensorSpec
from torch_neuronx_compile.cache import fingerprint, guards
from torch_neuronx_compile.cache.store import Store
from torch_neuronx_compile.dim import ShapeEnv, Size, hint
from torch_neuronx_compile.lowering import HLO_DTYPE, Functional, Unsupported, functional
from torch_neuronx_compile.neff import compile_to_neff
from torch_neuronx_compile.op_compiler import is_contiguous
from torch_neuronx_compile.passes.errors import CompileError
from torch_neuronx_compile.passes.module import Module
from torch_neuronx_compile.stablehlo.value import Parameter, TensorType, Value


class OutputMismatch(AssertionError):
    """A lowering's result differs from what torch says the operator returns: an internal error."""


class _NoType(Exception):
    """A tensor's dtype has no element type in programs."""


SCALAR_TYPES = {bool: "i1", int: "i64", float: "f64"}


def traits(op: str) -> tuple[OpTraits | None, bool]:
    """Traits of an operator, and whether its row is one of this package's own."""
    found = functional(op)
    if found is None:
        return None, True
    function = found.row.function
    while isinstance(function, partial):
        function = function.func
    ours = function.__module__.startswith("torch_neuronx_compile.")
    return OpTraits(operands=found.operands, random=found.row.random, sizing=found.row.sizing), ours


def build(request: OpRequest, key: str, shelf: Store) -> bytes | str:
    """Make the program of a request and store it; why the arguments are not supported, stored as well, when they are not."""
    env = ShapeEnv()
    try:
        neff = compile_to_neff(module_of(request, env))
    except (Unsupported, CompileError, _NoType) as error:
        shelf.put_refusal(key, guards.encode(env.guards), str(error))
        return str(error)
    shelf.put(key, guards.encode(env.guards), fingerprint.key("program", neff), neff)
    return neff


class _Request:
    """The arguments of a request as values."""

    def __init__(self, env: ShapeEnv):
        self.env = env
        self.inputs: dict[int, tuple[Parameter, tuple[Size, ...] | None]] = {}
        self.scalars: dict[int, Parameter] = {}
        self.slot = 0

    def argument(self, value: Any) -> Any:
        if isinstance(value, TensorSpec):
            return self.host(value) if value.buffer is None else self.tensor(value)
        if isinstance(value, LaunchScalar):
            return self.scalar(value.scalar, SCALAR_TYPES[value.type], wrapped=True)
        if isinstance(value, (list, tuple)):
            return [self.argument(item) for item in value]
        return value

    def scalar(self, position: int, dtype: str, *, wrapped: bool) -> Parameter:
        parameter = Parameter(SCALAR_BASE + position, TensorType((), dtype), "scalar", wrapped=wrapped)
        self.scalars[position] = parameter
        return parameter

    def host(self, spec: TensorSpec) -> Value:
        """A 0-d CPU tensor, passed by value."""
        dtype = element_type(spec.dtype)
        assert spec.scalar is not None
        launch = "f64" if hlo.kind(dtype) == "f" else "i1" if dtype == "i1" else "i64"
        return hlo.convert(self.scalar(spec.scalar, launch, wrapped=spec.wrapped), dtype)

    def tensor(self, spec: TensorSpec) -> Parameter:
        """An input; its slots follow those of the inputs before it."""
        assert spec.buffer == len(self.inputs), "inputs are numbered in schema order"
        shape, strides = self.layout(spec)
        parameter = Parameter(spec.buffer, TensorType(shape, element_type(spec.dtype)), wrapped=spec.wrapped)
        self.inputs[spec.buffer] = parameter, strides
        return parameter

    def layout(self, spec: TensorSpec) -> tuple[tuple[Size, ...], tuple[Size, ...] | None]:
        """Sizes and strides, as far as the class does not fix them, as symbols of the next slots."""
        rank = len(spec.shape)
        first = self.slot
        self.slot += 2 * rank
        shape = tuple(
            size if size < 2 else self.env.symbol(f"s{first + d}", size, source=first + d)
            for d, size in enumerate(spec.shape)
        )
        return shape, self.strides(spec, shape, first + rank)

    def strides(self, spec: TensorSpec, shape: tuple[Size, ...], slot: int) -> tuple[Size, ...] | None:
        """None for a contiguous tensor."""
        if is_contiguous(spec):
            return None
        return tuple(
            0 if stride == 0 or size == 1 else self.env.symbol(f"t{slot + d}", stride, minimum=1, source=slot + d)
            for d, (size, stride) in enumerate(zip(spec.shape, spec.strides, strict=True))
        )


SCALAR_BASE = 1 << 20  # numbers of scalar parameters, after all tensors


def element_type(dtype: torch.dtype) -> str:
    found = HLO_DTYPE.get(dtype)
    if found is None:
        raise _NoType(f"programs have no elements of {dtype}")
    return found


def module_of(request: OpRequest, env: ShapeEnv) -> Module:
    """The module of a request. Symbols and guards go to `env`. Raises Unsupported when the operator has no row."""
    found = functional(request.op)
    if found is None:
        raise Unsupported(f"{request.op} has no lowering")
    arguments = _Request(env)
    out_dtype = request.outputs[0].dtype if request.outputs else None
    args = found.arguments([arguments.argument(value) for value in request.args], out_dtype)
    first_output = arguments.slot
    seed = offset = None
    if found.row.random:
        position = len(arguments.scalars)
        seed = arguments.scalar(position, "i64", wrapped=False)
        offset = arguments.scalar(position + 1, "i64", wrapped=False)
    types: Sequence[TensorType] = ()
    if found.row.outputs:
        types = [TensorType(arguments.layout(spec)[0], element_type(spec.dtype)) for spec in request.outputs]
    results = found.row.lower(args, outputs=types, seed=seed, offset=offset)
    results = written(found, request, results)
    slot = first_output
    strides: list[tuple[Size, ...] | None] = []
    for value, spec in zip(results, request.outputs, strict=True):
        if spec.alias is not None:
            strides.append(arguments.inputs[spec.alias][1])
        else:
            strides.append(arguments.strides(spec, value.shape, slot + len(spec.shape)))
        slot += 2 * len(spec.shape)
    inputs = [arguments.inputs[n] for n in range(len(arguments.inputs))]
    scalars = [arguments.scalars[n] for n in range(len(arguments.scalars))]
    return Module(
        request.op, [*(p for p, _ in inputs), *scalars], [s for _, s in inputs], results, strides,
        [spec.alias for spec in request.outputs], env, slot,
    )  # fmt: skip


def written(found: Functional, request: OpRequest, results: Sequence[Value]) -> list[Value]:
    """The row's results as the called form wants them: each output of its own dtype, and of the size that torch says."""
    specs = request.outputs
    if len(results) != len(specs):
        raise OutputMismatch(f"{request.op}: the lowering gives {len(results)} results, torch {len(specs)}")
    values = []
    for number, (value, spec) in enumerate(zip(results, specs, strict=True)):
        wanted = element_type(spec.dtype)
        if value.dtype != wanted and (found.mutated or found.out):
            if hlo.kind(value.dtype) == "f" and hlo.kind(wanted) != "f":
                raise Unsupported(
                    f"{request.op}: a result of {value.dtype} cannot be written into a tensor of {spec.dtype}"
                )
            value = hlo.convert(value, wanted)
        if value.dtype != wanted or tuple(map(hint, value.shape)) != spec.shape:
            raise OutputMismatch(
                f"{request.op}: the lowering's result {number} has sizes {tuple(map(hint, value.shape))} and type {value.dtype}; "
                f"torch says {spec.shape} and {spec.dtype}"
            )
        values.append(value)
    return values
