"""Immutable StableHLO values. A module is whatever is reachable from its results; there is no builder and no state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from torch_neuronx_compile.dim import Dim, Size

DTYPES = ("f32", "bf16", "f16", "f64", "i1", "ui8", "i8", "i16", "i32", "i64")
_KNOWN = frozenset(DTYPES)
FLOATS = frozenset(("f32", "bf16", "f16", "f64"))
INTEGERS = frozenset(("ui8", "i8", "i16", "i32", "i64"))  # without i1, StableHLO's boolean

_location: ContextVar[str] = ContextVar("location", default="")


@contextmanager
def location(name: str) -> Iterator[None]:
    """Operations made inside the block carry `name` (an ATen operator, an FX node and its line) for messages."""
    token = _location.set(name)
    try:
        yield
    finally:
        _location.reset(token)


def current_location() -> str:
    """The name that operations made here carry."""
    return _location.get()


class TensorType:
    """Sizes and element type. Sizes are ints, or `Dim`s while they are symbolic."""

    __slots__ = ("shape", "dtype")

    def __init__(self, shape: Iterable[Size], dtype: str):
        self.shape: tuple[Size, ...] = tuple(shape)
        self.dtype = dtype
        if dtype not in _KNOWN:
            raise ValueError(f"unknown element type {dtype!r}; known: {', '.join(DTYPES)}")

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def is_static(self) -> bool:
        """Whether every size is an int."""
        return not any(isinstance(size, Dim) for size in self.shape)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorType) and self.dtype == other.dtype and self.shape == other.shape

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype))

    def __repr__(self) -> str:
        return f"tensor<{'x'.join([*('(' + str(s) + ')' if isinstance(s, Dim) else str(s) for s in self.shape), self.dtype])}>"


class Operation:
    """One application of an operation of the table in `ops`: name, operands, attributes, result types. Never changed once made."""

    __slots__ = ("name", "operands", "attributes", "types", "location")

    def __init__(
        self, name: str, operands: tuple[Value, ...], attributes: Mapping[str, Any], types: tuple[TensorType, ...]
    ):
        self.name = name
        self.operands = operands
        self.attributes = attributes
        self.types = types
        self.location = _location.get()

    def results(self) -> tuple[Value, ...]:
        """One new value per result."""
        return tuple(Value(self, index, type) for index, type in enumerate(self.types))

    def __repr__(self) -> str:
        return f"<{self.name}({', '.join(map(repr, (o.type for o in self.operands)))}) -> {self.types}>"


class Value:
    """Result number `index` of an operation. Two values are the same value if operation and index are."""

    __slots__ = ("operation", "index", "type", "shape", "dtype")

    operation: Operation | None

    def __init__(self, operation: Operation | None, index: int, type: TensorType):
        self.operation = operation
        self.index = index
        self.type = type
        self.shape = type.shape
        self.dtype = type.dtype

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def wrapped(self) -> bool:
        """Whether this stands for a Python number, which ranks below tensors in type promotion."""
        return False

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, Value)
            and self.operation is not None
            and self.operation is other.operation
            and self.index == other.index
        )

    def __hash__(self) -> int:
        return hash((id(self.operation or self), self.index))

    def __repr__(self) -> str:
        return f"<{self.operation.name if self.operation else 'value'}#{self.index}: {self.type}>"


class Parameter(Value):
    """An input of the module. `index` is its number.

    role: "tensor", or "scalar" for a number that is given at launch (rank 0; its element type is "f64", "i64" or "i1",
    whatever the number was). `wrapped` marks a Python number.
    """

    __slots__ = ("role", "_wrapped")

    def __init__(self, number: int, type: TensorType, role: str = "tensor", *, wrapped: bool = False):
        if role not in ("tensor", "scalar"):
            raise ValueError(f'parameter {number}: role {role!r}; known: "tensor", "scalar"')
        if role == "scalar" and (type.shape or type.dtype not in ("f64", "i64", "i1")):
            raise ValueError(
                f"parameter {number}: a launch scalar of type {type}; must be of rank 0 and f64, i64 or i1"
            )
        super().__init__(None, number, type)
        self.role = role
        self._wrapped = wrapped

    @property
    def number(self) -> int:
        """Position among the module's parameters."""
        return self.index

    @property
    def wrapped(self) -> bool:
        return self._wrapped

    def __repr__(self) -> str:
        return f"<parameter {self.index} ({self.role}): {self.type}>"


def topological(results: Sequence[Value]) -> list[Operation]:
    """The operations that the results need, each once, operands first."""
    order: list[Operation] = []
    seen: set[int] = set()
    stack = [(value.operation, False) for value in reversed(results) if value.operation is not None]
    while stack:
        operation, finished = stack.pop()
        if finished:
            order.append(operation)
            continue
        if id(operation) in seen:
            continue
        seen.add(id(operation))
        stack.append((operation, True))
        stack.extend(
            (operand.operation, False)
            for operand in reversed(operation.operands)
            if operand.operation is not None and id(operand.operation) not in seen
        )
    return order


def parameters(results: Sequence[Value]) -> list[Parameter]:
    """The parameters that the results need, in order of their numbers."""
    found = {
        operand.number: operand
        for operation in topological(results)
        for operand in operation.operands
        if isinstance(operand, Parameter)
    }
    found.update((value.number, value) for value in results if isinstance(value, Parameter))
    return [found[number] for number in sorted(found)]
