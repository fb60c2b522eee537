"""simplify: StableHLO -> StableHLO. Folds constants, removes operations that change nothing, and joins equal ones.

Every rewrite is exact: the result has the same bits. Operations of limited accuracy (exp, tanh, ...) are therefore never
folded here; and random bits are never touched.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from torch_neuronx_compile.dim import Dim
from torch_neuronx_compile.passes.numbers import to_float, to_float32, to_integer
from torch_neuronx_compile.passes.sizes import is_number, same_all
from torch_neuronx_compile.stablehlo.value import FLOATS, Operation, TensorType, Value, topological

Number = bool | int | float


def constant_of(value: Value) -> Number | None:
    """The number that fills a value, if it is a constant."""
    operation = value.operation
    while operation is not None and operation.name in ("broadcast_in_dim", "reshape", "transpose", "reverse", "slice"):
        operation = operation.operands[0].operation
    if operation is None or operation.name != "constant":
        return None
    number = operation.attributes["value"]
    return None if isinstance(number, (tuple, Dim)) else number


def _make(
    name: str, operands: tuple[Value, ...], attributes: dict[str, Any], type: TensorType, like: Operation
) -> Value:
    operation = Operation(name, operands, attributes, (type,))
    operation.location = like.location
    return Value(operation, 0, type)


def _constant(number: Number, type: TensorType, like: Operation) -> Value:
    number = to_float(number, type.dtype) if type.dtype in FLOATS else to_integer(int(number), type.dtype)
    return _make("constant", (), {"value": number, "shape": type.shape, "dtype": type.dtype}, type, like)


def _divide(a: Number, b: Number, dtype: str) -> Number | None:
    if dtype not in FLOATS:
        return None if b == 0 else (abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1))
    if b == 0:
        return None  # infinities and NaN: left to the program
    return a / b


def _larger(a: Number, b: Number, dtype: str) -> Number | None:
    return None if a != a or b != b or a == b == 0 else max(a, b)


def _smaller(a: Number, b: Number, dtype: str) -> Number | None:
    return None if a != a or b != b or a == b == 0 else min(a, b)


# A result in double precision, of float32 operands, rounds to the very float32 that float32 arithmetic gives (+ - * / and sqrt).
_FOLD: dict[str, Callable[..., Number | None]] = {
    "add": lambda a, b, dtype: (a or b) if dtype == "i1" else a + b,
    "subtract": lambda a, b, dtype: a - b,
    "multiply": lambda a, b, dtype: (a and b) if dtype == "i1" else a * b,
    "divide": _divide,
    "maximum": _larger,
    "minimum": _smaller,
    "negate": lambda a, dtype: -a,
    "abs": lambda a, dtype: abs(a),
    "sqrt": lambda a, dtype: math.sqrt(a) if a >= 0 else None,
    "and": lambda a, b, dtype: a & b,
    "or": lambda a, b, dtype: a | b,
    "xor": lambda a, b, dtype: a ^ b,
}
_DIRECTIONS: dict[str, Callable[[Number, Number], bool]] = {
    "EQ": lambda a, b: a == b, "NE": lambda a, b: a != b, "LT": lambda a, b: a < b, "LE": lambda a, b: a <= b,
    "GT": lambda a, b: a > b, "GE": lambda a, b: a >= b,
}  # fmt: skip


def _fold(operation: Operation, operands: Sequence[Value]) -> Value | None:
    """A constant in place of an operation on constants."""
    name = operation.name
    type = operation.types[0]
    if name not in _FOLD and name not in ("convert", "compare"):
        return None
    numbers = [constant_of(value) for value in operands]
    if any(number is None for number in numbers):
        return None
    source = operands[0].dtype
    if name == "convert":
        (number,) = numbers
        if type.dtype in FLOATS:
            return _constant(to_float32(number), type, operation)
        if type.dtype == "i1":
            return _constant(number != 0, type, operation)
        if source in FLOATS and not (math.isfinite(number) and abs(number) < 2**31):
            return None  # out of range: the program's rule holds
        return _constant(int(number), type, operation)
    if name == "compare":
        return _constant(_DIRECTIONS[operation.attributes["direction"]](*numbers), type, operation)
    try:
        number = _FOLD[name](*numbers, type.dtype)
    except OverflowError:
        return None
    return None if number is None else _constant(number, type, operation)


def _is(value: Value, number: Number) -> bool:
    """Whether a value is filled with `number`; 0.0 and -0.0 differ."""
    found = constant_of(value)
    if found is None or found != number:
        return False
    return not isinstance(found, float) or math.copysign(1.0, found) == math.copysign(1.0, number)


def _identity(operation: Operation, operands: Sequence[Value]) -> Value | None:
    """The operand that an operation returns unchanged."""
    name, x = operation.name, operands[0]
    if name == "multiply":
        one = True if x.dtype == "i1" else 1
        return x if _is(operands[1], one) else operands[1] if _is(x, one) else None
    if name == "add":
        # x + 0.0 turns -0.0 into 0.0; x + -0.0 is x.
        zero = -0.0 if x.dtype in FLOATS else 0
        return x if _is(operands[1], zero) else operands[1] if _is(x, zero) else None
    if name == "subtract":
        return x if _is(operands[1], 0.0 if x.dtype in FLOATS else 0) else None
    if name == "divide":
        return x if _is(operands[1], 1) else None
    if name == "select":
        predicate = constant_of(x)
        return None if predicate is None else operands[1] if predicate else operands[2]
    if name == "convert":
        if x.dtype == operation.attributes["dtype"]:
            return x
        inner = x.operation
        if inner is not None and inner.name == "convert" and inner.operands[0].dtype == operation.attributes["dtype"]:
            if _contains(x.dtype, inner.operands[0].dtype):  # there and back through a wider type
                return inner.operands[0]
        return None
    if name == "reshape":
        return x if same_all(x.shape, operation.attributes["shape"]) else None
    if name == "broadcast_in_dim":
        same_order = operation.attributes["dimensions"] == tuple(range(x.rank))
        return x if same_order and same_all(x.shape, operation.attributes["shape"]) else None
    if name == "transpose":
        return x if operation.attributes["permutation"] == tuple(range(x.rank)) else None
    if name == "slice":
        whole = all(is_number(a, 0) for a in operation.attributes["start"]) and all(
            is_number(a, 1) for a in operation.attributes["stride"]
        )
        return x if whole and same_all(operation.attributes["limit"], x.shape) else None
    if name == "concatenate":
        return x if len(operands) == 1 else None
    if name == "pad":
        untouched = all(is_number(n, 0) for key in ("low", "high", "interior") for n in operation.attributes[key])
        return x if untouched else None
    if name == "reduce":
        return x if not operation.attributes["dimensions"] else None
    return None


Piece = tuple[int, Value | None]  # length along a dimension, and what is there; None for zeros


def _pieces(value: Value) -> tuple[int, list[Piece]] | None:
    """A value as a sequence of pieces along one dimension: something in a frame of zeros, or a concatenation."""
    operation = value.operation
    if operation is None or not value.type.is_static:
        return None
    if operation.name == "concatenate":
        dimension = operation.attributes["dimension"]
        return dimension, [(x.shape[dimension], None if _is(x, 0) else x) for x in operation.operands]
    if operation.name != "pad" or not _is(operation.operands[1], 0):
        return None
    low, high = operation.attributes["low"], operation.attributes["high"]
    framed = [d for d in range(value.rank) if low[d] or high[d]]
    if len(framed) != 1 or any(operation.attributes["interior"]):
        return None
    (dimension,) = framed
    x = operation.operands[0]
    pieces: list[Piece] = [(low[dimension], None), (x.shape[dimension], x), (high[dimension], None)]
    return dimension, [piece for piece in pieces if piece[0]]


def _join_frames(operation: Operation, operands: Sequence[Value]) -> Value | None:
    """The sum of things in frames of zeros that do not meet, as a concatenation: what the gradient of several slices of one tensor
    comes to. Every element is still added to 0, which turns -0.0 into 0.0.
    """
    if operation.name != "add" or all(x.operation is None or x.operation.name != "pad" for x in operands):
        return None
    found = [_pieces(x) for x in operands]
    if found[0] is None or found[1] is None or found[0][0] != found[1][0]:
        return None
    dimension = found[0][0]
    left, right = list(found[0][1]), list(found[1][1])
    parts: list[Value] = []
    while left and right:
        (a, x), (b, y) = left[0], right[0]
        if x is not None and y is not None:
            return None
        length = min(a, b)
        shape = tuple(length if d == dimension else size for d, size in enumerate(operands[0].shape))
        type = TensorType(shape, operands[0].dtype)
        part = _constant(0, type, operation)
        for pieces, (size, held) in ((left, (a, x)), (right, (b, y))):
            if size == length:
                pieces.pop(0)
            else:
                pieces[0] = (size - length, None)
                if held is not None:
                    return None  # only a part of it
            if held is not None:
                part = _make("add", (held, part), {}, type, operation) if type.dtype in FLOATS else held
        parts.append(part)
    type = operation.types[0]
    return _make("concatenate", tuple(parts), {"dimension": dimension}, type, operation)


_WIDTH = {"i1": 1, "ui8": 8, "i8": 8, "i16": 16, "i32": 32, "i64": 64}


def _contains(wide: str, narrow: str) -> bool:
    """Whether every element of the narrow type is one of the wide type."""
    if narrow in ("bf16", "f16"):
        return wide in ("f32", "f64")
    if narrow in FLOATS or wide in FLOATS:
        return False
    return _WIDTH[wide] > _WIDTH[narrow]


def _key(operation: Operation, operands: Sequence[Value]) -> tuple | None:
    """What two equal operations have in common; None for one that is like no other."""
    if operation.name in ("random_bits", "custom_call"):
        return None
    attributes = operation.attributes
    parts: list[Any] = []
    for name in attributes:
        value = attributes[name]
        if isinstance(value, float):
            value = value.hex()
        elif isinstance(value, Dim):
            value = value.terms
        elif isinstance(value, tuple) and name in ("shape", "start", "limit", "sizes", "slice_sizes", "low", "high"):
            value = tuple(item.terms if isinstance(item, Dim) else item for item in value)
        parts.append(value)
    # True, 1 and 1.0 are one key for Python, and -0.0 is 0.0; a constant's type and bits are told apart by dtype and hex().
    return (operation.name, *((id(v.operation) if v.operation else -1 - v.index, v.index) for v in operands), *parts)


def simplify(results: Sequence[Value]) -> tuple[Value, ...]:
    """Equal results with fewer operations. What the results do not need is not there any more."""
    new: dict[int, Value] = {}
    known: dict[tuple, Value] = {}

    def of(value: Value) -> Value:
        return value if value.operation is None else new.get(id(value.operation), value)

    for operation in topological(results):
        if len(operation.types) != 1:
            if any(of(value) is not value for value in operation.operands):
                raise AssertionError(f"{operation.name} has several results")
            continue
        operands = tuple(map(of, operation.operands))
        if operands:
            found = _fold(operation, operands) or _identity(operation, operands) or _join_frames(operation, operands)
            if found is not None:
                new[id(operation)] = found
                continue
        key = _key(operation, operands)
        if key is not None:
            value = known.get(key)
            if value is not None:
                new[id(operation)] = value
                continue
        if all(a is b for a, b in zip(operands, operation.operands, strict=True)):
            value = Value(operation, 0, operation.types[0])
        else:
            value = _make(operation.name, operands, operation.attributes, operation.types[0], operation)
        new[id(operation)] = value
        if key is not None:
            known[key] = value
    return tuple(map(of, results))
