"""layout: StableHLO values -> a plan. Operations that only rearrange elements become access patterns over what they
rearrange; where no strides can express them, the elements are copied first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch_neuronx_compile.dim import Size
from torch_neuronx_compile.passes import access
from torch_neuronx_compile.passes.errors import CompileError
from torch_neuronx_compile.passes.module import Module
from torch_neuronx_compile.passes.plan import FREE, Access, Node, Output, Plan
from torch_neuronx_compile.passes.sizes import is_number, resolved, row_major
from torch_neuronx_compile.stablehlo.value import Operation, Parameter, Value, topological

_NOTHING: dict[str, Any] = {}


class _Layout:
    def __init__(self, module: Module):
        self.module = module
        self.nodes: list[Node] = []
        self.inputs: list[Node] = []
        self.accesses: dict[Any, Access] = {}
        self.scalars = 0
        self.location = ""
        self.shapes: dict[int, tuple[Any, tuple[Size, ...], tuple[Size, ...]]] = {}

    def node(self, op: str, operands: Sequence[Access], shape: Sequence[Size], dtype: str, attributes: Any = _NOTHING,
             strides: tuple[Size, ...] | None = None) -> Node:  # fmt: skip
        shape, own = self.shape(shape)
        node = Node(op, tuple(operands), shape, dtype, attributes, self.location, len(self.nodes), own, strides)
        self.nodes.append(node)
        return node

    def shape(self, shape: Sequence[Size]) -> tuple[tuple[Size, ...], tuple[Size, ...]]:
        """A shape after all unifications and its row-major strides; one object for one object, so that comparing them is cheap."""
        known = self.shapes.get(id(shape))
        if known is None:
            final = tuple(map(resolved, shape))
            known = (shape, final, row_major(final))  # holds `shape`, so that its id stays its own
            self.shapes[id(shape)] = self.shapes[id(final)] = known
        return known[1], known[2]

    def parameter(self, parameter: Parameter) -> None:
        if parameter.role == "scalar":
            node = self.node("scalar", (), (), parameter.dtype, {"number": self.scalars})
            self.scalars += 1
        else:
            strides = self.module.strides[len(self.inputs)]
            node = self.node("input", (), parameter.shape, parameter.dtype, {"number": len(self.inputs)},
                             None if strides is None else tuple(map(resolved, strides)))  # fmt: skip
            self.inputs.append(node)
        self.accesses[parameter.number] = Access(node, 0, node.strides, node.dtype)

    def of(self, value: Value) -> Access:
        return self.accesses[value.index if value.operation is None else id(value.operation)]

    def copied(self, source: Access, shape: Sequence[Size]) -> Access:
        """The elements of an access, put into row-major order."""
        node = self.node("copy", (source,), shape, source.dtype)
        return Access(node, 0, node.strides, node.dtype)

    def in_memory(self, value: Value) -> Access:
        """A value for an instruction that reads memory only: what has none is written out first."""
        source = self.of(value)
        return self.copied(source, value.shape) if source.node.op in FREE else source

    def operation(self, operation: Operation) -> None:
        self.location = operation.location
        view = _VIEWS.get(operation.name)
        if view is not None:
            result = view(self, operation, self.of(operation.operands[0]))
        else:
            build = _BUILDERS.get(operation.name)
            node = build(self, operation) if build else self.elementwise(operation)
            result = Access(node, 0, node.strides, node.dtype)
        self.accesses[id(operation)] = result

    def elementwise(self, operation: Operation) -> Node:
        type = operation.types[0]
        rank = len(type.shape)
        operands = []
        for value in operation.operands:
            source = self.of(value)
            if len(source.strides) != rank:  # the scalar operands of select and clamp
                source = Access(source.node, source.offset, (0,) * rank, source.dtype)
            operands.append(source)
        return self.node(operation.name, operands, type.shape, type.dtype, operation.attributes)

    def whole(self, operation: Operation) -> Node:
        """A node that takes its operands as they are."""
        type = operation.types[0]
        return self.node(
            operation.name, [self.of(v) for v in operation.operands], type.shape, type.dtype, operation.attributes
        )

    def scan(self, operation: Operation) -> Node:
        type = operation.types[0]
        return self.node("scan", [self.in_memory(operation.operands[0])], type.shape, type.dtype, operation.attributes)


# ---- views ----------------------------------------------------------------------------------------------------------


def _broadcast(layout: _Layout, operation: Operation, source: Access) -> Access:
    x, shape = operation.operands[0], operation.attributes["shape"]
    strides: list[Size] = [0] * len(shape)
    for d, size, stride in zip(operation.attributes["dimensions"], x.shape, source.strides, strict=True):
        if not is_number(resolved(size), 1):
            strides[d] = stride
    return Access(source.node, source.offset, tuple(strides), source.dtype)


def _reshape(layout: _Layout, operation: Operation, source: Access) -> Access:
    shape, _ = layout.shape(operation.operands[0].shape)
    target, own = layout.shape(operation.types[0].shape)
    strides = access.reshape(shape, source.strides, target)
    if strides is None:
        source = layout.copied(source, shape)
        strides = own
    return Access(source.node, source.offset, strides, source.dtype)


def _transpose(layout: _Layout, operation: Operation, source: Access) -> Access:
    strides = tuple(source.strides[d] for d in operation.attributes["permutation"])
    return Access(source.node, source.offset, strides, source.dtype)


def _reverse(layout: _Layout, operation: Operation, source: Access) -> Access:
    offset, strides = source.offset, list(source.strides)
    for d in operation.attributes["dimensions"]:
        offset = offset + (operation.operands[0].shape[d] - 1) * strides[d]
        strides[d] = -strides[d]
    return Access(source.node, offset, tuple(strides), source.dtype)


def _slice(layout: _Layout, operation: Operation, source: Access) -> Access:
    attributes = operation.attributes
    offset, strides = source.offset, []
    for start, step, stride in zip(attributes["start"], attributes["stride"], source.strides, strict=True):
        offset = offset + start * stride
        strides.append(stride * step)
    if any(is_number(size, 0) for size in operation.types[0].shape):
        offset = source.offset  # an empty window lies anywhere; where it starts may be past the end
    return Access(source.node, offset, tuple(strides), source.dtype)


def _bitcast(layout: _Layout, operation: Operation, source: Access) -> Access:
    """The same memory under another element type of the same width."""
    dtype = operation.attributes["dtype"]
    if dtype == source.dtype:
        return source
    if source.node.op in ("iota", "splat", "scalar"):  # these have no memory
        source = layout.copied(source, operation.types[0].shape)
    return Access(source.node, source.offset, source.strides, dtype)


_VIEWS: dict[str, Callable[[_Layout, Operation, Access], Access]] = {
    "broadcast_in_dim": _broadcast,
    "reshape": _reshape,
    "transpose": _transpose,
    "reverse": _reverse,
    "slice": _slice,
    "bitcast_convert": _bitcast,
}

# ---- nodes that are not element-wise --------------------------------------------------------------------------------


def _constant(layout: _Layout, operation: Operation) -> Node:
    type = operation.types[0]
    value = operation.attributes["value"]
    if isinstance(value, tuple):
        return layout.node("dense", (), type.shape, type.dtype, {"value": value})
    return layout.node("splat", (), type.shape, type.dtype, {"value": value}, (0,) * len(type.shape))


def _iota(layout: _Layout, operation: Operation) -> Node:
    type = operation.types[0]
    dimension = operation.attributes["dimension"]
    strides = tuple(int(d == dimension) for d in range(len(type.shape)))
    return layout.node("iota", (), type.shape, type.dtype, _NOTHING, strides)


def _random_bits(layout: _Layout, operation: Operation) -> Node:
    type = operation.types[0]
    seed, offset = (layout.of(value) for value in operation.operands)
    numbers = [a.node.attributes.get("number") for a in (seed, offset)]
    if seed.node.op != "scalar" or offset.node.op != "scalar" or numbers[1] != numbers[0] + 1:
        raise CompileError(
            operation.location, "random_bits needs two neighbouring scalars of the launch, its seed and its offset"
        )
    return layout.node(
        "random_bits", (), type.shape, "i32", {"word": operation.attributes["word"], "number": numbers[0]}
    )


def _dynamic_starts(layout: _Layout, values: Sequence[Value], largest: Sequence[Size]) -> Access:
    """Start indices, one scalar each, moved into the range from 0 to `largest`, as a vector."""
    dtype = values[0].dtype
    parts = []
    for value, limit in zip(values, largest, strict=True):
        source = layout.of(value)
        bounds = [layout.node("splat", (), (1,), dtype, {"value": bound}, (0,)) for bound in (0, limit)]
        low, high = (Access(bound, 0, (0,), dtype) for bound in bounds)
        clamped = layout.node("clamp", (low, Access(source.node, source.offset, (0,), source.dtype), high), (1,), dtype)
        parts.append(Access(clamped, 0, (1,), dtype))
    node = layout.node("concatenate", parts, (len(parts),), dtype, {"dimension": 0, "sizes": (1,) * len(parts)})
    return Access(node, 0, (1,), dtype)


def _dynamic_slice(layout: _Layout, operation: Operation) -> Node:
    x, *starts = operation.operands
    dims = tuple(range(x.rank))
    type = operation.types[0]
    largest = [size - part for size, part in zip(x.shape, type.shape, strict=True)]
    attributes = {"offset_dims": dims, "collapsed_slice_dims": (), "operand_batching_dims": (), "start_indices_batching_dims": (),
                  "start_index_map": dims, "index_vector_dim": 0, "slice_sizes": operation.attributes["sizes"],
                  "out_of_range": "clamp", "index_shape": (len(starts),), "sizes": x.shape}  # fmt: skip
    return layout.node(
        "gather", (layout.in_memory(x), _dynamic_starts(layout, starts, largest)), type.shape, type.dtype, attributes
    )


def _dynamic_update_slice(layout: _Layout, operation: Operation) -> Node:
    x, update, *starts = operation.operands
    dims = tuple(range(x.rank))
    type = operation.types[0]
    largest = [size - part for size, part in zip(x.shape, update.shape, strict=True)]
    attributes = {"update_window_dims": dims, "inserted_window_dims": (), "input_batching_dims": (),
                  "scatter_indices_batching_dims": (), "scatter_dims_to_operand_dims": dims, "index_vector_dim": 0,
                  "body": "set", "out_of_range": "error", "index_shape": (len(starts),), "update_shape": update.shape}  # fmt: skip
    operands = (layout.of(x), _dynamic_starts(layout, starts, largest), layout.in_memory(update))
    return layout.node("scatter", operands, type.shape, type.dtype, attributes)


def _with_batch_components(layout: _Layout, indices: Access, shape: tuple[Size, ...], vector: int,
                           dims: Sequence[int]) -> tuple[Access, tuple[Size, ...]]:  # fmt: skip
    """Indices with a further component for each batching dimension: the position along it. Components are last."""
    batch = tuple(size for d, size in enumerate(shape) if d != vector)
    strides = tuple(stride for d, stride in enumerate(indices.strides) if d != vector)
    count, step = (shape[vector], indices.strides[vector]) if vector < len(shape) else (1, 0)
    parts = [Access(indices.node, indices.offset, (*strides, step), indices.dtype)]
    for d in dims:
        position = d if d < vector else d - 1
        along = tuple(int(p == position) for p in range(len(batch)))
        iota = layout.node("iota", (), (*batch, 1), indices.dtype, _NOTHING, (*along, 0))
        parts.append(Access(iota, 0, iota.strides, indices.dtype))
    sizes = (count, *(1 for _ in dims))
    joined = layout.node("concatenate", parts, (*batch, count + len(dims)), indices.dtype,
                         {"dimension": len(batch), "sizes": sizes})  # fmt: skip
    return Access(joined, 0, joined.strides, joined.dtype), joined.shape


def _gather(layout: _Layout, operation: Operation) -> Node:
    x, indices = operation.operands
    attributes = dict(operation.attributes)
    attributes["sizes"] = x.shape
    source, shape = layout.in_memory(indices), layout.shape(indices.shape)[0]
    batching = attributes["operand_batching_dims"]
    if batching:
        dims = attributes["start_indices_batching_dims"]
        source, shape = _with_batch_components(layout, source, shape, attributes["index_vector_dim"], dims)
        attributes["index_vector_dim"] = len(shape) - 1
        attributes["start_index_map"] = (*attributes["start_index_map"], *batching)
        attributes["collapsed_slice_dims"] = tuple(sorted((*attributes["collapsed_slice_dims"], *batching)))
    attributes["index_shape"] = shape
    type = operation.types[0]
    return layout.node("gather", (layout.in_memory(x), source), type.shape, type.dtype, attributes)


def _scatter(layout: _Layout, operation: Operation) -> Node:
    x, indices, updates = operation.operands
    attributes = dict(operation.attributes)
    source, shape = layout.in_memory(indices), layout.shape(indices.shape)[0]
    batching = attributes["input_batching_dims"]
    if batching:
        dims = attributes["scatter_indices_batching_dims"]
        source, shape = _with_batch_components(layout, source, shape, attributes["index_vector_dim"], dims)
        attributes["index_vector_dim"] = len(shape) - 1
        attributes["scatter_dims_to_operand_dims"] = (*attributes["scatter_dims_to_operand_dims"], *batching)
        attributes["inserted_window_dims"] = tuple(sorted((*attributes["inserted_window_dims"], *batching)))
    attributes["index_shape"] = shape
    attributes["update_shape"] = layout.shape(updates.shape)[0]
    type = operation.types[0]
    return layout.node("scatter", (layout.of(x), source, layout.in_memory(updates)), type.shape, type.dtype, attributes)


def _concatenate(layout: _Layout, operation: Operation) -> Node:
    node = layout.whole(operation)
    dimension = operation.attributes["dimension"]
    node.attributes = {"dimension": dimension, "sizes": tuple(v.shape[dimension] for v in operation.operands)}
    return node


def _reduce(layout: _Layout, operation: Operation) -> Node:
    """Attributes `shape` (the operand's) and `dimensions`; the operand is accessed in the operand's space."""
    node = layout.whole(operation)
    shape = layout.shape(operation.operands[0].shape)[0]
    node.attributes = {**node.attributes, "shape": shape}
    return node


def _dot_general(layout: _Layout, operation: Operation) -> Node:
    """The contracting dimensions of both operands are made mergeable into one loop."""
    attributes = dict(operation.attributes)
    x, y = (layout.in_memory(value) for value in operation.operands)
    shapes = [layout.shape(value.shape)[0] for value in operation.operands]
    xc, yc = attributes["lhs_contracting"], attributes["rhs_contracting"]
    depth = [shapes[0][d] for d in xc]
    merged, _ = access.collapse(depth, [[x.strides[d] for d in xc], [y.strides[d] for d in yc]])
    if len(merged) > 1:
        sides = []
        for side, source, shape in (("lhs", x, shapes[0]), ("rhs", y, shapes[1])):
            batch, contracting = attributes[f"{side}_batch"], attributes[f"{side}_contracting"]
            free = [d for d in range(len(shape)) if d not in batch and d not in contracting]
            order = (*batch, *free, *contracting)
            moved = Access(source.node, source.offset, tuple(source.strides[d] for d in order), source.dtype)
            sides.append(layout.copied(moved, [shape[d] for d in order]))
            attributes[f"{side}_batch"] = tuple(range(len(batch)))
            attributes[f"{side}_contracting"] = tuple(range(len(order) - len(contracting), len(order)))
        x, y = sides
        shapes = [x.node.shape, y.node.shape]
    attributes["lhs_shape"], attributes["rhs_shape"] = shapes
    type = operation.types[0]
    return layout.node("dot_general", (x, y), type.shape, type.dtype, attributes)


def _pad(layout: _Layout, operation: Operation) -> Node:
    node = layout.whole(operation)
    node.attributes = {**node.attributes, "shape": layout.shape(operation.operands[0].shape)[0]}
    return node


def _unsupported(layout: _Layout, operation: Operation) -> Node:
    raise CompileError(
        operation.location, f"the call of {operation.attributes['target']!r} has no program on this target"
    )


_BUILDERS: dict[str, Callable[[_Layout, Operation], Node]] = {
    "constant": _constant,
    "iota": _iota,
    "random_bits": _random_bits,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "gather": _gather,
    "scatter": _scatter,
    "concatenate": _concatenate,
    "reduce": _reduce,
    "dot_general": _dot_general,
    "pad": _pad,
    "scan": _Layout.scan,
    "custom_call": _unsupported,
}


def layout(module: Module) -> Plan:
    """Give every value of a module an access pattern over a node that computes or holds it."""
    self = _Layout(module)
    for parameter in module.parameters:
        self.parameter(parameter)
    for operation in topological(module.results):
        self.operation(operation)
    outputs = []
    for value, strides, alias in zip(module.results, module.output_strides, module.aliases, strict=True):
        shape, own = self.shape(value.shape)
        strides = own if strides is None else tuple(map(resolved, strides))
        outputs.append(Output(self.of(value), shape, value.dtype, strides, own, alias))
    return Plan(self.nodes, self.inputs, self.scalars, outputs, module.excess_precision)
