"""The value that enters the passes: StableHLO results, and how the launch lays out its buffers."""

from __future__ import annotations

from collections.abc import Sequence

from torch_neuronx_compile.dim import ShapeEnv, Size
from torch_neuronx_compile.stablehlo.value import Parameter, Value


class Module:
    """parameters: all inputs of the launch in order of their numbers, used or not. strides: one tuple (elements) for each
    parameter of role "tensor", or None for row-major. results: the values to be written; output_strides: the same for each;
    aliases: for each result the tensor parameter's position at whose address it is written, or None. env: where the
    guards of symbolic sizes are, or None for a frozen module. slots: numbers that a bind must give; the `source` of a symbol is
    the number of its slot. excess_precision: bf16 and fp16 results are rounded only where they are stored.
    """

    __slots__ = ("name", "parameters", "strides", "results", "output_strides", "aliases", "env", "slots",
                 "excess_precision")  # fmt: skip

    def __init__(self, name: str, parameters: Sequence[Parameter], strides: Sequence[tuple[Size, ...] | None], results: Sequence[Value],
                 output_strides: Sequence[tuple[Size, ...] | None] | None = None,
                 aliases: Sequence[int | None] | None = None, env: ShapeEnv | None = None, slots: int = 0,
                 excess_precision: bool = False):  # fmt: skip
        self.name = name
        self.parameters = tuple(parameters)
        self.strides = tuple(strides)
        self.results = tuple(results)
        self.output_strides = (None,) * len(self.results) if output_strides is None else tuple(output_strides)
        self.aliases = (None,) * len(self.results) if aliases is None else tuple(aliases)
        self.env = env
        self.slots = slots
        self.excess_precision = excess_precision

    def with_results(self, results: Sequence[Value]) -> Module:
        """The same launch for other results, of the same types."""
        return Module(self.name, self.parameters, self.strides, results, self.output_strides, self.aliases, self.env, self.slots,
                      self.excess_precision)  # fmt: skip
