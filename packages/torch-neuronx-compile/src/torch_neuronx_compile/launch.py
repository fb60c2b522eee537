"""A compiled graph: what torch.compile calls in place of the FX graph."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any

import torch

from torch_neuronx import _C
from torch_neuronx_compile.lowered_graph import Input, LoweredGraph, Result

_DTYPES = {
    "f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16, "f64": torch.float64, "i1": torch.bool,
    "ui8": torch.uint8, "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64,
}  # fmt: skip


_STATE = Struct("=QQ")  # of the generator, as torch.neuron.get_rng_state gives it: seed, offset


class CompiledGraph:
    """Callable with the boxed convention of AOTAutograd: takes a list of arguments, which it empties; returns a list.

    Loads its program at the first call, so that compiling needs no device. `constants`: tensors of the FX module.
    """

    def __init__(self, lowered: LoweredGraph, neff: bytes, constants: Sequence[torch.Tensor]):
        self._boxed_call = True  # of the instance: functools.wraps copies nothing of the class
        self.lowered = lowered
        self.neff = neff
        self.constants = list(constants)
        self._graph: Any = None
        self._on_device: list[torch.Tensor] = []
        self._total = sum(d.count for d in lowered.draws if d.state is None)
        self._plain = all(r.kind == "output" and r.view is None and not r.host for r in lowered.results) and [
            r.value for r in lowered.results
        ] == list(range(len(lowered.results)))

    def __call__(self, arguments: list[Any]) -> list[Any]:
        lowered = self.lowered
        outputs: list[torch.Tensor] = []
        numbers = self._random_numbers(arguments) if lowered.draws else []
        if lowered.specs:
            copied: list[tuple[torch.Tensor, torch.Tensor]] = []
            inputs = [self._input(source, arguments, copied) for source in lowered.inputs]
            graph = self._graph or self._load()
            outputs = graph(inputs, numbers)
            for original, copy in copied:
                original.copy_(copy)
            if self._plain:
                arguments.clear()
                return outputs
        results = [self._result(result, outputs, arguments, numbers) for result in lowered.results]
        arguments.clear()
        return results

    def _input(
        self, source: Input, arguments: list[Any], copied: list[tuple[torch.Tensor, torch.Tensor]]
    ) -> torch.Tensor:
        """One input of the launch. A tensor that lies elsewhere, or in another way than the program expects, is copied, and if the
        launch writes it, copied back.
        """
        if source.kind == "constant":
            return self._constants(arguments)[source.position]
        tensor = arguments[source.position]
        if source.kind == "storage":
            first, end = source.span
            tensor = tensor.as_strided((end - first,), (1,), tensor.storage_offset() + first)
        if tensor.device.type == "neuron" and tensor.stride() == source.strides:
            return tensor
        copy = torch.empty_strided(
            tensor.shape, source.strides, dtype=tensor.dtype, device=self._device(arguments)
        ).copy_(tensor)
        if source.written:
            copied.append((tensor, copy))
        return copy

    def _constants(self, arguments: list[Any]) -> list[torch.Tensor]:
        if not self._on_device:
            device = self._device(arguments)
            strides = {i.position: i.strides for i in self.lowered.inputs if i.kind == "constant"}
            self._on_device = [
                torch.empty_strided(c.shape, strides.get(n, c.stride()), dtype=c.dtype, device=device).copy_(c)
                for n, c in enumerate(self.constants)
            ]
        return self._on_device

    @staticmethod
    def _device(arguments: list[Any]) -> torch.device:
        """Where the graph runs: with its first argument on a neuron device, else on the current one."""
        for argument in arguments:
            if isinstance(argument, torch.Tensor) and argument.device.type == "neuron":
                return argument.device
        return torch.device("neuron", _C.current_device())

    def _load(self) -> Any:
        specs = [(shape, strides, _DTYPES[dtype]) for shape, strides, dtype in self.lowered.specs]
        self._graph = _C.load(self.neff).graph(specs)
        return self._graph

    def _random_numbers(self, arguments: list[Any]) -> list[int]:
        """(seed, offset) of each random operator, in program order."""
        seed, offset = _C.philox(self._device(arguments).index, self._total)
        scalars = []
        for draw in self.lowered.draws:
            if draw.state is not None:
                scalars += _STATE.unpack(bytes(arguments[draw.state].tolist()))
            else:
                scalars += (seed, offset)
                offset += draw.count
        return scalars

    def _result(self, result: Result, outputs: list[torch.Tensor], arguments: list[Any], numbers: list[int]) -> Any:
        if result.kind == "state":
            return torch.frombuffer(bytearray(_STATE.pack(*numbers[2 * result.value :][:2])), dtype=torch.uint8)
        if result.kind == "number":
            return result.value
        tensor = arguments[result.value] if result.kind == "argument" else outputs[result.value]
        if result.view is not None:
            sizes, strides, offset = result.view
            tensor = tensor.as_strided(sizes, strides, tensor.storage_offset() + offset)
        return tensor.cpu() if result.host else tensor
