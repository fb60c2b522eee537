"""A graph as a module, and how a call's arguments and results meet its launch."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch_neuronx_compile.passes.module import Module


class Input:
    """A tensor that a launch takes: argument `position` of the graph, or constant number `position` of its module.

    strides: those that the program was made for. written: whether the launch writes into it. span: of the kind "storage", which
    part of the argument's storage the program takes, in one dimension: positions [first, end) from the argument's own offset.
    """

    __slots__ = ("kind", "position", "strides", "written", "span")

    def __init__(self, kind: str, position: int, strides: tuple[int, ...], written: bool = False,
                 span: tuple[int, int] | None = None):  # fmt: skip
        self.kind = kind  # "argument", "constant" or "storage"
        self.position = position
        self.strides = strides
        self.written = written
        self.span = span


class Result:
    """One value that the graph returns.

    kind: "output" (number `value` of the launch's fresh outputs), "argument" (argument `value`), "number" (`value` itself) or
    "state" (the generator's state before draw `value`, as torch.neuron.get_rng_state gives it).
    view: sizes, strides and offset (elements, from the tensor's own) under which the tensor is shown, or None for the tensor as
    it is: results that are views of an argument, or of another result, share its memory as they do in eager execution.
    host: it belongs on the CPU.
    """

    __slots__ = ("kind", "value", "view", "host")

    def __init__(self, kind: str, value: Any, view: tuple | None = None, host: bool = False):
        self.kind = kind
        self.value = value
        self.view = view
        self.host = host


class Draw:
    """Random numbers of one operator: how many it takes, and the argument that holds the generator's state for them; without one
    they are the device generator's next.
    """

    __slots__ = ("count", "state")

    def __init__(self, count: int, state: int | None = None):
        self.count = count
        self.state = state


class LoweredGraph:
    """A module, and how a call's arguments and results meet its launch. Without tensors to compute, `module` is None.

    draws: of each random operator in program order; the launch's scalars are (seed, offset) of each.
    specs: sizes, strides and dtype of every output of the launch, aliased ones included.
    """

    __slots__ = ("module", "inputs", "results", "draws", "specs")

    def __init__(
        self, module: Module | None, inputs: list[Input], results: list[Result], draws: list[Draw], specs: list[tuple]
    ):
        self.module = module
        self.inputs = inputs
        self.results = results
        self.draws = draws
        self.specs = specs


def encode(lowered: LoweredGraph, program: str) -> bytes:
    """What a call needs to know, as text: without the program, of which it holds the key, and without constants."""
    head = {
        "program": program,
        "inputs": [[i.kind, i.position, i.strides, i.written, i.span] for i in lowered.inputs],
        "results": [[r.kind, r.value, r.view, r.host] for r in lowered.results],
        "draws": [[d.count, d.state] for d in lowered.draws],
        "specs": lowered.specs,
    }
    return json.dumps(head, separators=(",", ":")).encode()


def decode(data: bytes) -> tuple[LoweredGraph, str]:
    """Inverse of encode()."""
    head = json.loads(data)
    results = [
        Result(kind, value, view and (tuple(view[0]), tuple(view[1]), view[2]), host)
        for kind, value, view, host in head["results"]
    ]
    specs = [(tuple(shape), tuple(strides), dtype) for shape, strides, dtype in head["specs"]]
    inputs = [
        Input(kind, position, tuple(strides), written, span and tuple(span))
        for kind, position, strides, written, span in head["inputs"]
    ]
    draws = [Draw(count, state) for count, state in head["draws"]]
    return LoweredGraph(None, inputs, results, draws, specs), head["program"]
