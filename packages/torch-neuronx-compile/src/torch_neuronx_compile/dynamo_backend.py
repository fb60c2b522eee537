"""The backend of torch.compile(backend="neuron").

Dynamo hands over a graph, AOTAutograd makes forward and backward graphs of ATen operators from it, and each of those
becomes one NEFF.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import GraphModule

from torch_neuronx_compile import device_interface, metrics
from torch_neuronx_compile.artifacts import Artifacts
from torch_neuronx_compile.cache import files, fingerprint, settings
from torch_neuronx_compile.decompositions import decompositions
from torch_neuronx_compile.graph import lower_graph
from torch_neuronx_compile.graph_text import graph_text
from torch_neuronx_compile.launch import CompiledGraph
from torch_neuronx_compile.lowered_graph import decode, encode
from torch_neuronx_compile.metrics import get_dynamo_metrics, reset_dynamo_metrics, set_model_name
from torch_neuronx_compile.symbolic import Shapes, placeholders

__all__ = ["decompositions", "get_dynamo_metrics", "metrics", "neuron", "neuron_backend", "reset_dynamo_metrics", "set_model_name",
           "settings"]  # fmt: skip

log = logging.getLogger(__name__)
OPTIONS = ("model_name", "fallback_execution", "allow_excess_precision")

device_interface.register()


class Options:
    """Options of one torch.compile call.

    model_name: label of its graphs. fallback_execution: a graph that cannot be compiled runs operator by operator instead of
    raising; by default the environment decides (TORCH_NEURONX_DISABLE_FALLBACK_EXECUTION, itself true by default).
    allow_excess_precision: bf16 and fp16 results are rounded only where they are stored.
    """

    def __init__(self, options: dict[str, Any] | None):
        options = dict(options or {})
        unknown = sorted(set(options) - set(OPTIONS))
        if unknown:
            raise ValueError(f'backend "neuron" got options {", ".join(unknown)}; it knows {", ".join(OPTIONS)}')
        self.model_name = str(options.get("model_name") or metrics.model_name() or "graph")
        fallback = options.get("fallback_execution")
        if fallback is None:
            fallback = not settings.flag("TORCH_NEURONX_DISABLE_FALLBACK_EXECUTION", True)
        self.fallback_execution = bool(fallback)
        self.allow_excess_precision = bool(options.get("allow_excess_precision", False))


def neuron(gm: GraphModule, example_inputs: Sequence[Any], *, mode: str | None = None,
           options: dict[str, Any] | None = None) -> Callable[..., Any]:  # fmt: skip
    """Compile a Dynamo graph. mode: only "default"; another one is warned of and treated as that. options: see `Options`."""
    if mode not in (None, "default"):
        log.warning('torch.compile(backend="neuron") has the mode "default" only; mode=%r is treated as that', mode)
    chosen = Options(options)
    from torch._dynamo.backends.common import aot_autograd

    def compiler(graph: GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        return compile_graph(graph, inputs, chosen)

    return aot_autograd(
        fw_compiler=compiler,
        bw_compiler=compiler,
        inference_compiler=compiler,
        decompositions=decompositions(),
        keep_inference_input_mutations=True,
    )(gm, example_inputs)


neuron_backend = neuron


def compile_graph(graph: GraphModule, inputs: Sequence[Any], options: Options) -> Callable[..., Any]:
    """One graph of ATen operators -> a callable with the boxed convention."""
    refuse_host_inputs(graph)
    symbolic = any(isinstance(x, torch.SymInt) for x in inputs) or any(
        isinstance(x, torch.Tensor) and any(isinstance(s, torch.SymInt) for s in (*x.shape, *x.stride()))
        for x in inputs
    )
    if symbolic:
        return Specialised(graph, options)
    try:
        return compile_static(graph, inputs, options)
    except Exception as error:
        if not options.fallback_execution:
            raise
        log.warning("a graph could not be compiled and runs operator by operator: %s", error)
        return Interpreted(graph)


def refuse_host_inputs(graph: GraphModule) -> None:
    """CPU tensors are copied to the device at every call, unless TORCH_NEURONX_DYNAMO_DISABLE_CPU_AUTOCOPY says that this is a mistake."""
    if settings.flag("TORCH_NEURONX_DYNAMO_DISABLE_CPU_AUTOCOPY"):
        for node in placeholders(graph):
            meta = node.meta.get("val")
            if isinstance(meta, torch.Tensor) and meta.device.type == "cpu":
                raise RuntimeError(
                    f'input {node.name} of a graph for backend "neuron" is on the CPU; move it to "neuron", or unset '
                    "TORCH_NEURONX_DYNAMO_DISABLE_CPU_AUTOCOPY to have it copied at every call"
                )


class Compilation:
    """One graph whose sizes are numbers, on its way through two levels of cache: the graph's text leads to what a call needs to
    know and to a key, the module's text; that leads to the program. On a hit of the first level nothing is lowered.
    """

    def __init__(self, graph: GraphModule, inputs: Sequence[Any], options: Options):
        self.graph = graph
        self.inputs = inputs
        self.options = options
        self.artifacts = Artifacts(options.model_name)
        self.artifacts.keep("0-fx.txt", lambda: graph.print_readable(print_output=False))
        self.neff: bytes | None = None
        self.compiled = False
        self.lowering_seconds = self.compile_seconds = 0.0

    def run(self) -> CompiledGraph:
        key = fingerprint.key(
            "graph", graph_text(self.graph, Shapes(self.graph, self.inputs)), str(self.options.allow_excess_precision)
        )
        data, _ = files.obtain(key, self.lower)
        lowered, program = decode(data)
        if program and self.neff is None:
            self.neff = files.read(files.path_of(program))
            if self.neff is None:  # the second file was lost
                lowered, program = decode(self.lower())
        neff = self.neff or b""
        nodes = sum(node.op == "call_function" for node in self.graph.graph.nodes)
        metrics.record(metrics.GraphMetrics(
            self.options.model_name, metrics.next_number(), nodes, not self.compiled, self.lowering_seconds * 1e3,
            self.compile_seconds * 1e3, len(neff),
        ))  # fmt: skip
        return CompiledGraph(lowered, neff, constants(self.graph))

    def lower(self) -> bytes:
        from torch_neuronx_compile.neff import module_key

        started = time.perf_counter()
        lowered = lower_graph(self.graph, self.inputs)
        self.lowering_seconds = time.perf_counter() - started
        module = lowered.module
        if module is None:
            return encode(lowered, "")
        module.name = self.options.model_name
        module.excess_precision = self.options.allow_excess_precision
        key = module_key(module)
        self.neff, _ = files.obtain(key, lambda: self.compile(module))
        return encode(lowered, key)

    def compile(self, module: Any) -> bytes:
        from torch_neuronx_compile.neff import compile_to_neff

        started = time.perf_counter()
        neff = compile_to_neff(module, self.artifacts)
        self.compile_seconds = time.perf_counter() - started
        self.compiled = True
        return neff


def compile_static(graph: GraphModule, inputs: Sequence[Any], options: Options) -> CompiledGraph:
    """A graph whose sizes are numbers; the program may come from the disk."""
    return Compilation(graph, inputs, options).run()


def constants(graph: GraphModule) -> list[torch.Tensor]:
    """Tensors that the graph's module holds, each once, in order of use: the numbering of `graph.Input("constant", ...)`."""
    found: list[torch.Tensor] = []
    for node in graph.graph.nodes:
        if node.op == "get_attr":
            value: Any = graph
            for name in str(node.target).split("."):
                value = getattr(value, name)
            if isinstance(value, torch.Tensor) and not any(value is known for known in found):
                found.append(value)
    return found


class Specialised:
    """A graph with symbolic sizes: one program for each set of sizes that is met."""

    def __init__(self, graph: GraphModule, options: Options):
        self._boxed_call = True
        self.graph = graph
        self.options = options
        self._programs: dict[tuple, Callable[..., Any]] = {}

    def __call__(self, arguments: list[Any]) -> list[Any]:
        key = tuple((tuple(a.shape), a.stride()) if isinstance(a, torch.Tensor) else a for a in arguments)
        program = self._programs.get(key)
        if program is None:
            try:
                program = compile_static(self.graph, arguments, self.options)
            except Exception as error:
                if not self.options.fallback_execution:
                    raise
                log.warning("a graph could not be compiled and runs operator by operator: %s", error)
                program = Interpreted(self.graph)
            self._programs[key] = program
        return program(arguments)


class Interpreted:
    """A graph that runs operator by operator (fallback_execution)."""

    def __init__(self, graph: GraphModule):
        self._boxed_call = True
        self.graph = graph

    def __call__(self, arguments: list[Any]) -> list[Any]:
        values = list(arguments)
        arguments.clear()
        return self.graph(*values)
