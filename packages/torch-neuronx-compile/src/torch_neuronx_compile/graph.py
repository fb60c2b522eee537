"""FX graph -> StableHLO module: the same lowerings as in eager execution, applied node by node."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Node

import torch_neuronx_compile.stablehlo as hlo
from torch_neuronx.precision import warn_float64
from torch_neuronx_compile.lowered_graph import Draw, Input, LoweredGraph, Result
from torch_neuronx_compile.lowering import HLO_DTYPE, Unsupported, functional
from torch_neuronx_compile.lowering.movement import as_strided
from torch_neuronx_compile.lowering.shape import broadcast_to
from torch_neuronx_compile.passes.errors import CompileError
from torch_neuronx_compile.passes.module import Module
from torch_neuronx_compile.stablehlo.value import Parameter, TensorType, Value, location, parameters
from torch_neuronx_compile.storage_views import OPERATORS, is_dense, owners, reach, storage, to_memory, wider_arguments
from torch_neuronx_compile.symbolic import DataDependentSize, Shapes, placeholders

SCALAR_BASE = 1 << 20  # numbers of scalar parameters, after all tensors


class State:
    """What the generator's state before a draw is in the graph."""

    __slots__ = ("draw",)

    def __init__(self, draw: int):
        self.draw = draw


class UnsupportedOperator(CompileError):
    """An operator of a graph has no lowering, or none for these arguments."""


def where(node: Node) -> str:
    """The user's line behind a node: 'file.py:12'; empty if unknown."""
    trace = node.meta.get("stack_trace") or node.stack_trace or ""
    lines = re.findall(r'File "([^"]+)", line (\d+)', trace)
    return f"{lines[-1][0].rsplit('/', 1)[-1]}:{lines[-1][1]}" if lines else ""


def user_line(node: Node) -> str:
    """The user's line with its file and text, for messages."""
    lines = (node.meta.get("stack_trace") or node.stack_trace or "").rstrip().splitlines()
    frames = [n for n, line in enumerate(lines) if line.lstrip().startswith("File ")]
    return "\n".join(lines[frames[-1] :]) if frames else ""


def element_type(dtype: torch.dtype, node: Node) -> str:
    found = HLO_DTYPE.get(dtype)
    if found is None:
        raise UnsupportedOperator(
            str(node.target), f"tensors of {dtype} have no element type in programs\n{user_line(node)}"
        )
    if dtype == torch.float64:
        warn_float64()
    return found


