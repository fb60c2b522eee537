"""Micro-programs: one element-wise or reducing StableHLO operation -> micro-operations on registers.

Every operation rounds its result to its element type, whatever it is fused with.
"""

from __future__ import annotations

from collections.abc import Callable

from torch_neuronx_compile.dim import Dim, Size
from torch_neuronx_compile.passes.numbers import to_float, to_integer
from torch_neuronx_compile.passes.plan import Node
from torch_neuronx_compile.passes.program import STORAGE, Micro
from torch_neuronx_compile.passes.sizes import resolved

UNARY = {
    "abs": "ABS", "negate": "NEG", "sign": "SIGN", "floor": "FLOOR", "ceil": "CEIL", "round_nearest_even": "ROUND",
    "exponential": "EXP", "exponential_minus_one": "EXPM1", "log": "LOG", "log_plus_one": "LOG1P", "sqrt": "SQRT",
    "rsqrt": "RSQRT", "tanh": "TANH", "logistic": "LOGISTIC", "sine": "SIN", "cosine": "COS", "tan": "TAN", "erf": "ERF",
    "erfc": "ERFC", "erf_inv": "ERF_INV", "lgamma": "LGAMMA", "digamma": "DIGAMMA", "asin": "ASIN", "acos": "ACOS",
    "atan": "ATAN", "sinh": "SINH", "cosh": "COSH", "asinh": "ASINH", "acosh": "ACOSH", "atanh": "ATANH",
}  # fmt: skip
BINARY = {
    "add": "ADD", "subtract": "SUB", "multiply": "MUL", "divide": "DIV", "remainder": "REM", "power": "POW", "maximum": "MAX",
    "minimum": "MIN", "atan2": "ATAN2", "and": "AND", "or": "OR", "xor": "XOR", "shift_left": "SHL",
    "shift_right_arithmetic": "SHR",
}  # fmt: skip
BOOLEAN = {"add": "OR", "multiply": "AND", "maximum": "OR", "minimum": "AND", "and": "AND", "or": "OR", "xor": "XOR"}
REDUCTIONS = {
    "add": "REDUCE_SUM", "multiply": "REDUCE_PROD", "maximum": "REDUCE_MAX", "minimum": "REDUCE_MIN", "and": "REDUCE_AND",
    "or": "REDUCE_OR", "argmax": "REDUCE_ARGMAX", "argmin": "REDUCE_ARGMIN",
}  # fmt: skip
# Results that are elements of the operands' type without rounding.
EXACT = frozenset(("abs", "negate", "sign", "floor", "ceil", "round_nearest_even", "maximum", "minimum", "select", "clamp",
                   "and", "or", "xor", "copy", "remainder", "shift_right_arithmetic"))  # fmt: skip
# Of those, the ones that can leave a narrow integer type.
WRAPS = frozenset(("abs", "negate", "remainder"))
TRANSCENDENTAL = frozenset(UNARY.values()) - {"ABS", "NEG", "SIGN", "FLOOR", "CEIL", "ROUND"} | {"POW", "ATAN2"}

_ROUND = {"bf16": "ROUND_BF16", "f16": "ROUND_FP16", "i8": "WRAP_INT8", "ui8": "WRAP_UINT8", "i16": "WRAP_INT16"}
# Types whose every element is one of the other type.
_INSIDE = {
    "bf16": ("f32", "f64"), "f16": ("f32", "f64"), "f32": ("f64",), "f64": ("f32",),
    "i1": ("ui8", "i8", "i16", "i32", "i64"), "ui8": ("i16", "i32", "i64"), "i8": ("i16", "i32", "i64"),
    "i16": ("i32", "i64"), "i32": ("i64",), "i64": (),
}  # fmt: skip


