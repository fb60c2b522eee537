"""Compiling modules and running their programs on host memory."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from libneuron_runtime import Model, neff
from torch_neuronx_compile.lowering import HLO_DTYPE, TORCH_DTYPE
from torch_neuronx_compile.passes.module import Module
from torch_neuronx_compile.passes.pipeline import Compiled, compile_module
from torch_neuronx_compile.stablehlo import Parameter, TensorType, Value


def tensor(number: int, shape: Sequence[int], dtype: str = "f32") -> Parameter:
    """A tensor parameter."""
    return Parameter(number, TensorType(shape, dtype))


def like(number: int, value: torch.Tensor) -> Parameter:
    """A parameter for a tensor."""
    return Parameter(number, TensorType(value.shape, HLO_DTYPE[value.dtype]))


def compiled(parameters: Sequence[Parameter], results: Sequence[Value], **options) -> Compiled:
    """A module whose tensors are all contiguous, through the passes."""
    strides = options.pop("strides", [None] * sum(p.role == "tensor" for p in parameters))
    return compile_module(Module("test", parameters, strides, results, **options))


def opcodes(program: Compiled) -> list[str]:
    """Names of a program's instructions."""
    return [instruction.opcode for instruction in program.instructions]


def memory_of(value: torch.Tensor):
    """The tensor's elements, as the bytes of a writable buffer of at least one byte."""
    count = value.numel() * value.element_size()
    data = torch.empty(max(count, 1), dtype=torch.uint8)
    if count:
        data[:] = value.contiguous().reshape(-1).view(torch.uint8)
    return data.numpy()


def storage_of(value: torch.Tensor):
    """The memory of a strided tensor from its first element on."""
    base = torch.empty(0, dtype=value.dtype).set_(value.untyped_storage())[value.storage_offset() :]
    return memory_of(base)


def execute(program: bytes, inputs: Sequence, shapes: Sequence[tuple[Sequence[int], torch.dtype]],
            scalars: Sequence[int | float] = (), slots: Sequence[int] = ()) -> list[torch.Tensor]:  # fmt: skip
    """Results of a program whose outputs are contiguous. inputs: tensors, or buffers of bytes."""
    outputs = [memory_of(torch.zeros(tuple(shape), dtype=dtype)) for shape, dtype in shapes]
    buffers = [memory_of(x) if isinstance(x, torch.Tensor) else x for x in inputs]
    Model(neff.pack(program, name="test")).bind(list(slots)).run(buffers, outputs, list(scalars))
    return [from_memory(data, shape, dtype) for data, (shape, dtype) in zip(outputs, shapes, strict=True)]


def from_memory(data, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    """A contiguous tensor from the bytes of a buffer."""
    count = torch.empty(tuple(shape), dtype=dtype, device="meta").nbytes
    return (
        torch.from_numpy(data)[:count].view(dtype).reshape(tuple(shape))
        if count
        else torch.zeros(tuple(shape), dtype=dtype)
    )


def run(
    parameters: Sequence[Parameter], results: Sequence[Value], inputs: Sequence[torch.Tensor], **options
) -> list[torch.Tensor]:
    """Results of a module for contiguous inputs."""
    shapes = [(value.shape, TORCH_DTYPE[value.dtype]) for value in results]
    return execute(compiled(parameters, results, **options).program, inputs, shapes)
