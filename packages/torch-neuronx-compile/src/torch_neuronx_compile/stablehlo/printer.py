"""StableHLO's standard text for the module that a list of results spans."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from torch_neuronx_compile.dim import Dim, Size
from torch_neuronx_compile.stablehlo.literal import literal, representable
from torch_neuronx_compile.stablehlo.ops import OPS, HloTypeError, kind
from torch_neuronx_compile.stablehlo.value import Operation, Parameter, TensorType, Value, parameters, topological


def print_module(results: Sequence[Value], inputs: Sequence[Parameter] | None = None, *, name: str = "main",
                 symbolic: bool = False) -> str:  # fmt: skip
    """The text of a module with one function `name` that takes `inputs` (default: the parameters in use) and returns `results`.

    A symbolic size has no place in StableHLO's static types: with `symbolic` it prints as `?` and every line that holds one
    ends in a comment with the expressions (to read, not to parse); without it `HloTypeError` is raised.
    """
    return _Printer(symbolic).module(results, parameters(results) if inputs is None else inputs, name)


def _array(values: Sequence[Size]) -> str:
    return f"array<i64{': ' if values else ''}{', '.join(map(str, values))}>"


def _list(values: Sequence[Size]) -> str:
    return f"[{', '.join(map(str, values))}]"


class _Printer:
    def __init__(self, symbolic: bool):
        self.symbolic = symbolic
        self.lines: list[str] = []
        self.names: dict[Value, str] = {}
        self.count = 0
        self.comments: list[str] = []

    def module(self, results: Sequence[Value], inputs: Sequence[Parameter], name: str) -> str:
        arguments = []
        for position, parameter in enumerate(inputs):
            self.names[parameter] = f"%arg{position}"
            arguments.append(f"%arg{position}: {self.type(parameter.type)}")
        for operation in topological(results):
            self.operation(operation)
        missing = [value for value in results if value not in self.names]
        if missing:
            raise HloTypeError(f"print_module: results that are parameters outside of the inputs: {missing}")
        types = ", ".join(self.type(value.type) for value in results)
        head = f"func.func public @{name}({', '.join(arguments)}) -> ({types}) {{"
        head += self.comment()
        self.lines.append(
            f"return {', '.join(self.names[value] for value in results)} : {types}" if results else "return"
        )
        body = "\n".join("    " + line for line in self.lines)
        return f"module @{name} {{\n  {head}\n{body}\n  }}\n}}\n"

    def operation(self, operation: Operation) -> None:
        spec = OPS[operation.name]
        for operand in operation.operands:
            if operand not in self.names:
                raise HloTypeError(f"print_module: {operation.name} reads {operand}, which is not among the inputs")
        names = tuple(self.fresh() for _ in operation.types)
        _STYLES[spec.style](self, operation, names[0] if len(names) == 1 else f"({', '.join(names)})")
        comment = self.comment()
        if operation.location:
            comment += f"{' ' if comment else '  // '}{operation.location}"
        self.lines[-1] += comment
        for index, name in enumerate(names):
            self.names[Value(operation, index, operation.types[index])] = name

    # The parts of a line.

    def fresh(self) -> str:
        self.count += 1
        return f"%{self.count - 1}"

    def comment(self) -> str:
        comment = f"  // {', '.join(self.comments)}" if self.comments else ""
        self.comments = []
        return comment

    def type(self, type: TensorType) -> str:
        if not type.is_static:
            if not self.symbolic:
                raise HloTypeError(
                    f"print_module: {type} has symbolic sizes; freeze the module or ask for symbolic=True"
                )
            self.comments.append(str(type))
        return f"tensor<{''.join(f'{self.size(s)}x' for s in type.shape)}{type.dtype}>"

    def size(self, size: Size) -> str:
        return "?" if isinstance(size, Dim) else str(size)

    def operands(self, operation: Operation) -> str:
        return ", ".join(self.names[operand] for operand in operation.operands)

    def signature(self, operation: Operation) -> str:
        types = ", ".join(self.type(operand.type) for operand in operation.operands)
        results = ", ".join(map(self.type, operation.types))
        return f"({types}) -> {results if len(operation.types) == 1 else f'({results})'}"

    def generic(self, operation: Operation, name: str, attributes: str = "") -> None:
        braces = f" {{{attributes}}}" if attributes else ""
        self.line(
            name, f'"{OPS[operation.name].text}"({self.operands(operation)}){braces} : {self.signature(operation)}'
        )

    def line(self, name: str, text: str) -> None:
        self.lines.append(f"{name} = {text}")

    def neutral(self, body: str, dtype: str) -> str:
        """Prints the initial value of a reduction and returns its name."""
        name = self.fresh()
        value = _neutral(body, dtype)
        self.line(name, f"stablehlo.constant dense<{literal(representable(value, dtype), dtype)}> : tensor<{dtype}>")
        return name

    def region(self, body: str, dtype: str, indent: str = "") -> str:
        """The region of a reduction with one operand."""
        scalar = f"tensor<{dtype}>"
        a, b, c = self.fresh(), self.fresh(), self.fresh()
        text = b if body == "set" else c
        compute = "" if body == "set" else f"{indent}  {c} = stablehlo.{body} {a}, {b} : {scalar}\n    "
        return (f"({{\n    {indent}^bb0({a}: {scalar}, {b}: {scalar}):\n    {compute}"
                f"{indent}  stablehlo.return {text} : {scalar}\n    {indent}}})")  # fmt: skip


def _neutral(body: str, dtype: str) -> float | int | bool:
    if body in ("add", "or"):
        return 0
    if body == "multiply":
        return 1
    if body == "and":
        return -1
    largest = body in ("minimum", "argmin")
    if dtype == "i1":
        return largest
    if kind(dtype) == "f":
        return math.inf if largest else -math.inf
    if dtype == "ui8":
        return 255 if largest else 0
    top = 1 << (int(dtype[1:]) - 1)
    return top - 1 if largest else -top


def _generic(p: _Printer, o: Operation, name: str) -> None:
    p.generic(o, name)


def _same_type(p: _Printer, o: Operation, name: str) -> None:
    p.line(name, f"{OPS[o.name].text} {p.operands(o)} : {p.type(o.types[0])}")


def _arrow(p: _Printer, o: Operation, name: str) -> None:
    p.line(name, f"{OPS[o.name].text} {p.operands(o)} : {p.signature(o)}")


def _compare(p: _Printer, o: Operation, name: str) -> None:
    dtype = o.operands[0].dtype
    order = "FLOAT" if kind(dtype) == "f" else "UNSIGNED" if dtype in ("i1", "ui8") else "SIGNED"
    p.line(name, f"stablehlo.compare {o.attributes['direction']}, {p.operands(o)}, {order} : {p.signature(o)}")


def _constant(p: _Printer, o: Operation, name: str) -> None:
    value, type = o.attributes["value"], o.types[0]
    if isinstance(value, tuple):
        text = _nested([literal(v, type.dtype) for v in value], type.shape)
    elif isinstance(value, Dim):
        if not p.symbolic:
            raise HloTypeError(
                f"print_module: the constant {value} is symbolic; freeze the module or ask for symbolic=True"
            )
        p.comments.append(str(value))
        text = "?"
    else:
        text = literal(value, type.dtype)
    p.line(name, f"stablehlo.constant dense<{text}> : {p.type(type)}")


def _nested(numbers: list[str], shape: Sequence[int]) -> str:
    if not numbers:
        return ""
    if not shape:
        return numbers[0]
    step = len(numbers) // shape[0]
    return "[" + ", ".join(_nested(numbers[i : i + step], shape[1:]) for i in range(0, len(numbers), step)) + "]"


def _iota(p: _Printer, o: Operation, name: str) -> None:
    p.line(name, f"stablehlo.iota dim = {o.attributes['dimension']} : {p.type(o.types[0])}")


def _with_list(attribute: str, word: str) -> Callable[[_Printer, Operation, str], None]:
    def style(p: _Printer, o: Operation, name: str) -> None:
        p.line(
            name, f"{OPS[o.name].text} {p.operands(o)}, {word} = {_list(o.attributes[attribute])} : {p.signature(o)}"
        )

    return style


def _reverse(p: _Printer, o: Operation, name: str) -> None:
    p.line(
        name, f"stablehlo.reverse {p.operands(o)}, dims = {_list(o.attributes['dimensions'])} : {p.type(o.types[0])}"
    )


def _slice(p: _Printer, o: Operation, name: str) -> None:
    a = o.attributes
    p.generic(
        o,
        name,
        f"start_indices = {_array(a['start'])}, limit_indices = {_array(a['limit'])}, strides = {_array(a['stride'])}",
    )


def _concatenate(p: _Printer, o: Operation, name: str) -> None:
    p.line(name, f"stablehlo.concatenate {p.operands(o)}, dim = {o.attributes['dimension']} : {p.signature(o)}")


def _pad(p: _Printer, o: Operation, name: str) -> None:
    a = o.attributes
    p.line(name, f"stablehlo.pad {p.operands(o)}, low = {_list(a['low'])}, high = {_list(a['high'])}, "
                 f"interior = {_list(a['interior'])} : {p.signature(o)}")  # fmt: skip


def _dynamic_slice(p: _Printer, o: Operation, name: str) -> None:
    p.generic(o, name, f"slice_sizes = {_array(o.attributes['sizes'])}")


def _reduce(p: _Printer, o: Operation, name: str) -> None:
    body, dimensions, x = o.attributes["body"], o.attributes["dimensions"], o.operands[0]
    if body in ("argmax", "argmin"):
        _arg_reduce(p, o, name)
        return
    start = p.neutral(body, x.dtype)
    text = f'"stablehlo.reduce"({p.names[x]}, {start}) {p.region(body, x.dtype)} {{dimensions = {_array(dimensions)}}}'
    p.line(name, f"{text} : ({p.type(x.type)}, tensor<{x.dtype}>) -> {p.type(o.types[0])}")


def _arg_reduce(p: _Printer, o: Operation, name: str) -> None:
    """A reduction of (value, index) pairs that keeps the better value, and of equal ones the smaller index."""
    body, (dimension,), x = o.attributes["body"], o.attributes["dimensions"], o.operands[0]
    dtype = x.dtype
    scalar, index, flag = f"tensor<{dtype}>", "tensor<i64>", "tensor<i1>"
    index_type = TensorType(x.shape, "i64")
    iota, start, start_index = p.fresh(), p.neutral(body, dtype), p.fresh()
    p.line(start_index, f"stablehlo.constant dense<0> : {index}")
    p.line(iota, f"stablehlo.iota dim = {dimension} : {p.type(index_type)}")
    order = "FLOAT" if kind(dtype) == "f" else "UNSIGNED" if dtype == "ui8" else "SIGNED"
    a, ai, b, bi = (p.fresh() for _ in range(4))
    inner: list[str] = []

    def emit(text: str) -> str:
        result = p.fresh()
        inner.append(f"  {result} = {text}")
        return result

    def test(direction: str, left: str, right: str, type: str, order: str) -> str:
        return emit(f"stablehlo.compare {direction}, {left}, {right}, {order} : ({type}, {type}) -> {flag}")

    def both(operation: str, left: str, right: str) -> str:
        return emit(f"stablehlo.{operation} {left}, {right} : {flag}")

    better = test("GT" if body == "argmax" else "LT", a, b, scalar, order)
    equal = test("EQ", a, b, scalar, order)
    if kind(dtype) == "f":
        a_nan, b_nan = test("NE", a, a, scalar, order), test("NE", b, b, scalar, order)
        b_number = test("EQ", b, b, scalar, order)
        better = both("or", better, both("and", a_nan, b_number))
        equal = both("or", equal, both("and", a_nan, b_nan))
    first = test("LT", ai, bi, index, "SIGNED")
    left = both("or", better, both("and", equal, first))
    value = emit(f'"stablehlo.select"({left}, {a}, {b}) : ({flag}, {scalar}, {scalar}) -> {scalar}')
    chosen = emit(f'"stablehlo.select"({left}, {ai}, {bi}) : ({flag}, {index}, {index}) -> {index}')
    body_text = "\n    ".join(inner)
    result_type = p.type(o.types[0])
    kept = p.type(TensorType(o.types[0].shape, dtype))
    pair = p.fresh()
    p.lines.append(
        f'{pair}:2 = "stablehlo.reduce"({p.names[x]}, {iota}, {start}, {start_index}) ({{\n'
        f"    ^bb0({a}: {scalar}, {ai}: {index}, {b}: {scalar}, {bi}: {index}):\n    {body_text}\n"
        f"      stablehlo.return {value}, {chosen} : {scalar}, {index}\n    }}) {{dimensions = {_array((dimension,))}}} : "
        f"({p.type(x.type)}, {p.type(index_type)}, {scalar}, {index}) -> ({kept}, {result_type})"
    )
    # The second result is the operation's value; an identity gives it a name of its own.
    p.line(name, f"stablehlo.convert {pair}#1 : ({result_type}) -> {result_type}")


def _scan(p: _Printer, o: Operation, name: str) -> None:
    """A reduction over windows that end (reverse: begin) at each element and reach over the whole dimension."""
    body, dimension, reverse = o.attributes["body"], o.attributes["dimension"], o.attributes["reverse"]
    x = o.operands[0]
    size = x.shape[dimension]
    window = [size if d == dimension else 1 for d in range(x.rank)]
    if 0 in x.shape:  # a window must have an element
        p.line(name, f"stablehlo.convert {p.names[x]} : ({p.type(x.type)}) -> {p.type(x.type)}")
        return
    edge = f"[0, {size - 1}]" if reverse else f"[{size - 1}, 0]"
    padding = ", ".join(edge if d == dimension else "[0, 0]" for d in range(x.rank))
    start = p.neutral(body, x.dtype)
    p.line(name, f'"stablehlo.reduce_window"({p.names[x]}, {start}) {p.region(body, x.dtype)} '
                 f"{{window_dimensions = {_array(window)}, padding = dense<[{padding}]> : tensor<{x.rank}x2xi64>}} : "
                 f"({p.type(x.type)}, tensor<{x.dtype}>) -> {p.type(o.types[0])}")  # fmt: skip


def _dot_general(p: _Printer, o: Operation, name: str) -> None:
    a = o.attributes
    p.generic(o, name, "dot_dimension_numbers = #stablehlo.dot<"
              f"lhs_batching_dimensions = {_list(a['lhs_batch'])}, rhs_batching_dimensions = {_list(a['rhs_batch'])}, "
              f"lhs_contracting_dimensions = {_list(a['lhs_contracting'])}, "
              f"rhs_contracting_dimensions = {_list(a['rhs_contracting'])}>, "
              "precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]")  # fmt: skip


def _fields(o: Operation, names: dict[str, str]) -> str:
    """Non-empty lists of dimension numbers, by their names in the text."""
    return ", ".join(
        f"{text} = {_list(o.attributes[key]) if isinstance(o.attributes[key], tuple) else o.attributes[key]}"
        for key, text in names.items() if o.attributes[key] != ()
    )  # fmt: skip


def _gather(p: _Printer, o: Operation, name: str) -> None:
    a = o.attributes
    numbers = _fields(o, {n: n for n in ("offset_dims", "collapsed_slice_dims", "operand_batching_dims",
                                         "start_indices_batching_dims", "start_index_map", "index_vector_dim")})  # fmt: skip
    p.generic(o, name, f"dimension_numbers = #stablehlo.gather<{numbers}>, slice_sizes = {_array(a['slice_sizes'])}, "
              f'neuron.out_of_range = "{a["out_of_range"]}"')  # fmt: skip


def _scatter(p: _Printer, o: Operation, name: str) -> None:
    a = o.attributes
    numbers = _fields(o, {n: n for n in ("update_window_dims", "inserted_window_dims", "input_batching_dims",
                                         "scatter_indices_batching_dims", "scatter_dims_to_operand_dims", "index_vector_dim")})  # fmt: skip
    region = p.region(a["body"], o.types[0].dtype)
    p.line(name, f'"stablehlo.scatter"({p.operands(o)}) {region} {{scatter_dimension_numbers = #stablehlo.scatter<{numbers}>, '
                 f'neuron.out_of_range = "{a["out_of_range"]}"}} : {p.signature(o)}')  # fmt: skip


def _random_bits(p: _Printer, o: Operation, name: str) -> None:
    """A Philox generator whose state is (key, low and high word of the counter) gives the four words of each counter side by side."""
    seed, offset = (p.names[x] for x in o.operands)
    shape, word = o.attributes["shape"], o.attributes["word"]
    type = p.type(o.types[0])
    if 0 in shape:
        p.line(name, f"stablehlo.constant dense<0> : {type}")
        return
    state = []
    for number in (seed, offset):
        wide, one = p.fresh(), p.fresh()
        p.line(wide, f"stablehlo.bitcast_convert {number} : (tensor<i64>) -> tensor<ui64>")
        p.line(one, f"stablehlo.reshape {wide} : (tensor<ui64>) -> tensor<1xui64>")
        state.append(one)
    joined, pair, word_of, flat, bits, high = (p.fresh() for _ in range(6))
    p.line(high, "stablehlo.constant dense<0> : tensor<1xui64>")
    state.append(high)
    all_words = TensorType((*shape, 4), "i32")
    wide_type = p.type(all_words).replace("xi32>", "xui32>")
    one_type = p.type(TensorType((*shape, 1), "i32")).replace("xi32>", "xui32>")
    flat_type = type.replace("xi32>", "xui32>").replace("<i32>", "<ui32>")
    p.line(
        joined,
        f"stablehlo.concatenate {', '.join(state)}, dim = 0 : "
        "(tensor<1xui64>, tensor<1xui64>, tensor<1xui64>) -> tensor<3xui64>",
    )
    p.line(f"{pair}, {bits}", f'"stablehlo.rng_bit_generator"({joined}) {{rng_algorithm = #stablehlo<rng_algorithm PHILOX>}} : '
           f"(tensor<3xui64>) -> (tensor<3xui64>, {wide_type})")  # fmt: skip
    p.line(word_of, f'"stablehlo.slice"({bits}) {{start_indices = {_array([0] * len(shape) + [word])}, '
           f"limit_indices = {_array([*shape, word + 1])}, strides = {_array([1] * (len(shape) + 1))}}} : "
           f"({wide_type}) -> {one_type}")  # fmt: skip
    p.line(flat, f"stablehlo.reshape {word_of} : ({one_type}) -> {flat_type}")
    p.line(name, f"stablehlo.bitcast_convert {flat} : ({flat_type}) -> {type}")


def _custom_call(p: _Printer, o: Operation, name: str) -> None:
    a = o.attributes
    config = a["backend_config"].replace("\\", "\\\\").replace('"', '\\"')
    many = len(o.types) > 1
    aliases = ", ".join(
        f"#stablehlo.output_operand_alias<output_tuple_indices = {_list([r] if many else [])}, "
        f"operand_index = {i}, operand_tuple_indices = []>" for r, i in a["aliases"]
    )  # fmt: skip
    p.generic(o, name.strip("()"), f'call_target_name = "{a["target"]}", backend_config = "{config}", '
              f"api_version = 2 : i32, output_operand_aliases = [{aliases}]")  # fmt: skip


_STYLES: dict[str, Callable[[_Printer, Operation, str], None]] = {
    "generic": _generic,
    "same_type": _same_type,
    "arrow": _arrow,
    "compare": _compare,
    "constant": _constant,
    "iota": _iota,
    "broadcast_in_dim": _with_list("dimensions", "dims"),
    "transpose": _with_list("permutation", "dims"),
    "reverse": _reverse,
    "slice": _slice,
    "concatenate": _concatenate,
    "pad": _pad,
    "dynamic_slice": _dynamic_slice,
    "reduce": _reduce,
    "scan": _scan,
    "dot_general": _dot_general,
    "gather": _gather,
    "scatter": _scatter,
    "random_bits": _random_bits,
    "custom_call": _custom_call,
}