class MicroProgram:
    """Micro-operations under construction; equal ones are made once. With `excess_precision`, floats are rounded by stores alone."""

    def __init__(self, *, excess_precision: bool = False):
        self.excess_precision = excess_precision
        self.micro: list[Micro] = []
        self._made: dict[tuple, int] = {}

    def emit(self, op: str, kind: str, a: int = 0, b: int = 0, c: int = 0, *, source: str = "LITERAL", start: str = "F32",
             imm: int | float | Dim = 0) -> int:  # fmt: skip
        """The register that holds the result."""
        # A float's bits are part of the key: 0.0 and -0.0 are equal, and a NaN is not equal to itself.
        number = imm.hex() if isinstance(imm, float) else imm.terms if isinstance(imm, Dim) else imm
        key = (op, kind, a, b, c, source, start, number)
        register = self._made.get(key)
        if register is None:
            register = self._made[key] = len(self._made)
            self.micro.append(Micro(op, kind, register, a, b, c, source, start, imm))
        return register

    def store(self, pattern: int, register: int, kind: str) -> None:
        """Write a register to a pattern."""
        self.micro.append(Micro("STORE", kind, pattern, register))

    def number(self, value: bool | int | float | Size, dtype: str) -> int:
        """A constant of an element type; a symbolic size is a number that is known at bind."""
        kind = STORAGE[dtype][1]
        if isinstance(value, Dim):
            value = resolved(value)
        if isinstance(value, Dim):
            register = self.emit("CONST", kind, source="VALUE", imm=value)
            return self.round(register, dtype)
        imm = to_float(value, dtype) if kind == "F32" else to_integer(int(value), dtype)
        return self.emit("CONST", kind, imm=imm)

    def scalar(self, number: int, dtype: str) -> int:
        """A scalar of the launch."""
        return self.emit("CONST", STORAGE[dtype][1], source="SCALAR", imm=number)

    def round(self, register: int, dtype: str) -> int:
        """Round or wrap a register to an element type."""
        op = _ROUND.get(dtype)
        if self.excess_precision and dtype in ("bf16", "f16"):
            return register
        return register if op is None else self.emit(op, STORAGE[dtype][1], register)

    def convert(self, register: int, source: str, target: str) -> int:
        """Change the element type."""
        if source == target:
            return register
        start, kind = STORAGE[source][1], STORAGE[target][1]
        if target == "i1":
            return self.emit("NE", start, register, self.number(0, source))
        if start != kind:
            register = self.emit("CONVERT", kind, register, start=start)
            if target in _INSIDE[source]:
                return register
        return register if target in _INSIDE[source] else self.round(register, target)

    def apply(self, node: Node, registers: list[int], dtypes: list[str]) -> int:
        """The result of a node whose operands are in registers, rounded to the node's element type."""
        op, dtype = node.op, node.dtype
        special = _SPECIAL.get(op)
        if special is not None:
            return special(self, node, registers, dtypes)
        kind = STORAGE[dtype][1]
        if dtype == "i1":
            return self.emit(BOOLEAN[op], kind, *registers)
        name = UNARY.get(op) or BINARY[op]
        register = self.emit(name, kind, *registers)
        if op in EXACT and not (op in WRAPS and kind == "I32"):
            return register
        return self.round(register, dtype)


def _copy(program: MicroProgram, node: Node, registers: list[int], dtypes: list[str]) -> int:
    return registers[0]


def _not(program: MicroProgram, node: Node, registers: list[int], dtypes: list[str]) -> int:
    kind = STORAGE[node.dtype][1]
    if node.dtype == "i1":
        return program.emit("XOR", kind, registers[0], program.number(1, "i1"))
    return program.round(program.emit("NOT", kind, registers[0]), node.dtype)


def _compare(program: MicroProgram, node: Node, registers: list[int], dtypes: list[str]) -> int:
    return program.emit(node.attributes["direction"], STORAGE[dtypes[0]][1], *registers)


def _is_finite(program: MicroProgram, node: Node, registers: list[int], dtypes: list[str]) -> int:
    return program.emit("IS_FINITE", "F32", registers[0])


def _select(program: MicroProgram, node: Node, registers: list[int], dtypes: list[str]) -> int:
    return program.emit("SELECT", STORAGE[node.dtype][1], *registers)


def _clamp(program: MicroProgram, node: Node, registers: list[int], dtypes: list[str]) -> int:
    kind = STORAGE[node.dtype][1]
    low, value, high = registers
    return program.emit("MIN", kind, program.emit("MAX", kind, value, low), high)


def _convert(program: MicroProgram, node: Node, registers: list[int], dtypes: list[str]) -> int:
    return program.convert(registers[0], dtypes[0], node.dtype)


def _shift_right_logical(program: MicroProgram, node: Node, registers: list[int], dtypes: list[str]) -> int:
    kind = STORAGE[node.dtype][1]
    value, count = registers
    narrow = {"i8": 0xFF, "i16": 0xFFFF}.get(node.dtype)
    if narrow is not None:  # the register holds the sign in its upper bits
        value = program.emit("AND", kind, value, program.emit("CONST", kind, imm=narrow))
    return program.round(program.emit("SHRU", kind, value, count), node.dtype)


def _random_bits(program: MicroProgram, node: Node, registers: list[int], dtypes: list[str]) -> int:
    return program.emit("RANDOM", "I32", node.attributes["word"], imm=node.attributes["number"])


def _reduce(program: MicroProgram, node: Node, registers: list[int], dtypes: list[str]) -> int:
    body = node.attributes["body"]
    kind = STORAGE[dtypes[0]][1]
    register = program.emit(REDUCTIONS[body], kind, registers[0])
    if body in ("add", "multiply"):
        return program.round(register, node.dtype)
    if body == "and" and node.dtype == "i1":  # an empty reduction gives -1
        return program.emit("AND", kind, register, program.number(1, "i1"))
    return register


_SPECIAL: dict[str, Callable[[MicroProgram, Node, list[int], list[str]], int]] = {
    "copy": _copy,
    "not": _not,
    "compare": _compare,
    "is_finite": _is_finite,
    "select": _select,
    "clamp": _clamp,
    "convert": _convert,
    "shift_right_logical": _shift_right_logical,
    "random_bits": _random_bits,
    "reduce": _reduce,
}