class _GraphLowering:
    def __init__(self, graph: GraphModule, arguments: Sequence[Any]):
        self.graph = graph
        self.shapes = Shapes(graph, arguments)
        self.values: dict[Node, Any] = {}
        self.inputs: dict[int, Input] = {}  # by number of the parameter
        self.strides: dict[int, tuple[int, ...]] = {}
        self.arguments = {node: position for position, node in enumerate(placeholders(graph))}
        self.written: dict[int, Value] = {}  # parameter -> what it holds in the end
        self.owners = owners(graph)
        self.wider = wider_arguments(graph, self.owners, self.shapes)
        self.memories: dict[Node, Parameter] = {}  # of the arguments in `wider`
        self.draws: list[Draw] = []
        self.scalars: list[Parameter] = []
        self.constants: list[tuple[torch.Tensor, Parameter]] = []

    # ---- nodes ------------------------------------------------------------------------------------------------------

    def run(self) -> LoweredGraph:
        returned: Any = ()
        for node in self.graph.graph.nodes:
            match node.op:
                case "placeholder":
                    self.values[node] = self.placeholder(node, self.arguments[node])
                case "get_attr":
                    self.values[node] = self.constant(node)
                case "call_function":
                    self.values[node] = self.sized_call(node)
                case "output":
                    returned = node.args[0]
                case _:
                    raise UnsupportedOperator(str(node.target), f"{node.op} nodes have no lowering\n{user_line(node)}")
        return self.finish(returned if isinstance(returned, (tuple, list)) else (returned,))

    def placeholder(self, node: Node, position: int) -> Any:
        meta = node.meta.get("val")
        if not isinstance(meta, torch.Tensor):
            return self.shapes.concrete(meta)
        if node in self.wider:
            return self.view_of_memory(node, position, meta)
        return self.parameter(node, position, "argument", position, meta)

    def view_of_memory(self, node: Node, position: int, meta: torch.Tensor) -> Value:
        """An argument that the launch takes as a piece of its storage."""
        first, end = self.wider[node]
        offset = self.shapes.concrete(meta.storage_offset())
        self.strides[position] = (1,)
        self.inputs[position] = Input("storage", position, (1,), span=(first - offset, end - offset))
        memory = Parameter(position, TensorType((end - first,), element_type(meta.dtype, node)))
        self.memories[node] = memory
        return as_strided(memory, self.shapes.all(meta.shape), self.shapes.all(meta.stride()), offset - first)

    def memory(self, node: Node, name: str) -> tuple[Value, int]:
        """Elements of the storage of a node's tensor in order, and the position of the first of them."""
        owner = self.owners[storage(node.meta["val"])]
        if owner in self.memories:
            return self.memories[owner], self.wider[owner][0]
        meta = owner.meta["val"]
        strides = self.shapes.all(meta.stride())
        if not is_dense(self.shapes.all(meta.shape), strides):
            raise UnsupportedOperator(
                name, f"its operand's memory has gaps; call contiguous() on the tensor before\n{user_line(node)}"
            )
        return to_memory(self.values[owner], strides), self.shapes.concrete(meta.storage_offset())

    def in_storage(self, node: Node, name: str, found: Any, args: list[Any]) -> Any:
        """An operator that sees its operand's storage, on the elements of that storage."""
        place = OPERATORS[name]
        meta = node.args[0].meta["val"]
        flat, first = self.memory(node.args[0], name)
        offset = self.shapes.concrete(meta.storage_offset()) if args[place] is None else args[place]
        window = args[place - 2 : place]
        begin, end = reach(*window, offset - first)
        if begin < 0 or end > flat.shape[0]:
            raise UnsupportedOperator(name, f"sizes {window[0]}, strides {window[1]} and offset {offset} reach outside of the "
                                      f"operand's {flat.shape[0]} elements\n{user_line(node)}")  # fmt: skip
        args = [flat, *args[1:place], offset - first]
        if place == 3:
            return self.lower(node, name, found, args, node.meta["val"])
        written = self.lower(node, name, found, args, None)
        shape, strides = self.shapes.all(meta.shape), self.shapes.all(meta.stride())
        return as_strided(written, shape, strides, self.shapes.concrete(meta.storage_offset()) - first)

    def parameter(self, node: Node, number: int, kind: str, position: int, meta: torch.Tensor) -> Parameter:
        shape = self.shapes.all(meta.shape)
        self.strides[number] = self.shapes.all(meta.stride())
        self.inputs[number] = Input(kind, position, self.strides[number])
        return Parameter(number, TensorType(shape, element_type(meta.dtype, node)))

    def constant(self, node: Node) -> Any:
        value: Any = self.graph
        for name in str(node.target).split("."):
            value = getattr(value, name)
        if not isinstance(value, torch.Tensor):
            return value
        number = len(self.arguments) + len(self.constants)
        for known, parameter in self.constants:
            if known is value:
                return parameter
        parameter = self.parameter(node, number, "constant", len(self.constants), value)
        self.constants.append((value, parameter))
        return parameter

    def argument(self, value: Any) -> Any:
        if isinstance(value, Node):
            return self.values[value]
        if isinstance(value, (list, tuple)):
            return [self.argument(item) for item in value]
        return self.shapes.concrete(value)

    def sized_call(self, node: Node) -> Any:
        try:
            return self.call(node)
        except DataDependentSize as error:
            raise DataDependentSize(error.size, str(node.target), user_line(node)) from None

    def call(self, node: Node) -> Any:
        target = node.target
        if target is operator.getitem:
            container, index = node.args
            return self.values[container][index]
        meta = node.meta.get("val")
        if isinstance(meta, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            return self.shapes.concrete(meta)
        if not isinstance(target, torch._ops.OpOverload):
            if str(target) in ("run_and_save_rng_state", "run_with_rng_state"):
                return self.random_with_state(node, str(target))
            if isinstance(target, Callable) and getattr(target, "__module__", "") in ("_operator", "math", "torch"):
                return target(*self.argument(node.args), **{k: self.argument(v) for k, v in node.kwargs.items()})
            raise UnsupportedOperator(str(target), f"has no lowering\n{user_line(node)}")
        name = target.name()
        args = self.schema_arguments(target, node)
        if name == "aten::copy_":
            return self.write(node, args)
        found = functional(name)
        if found is None:
            raise UnsupportedOperator(name, f"has no lowering; arguments: {describe(args)}\n{user_line(node)}")
        if name in OPERATORS:
            return self.in_storage(node, name, found, args)
        return self.lower(node, name, found, args, node.meta.get("val"))

    def random_with_state(self, node: Node, target: str) -> Any:
        """A random operator of activation checkpointing: the forward graph keeps the generator's state before it, with which the
        backward graph draws the same numbers again."""
        state, operator_, *given = (None, *node.args) if target == "run_and_save_rng_state" else node.args
        name = operator_.name()
        found = functional(name)
        if found is None or not found.row.random:
            raise UnsupportedOperator(name, f"has no lowering that draws random numbers\n{user_line(node)}")
        args = self.schema_arguments(operator_, node, given)
        meta = operator_(*(_meta(value) for value in args))  # the node itself carries none
        if target == "run_with_rng_state":
            return self.lower(node, name, found, args, meta, self.arguments[state])
        before = State(len(self.draws))
        return before, self.lower(node, name, found, args, meta)

    def schema_arguments(
        self, target: torch._ops.OpOverload, node: Node, given: Sequence[Any] | None = None
    ) -> list[Any]:
        """All schema arguments in order, defaults filled in."""
        args = [self.argument(value) for value in (node.args if given is None else given)]
        for argument in target._schema.arguments[len(args) :]:
            if argument.name in node.kwargs:
                args.append(self.argument(node.kwargs[argument.name]))
            else:
                args.append(argument.default_value if argument.has_default_value() else None)
        return args

    def lower(self, node: Node, name: str, found: Any, args: list[Any], meta: Any, state: int | None = None) -> Any:
        """A row's results. meta: tensors of their sizes and dtypes. state: the argument that holds the generator's state, if it is
        not the device's own."""
        row = found.row
        extra: dict[str, Any] = {}
        tensors = [t for t in (meta if isinstance(meta, (tuple, list)) else (meta,)) if isinstance(t, torch.Tensor)]
        if row.random:
            extra["seed"], extra["offset"] = self.draw(self.shapes.all(tensors[0].shape), state)
        if row.outputs:
            extra["outputs"] = [TensorType(self.shapes.all(t.shape), element_type(t.dtype, node)) for t in tensors]
        line = where(node)
        with location(f"{name} at {line}" if line else name):
            try:
                result = row.function(*found.arguments(args), **extra)
            except Unsupported as error:
                raise UnsupportedOperator(name, f"{error}; arguments: {describe(args)}\n{user_line(node)}") from error
        self.check(node, name, result, meta)
        return result

    def check(self, node: Node, name: str, result: Any, meta: Any) -> None:
        """Sizes and dtypes must be what torch says: anything else is a fault of the lowering."""
        if isinstance(result, Value) and isinstance(meta, torch.Tensor):
            wanted = (self.shapes.all(meta.shape), HLO_DTYPE.get(meta.dtype))
            if (result.shape, result.dtype) != wanted:
                raise AssertionError(
                    f"{name}: the lowering gives sizes {result.shape} and type {result.dtype}; torch says {wanted[0]} and {meta.dtype}\n"
                    f"{user_line(node)}"
                )
        elif isinstance(result, (tuple, list)) and isinstance(meta, (tuple, list)):
            for one, other in zip(result, meta, strict=False):
                self.check(node, name, one, other)

    def draw(self, shape: tuple[int, ...], state: int | None) -> tuple[Parameter, Parameter]:
        """Seed and offset of one random operator."""
        count = 1
        for size in shape:
            count *= size
        self.draws.append(Draw(count, state))
        pair = tuple(Parameter(SCALAR_BASE + len(self.scalars) + i, TensorType((), "i64"), "scalar") for i in (0, 1))
        self.scalars.extend(pair)
        return pair  # type: ignore[return-value]

    def write(self, node: Node, args: list[Any]) -> Value:
        """copy_(input, value): the input's final contents."""
        target, value = args[0], args[1]
        if node.args[0] in self.memories:
            raise UnsupportedOperator("aten::copy_", "into an argument whose storage the graph also sees by as_strided, beyond the "
                                      f"argument's own elements; call contiguous() on it before\n{user_line(node)}")  # fmt: skip
        if not isinstance(target, Parameter):
            raise UnsupportedOperator("aten::copy_", f"into a tensor that is no input of the graph\n{user_line(node)}")
        value = broadcast_to(hlo.convert(value, target.dtype), target.shape)
        self.written[target.number] = value
        return value

    # ---- results ----------------------------------------------------------------------------------------------------

    def finish(self, returned: Sequence[Any]) -> LoweredGraph:
        values: list[Value] = []
        specs: list[tuple] = []
        aliased: list[int | None] = []  # by output: number of the parameter that it is written into
        for number, value in self.written.items():
            if isinstance(value, Parameter) and value.number == number:
                continue
            values.append(value)
            aliased.append(number)
            self.inputs[number].written = True
            specs.append((value.shape, self.strides[number], value.dtype))
        results = self.results(returned, values, specs, aliased)
        if not values:
            return LoweredGraph(None, [], results, self.draws, [])
        used = {p.number for p in parameters(values) if p.role == "tensor"} | {n for n in aliased if n is not None}
        numbers = sorted(used)
        types = {p.number: p for p in (*self.values.values(), *self.memories.values()) if isinstance(p, Parameter)}
        module = Module(
            "graph", [*(types[n] for n in numbers), *self.scalars], [self.strides[n] for n in numbers], values,
            [strides for _, strides, _ in specs], [None if n is None else numbers.index(n) for n in aliased],
        )  # fmt: skip
        return LoweredGraph(module, [self.inputs[n] for n in numbers], results, self.draws, specs)

    def results(
        self, returned: Sequence[Any], values: list[Value], specs: list[tuple], aliased: list[int | None]
    ) -> list[Result]:
        """What the graph returns; fresh outputs of the launch are appended to the three lists."""
        holders = self.holders(returned)
        known: dict[tuple, int] = {}
        results: list[Result] = []
        for item in returned:
            value = self.values[item] if isinstance(item, Node) else item
            if isinstance(value, State):
                results.append(Result("state", value.draw))
                continue
            if not isinstance(value, Value):
                results.append(Result("number", value))
                continue
            meta = item.meta["val"]
            shape, strides = value.shape, self.shapes.all(meta.stride())
            host = meta.device.type == "cpu"
            holder = holders.get(storage(meta), item)
            if holder in self.arguments:
                base = holder.meta["val"]
                whole = shape == self.shapes.all(base.shape) and strides == self.shapes.all(base.stride())
                offset = self.shapes.concrete(meta.storage_offset()) - self.shapes.concrete(base.storage_offset())
                view = None if whole and offset == 0 else (shape, strides, offset)
                results.append(Result("argument", self.arguments[holder], view, False))
                continue
            view = None
            if holder is not item:
                view = (shape, strides, self.shapes.concrete(meta.storage_offset()))
                meta = holder.meta["val"]
                value = self.values[holder]
                shape, strides = value.shape, self.shapes.all(meta.stride())
            expanded = [
                d for d, (size, stride) in enumerate(zip(shape, strides, strict=True)) if stride == 0 and size > 1
            ]
            if expanded:  # compute one element of what is repeated
                view = view or (shape, strides, 0)
                value = hlo.slice(
                    value, [0] * value.rank, [1 if d in expanded else size for d, size in enumerate(shape)]
                )
                shape = value.shape
            key = (storage(meta), holder if not expanded else item, strides)
            number = known.get(key)
            if number is None:
                number = known[key] = len(known)
                values.append(value)
                aliased.append(None)
                specs.append((shape, strides, value.dtype))
            results.append(Result("output", number, view, host))
        return results

    def holders(self, returned: Sequence[Any]) -> dict[int, Node]:
        """By storage: the node whose tensor holds it all, of which other results are views: an argument, a result that fills the
        storage, or what a result with an offset is a view of (callers read that offset: AOTAutograd makes views of arguments by it).
        An argument that the graph writes is none: what was seen of it before the writing is a value of its own."""
        found: dict[int, Node] = {}
        tensors = [item for item in returned if isinstance(item, Node) and isinstance(self.values[item], Value)]
        shifted = [item for item in tensors if self.shapes.concrete(item.meta["val"].storage_offset())]
        for item in [*tensors, *(self.owners[storage(item.meta["val"])] for item in shifted)]:
            if not isinstance(self.values[item], Parameter):
                meta = item.meta["val"]
                nbytes = meta.untyped_storage().nbytes()
                dense = self.shapes.concrete(meta.storage_offset()) == 0 and is_dense(
                    self.shapes.all(meta.shape), self.shapes.all(meta.stride())
                )
                if dense and self.shapes.concrete(nbytes) == self.shapes.concrete(meta.numel()) * meta.element_size():
                    found.setdefault(storage(meta), item)
        for node, position in self.arguments.items():
            meta = node.meta.get("val")
            if isinstance(meta, torch.Tensor):
                if position in self.written:
                    found.pop(storage(meta), None)
                else:
                    found[storage(meta)] = node
        return found


def _meta(value: Any) -> Any:
    """A meta tensor for a value, anything else as it is."""
    if not isinstance(value, Value):
        return value
    dtype = next(dtype for dtype, name in HLO_DTYPE.items() if name == value.dtype)
    return torch.empty(value.shape, dtype=dtype, device="meta")


def lower_graph(graph: GraphModule, arguments: Sequence[Any]) -> LoweredGraph:
    """The module of an FX graph of ATen operators, for arguments (tensors, real or fake, and numbers) of concrete sizes.

    Raises UnsupportedOperator, which names the operator, its arguments and the user's line.
    """
    return _GraphLowering(graph, arguments).run()


def describe(args: Any) -> str:
    """Arguments for a message: element types and sizes of tensors, other values as they are."""
    if isinstance(args, Value):
        return f"{args.dtype}{list(args.shape)}"
    if isinstance(args, (list, tuple)):
        return f"({', '.join(map(describe, args))})"
    return repr(args)
