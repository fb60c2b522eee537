"""Rewrites of StableHLO: what disappears, and what must not."""

from __future__ import annotations

import pytest
import torch

import torch_neuronx_compile.stablehlo as hlo
from torch_neuronx_compile.passes.simplify import constant_of, simplify
from torch_neuronx_compile.stablehlo import Parameter, TensorType, Value, topological

from .programs import run, tensor


def filled(number: float, like: Value) -> Value:
    return hlo.broadcast_in_dim(hlo.constant(number, like.dtype), like.shape, ())


def names(*results: Value) -> list[str]:
    return [operation.name for operation in topological(simplify(results))]


X = tensor(0, (3, 4))
N = tensor(1, (3, 4), "i32")
H = tensor(2, (3, 4), "bf16")
P = tensor(3, (3, 4), "i1")

SAME = {
    "x * 1": (X, lambda: hlo.multiply(X, filled(1.0, X))),
    "1 * n": (N, lambda: hlo.multiply(filled(1, N), N)),
    "x + -0.0": (X, lambda: hlo.add(X, filled(-0.0, X))),
    "n + 0": (N, lambda: hlo.add(N, filled(0, N))),
    "x - 0.0": (X, lambda: hlo.subtract(X, filled(0.0, X))),
    "x / 1": (X, lambda: hlo.divide(X, filled(1.0, X))),
    "bf16 to f32 and back": (H, lambda: hlo.convert(hlo.convert(H, "f32"), "bf16")),
    "select of true": (X, lambda: hlo.select(hlo.constant(True, "i1"), X, filled(0.0, X))),
    "a slice of everything": (X, lambda: hlo.slice(X, [0, 0], [3, 4])),
    "a reduction of nothing": (X, lambda: hlo.reduce(X, "add", [])),
}
DIFFERENT = {
    "x + 0.0 turns -0.0 into 0.0": lambda: hlo.add(X, filled(0.0, X)),
    "x - -0.0 does, too": lambda: hlo.subtract(X, filled(-0.0, X)),
    "f32 to bf16 and back rounds": lambda: hlo.convert(hlo.convert(X, "bf16"), "f32"),
    "i32 to i1 and back is 0 or 1": lambda: hlo.convert(hlo.convert(N, "i1"), "i32"),
    "x * -1": lambda: hlo.multiply(X, filled(-1.0, X)),
}


@pytest.mark.parametrize("name", SAME)
def test_what_changes_nothing_disappears(name: str):
    operand, build = SAME[name]
    (result,) = simplify([build()])
    assert result is operand


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_changes_bits_stays(name: str):
    result = DIFFERENT[name]()
    assert names(result)[-1] == result.operation.name


FOLDED = {
    "2 + 3": (lambda: hlo.add(hlo.constant(2.0, "f32"), hlo.constant(3.0, "f32")), 5.0),
    "0.1 + 0.2 in f32": (lambda: hlo.add(hlo.constant(0.1, "f32"), hlo.constant(0.2, "f32")), 0.30000001192092896),
    "1/3 in bf16": (lambda: hlo.divide(hlo.constant(1.0, "bf16"), hlo.constant(3.0, "bf16")), 0.333984375),
    "2.9 to i32": (lambda: hlo.convert(hlo.constant(2.9, "f32"), "i32"), 2),
    "300 to ui8": (lambda: hlo.convert(hlo.constant(300, "i32"), "ui8"), 44),
    "-7 / 2": (lambda: hlo.divide(hlo.constant(-7, "i32"), hlo.constant(2, "i32")), -3),
    "2 < 3": (lambda: hlo.compare(hlo.constant(2, "i32"), hlo.constant(3, "i32"), "LT"), 1),
    "i8 overflow": (lambda: hlo.add(hlo.constant(127, "i8"), hlo.constant(1, "i8")), -128),
}


@pytest.mark.parametrize("name", FOLDED)
def test_constants_are_folded_with_the_bits_of_the_program(name: str):
    build, number = FOLDED[name]
    (result,) = simplify([build()])
    assert result.operation.name == "constant" and constant_of(result) == number


@pytest.mark.parametrize("build", [
    lambda: hlo.exponential(hlo.constant(1.0, "f32")),  # of limited accuracy: the device's own
    lambda: hlo.divide(hlo.constant(1.0, "f32"), hlo.constant(0.0, "f32")),
    lambda: hlo.divide(hlo.constant(1, "i32"), hlo.constant(0, "i32")),
    lambda: hlo.convert(hlo.constant(float("nan"), "f32"), "i32"),
])  # fmt: skip
def test_what_the_device_defines_is_not_folded(build):
    result = build()
    assert names(result)[-1] == result.operation.name


def test_equal_operations_become_one():
    a, b = (hlo.tanh(hlo.add(X, filled(2.0, X))) for _ in range(2))
    assert names(hlo.multiply(a, b)).count("tanh") == 1
    assert names(hlo.add(X, filled(0.0, X)), hlo.add(X, filled(-1.0, X))).count("add") == 2
    assert names(filled(0.0, X), filled(-0.0, X)).count("constant") == 2, "0.0 and -0.0 are different numbers"


def test_random_operations_are_never_joined():
    pairs = [tuple(Parameter(10 + 2 * i + j, TensorType((), "i64"), "scalar") for j in (0, 1)) for i in (0, 1)]
    first, second = (hlo.random_bits(seed, offset, (4,)) for seed, offset in pairs)
    again = hlo.random_bits(*pairs[0], (4,))
    assert names(first, second, again).count("random_bits") == 3


def test_what_nothing_needs_is_gone():
    hlo.exponential(X)
    assert names(hlo.negate(X)) == ["negate"]


def test_gradients_of_slices_become_a_concatenation():
    parts = [tensor(n, (2, 4)) for n in range(3)]
    zero = hlo.constant(0.0, "f32")
    framed = [hlo.pad(x, zero, [2 * n, 0], [4 - 2 * n, 0]) for n, x in enumerate(parts)]
    total = hlo.add(hlo.add(framed[2], framed[0]), framed[1])
    assert "pad" not in names(total) and names(total)[-1] == "concatenate"
    data = [torch.full((2, 4), -0.0), torch.randn(2, 4), torch.randn(2, 4)]
    (got,) = run(parts, [total], data)
    want = torch.cat(data) + 0.0
    assert torch.equal(got, want) and torch.equal(got.signbit(), want.signbit())


def test_frames_that_meet_are_added():
    x, y = tensor(0, (3, 4)), tensor(1, (3, 4))
    zero = hlo.constant(0.0, "f32")
    total = hlo.add(hlo.pad(x, zero, [0, 0], [2, 0]), hlo.pad(y, zero, [2, 0], [0, 0]))
    assert names(total).count("pad") == 2
    data = [torch.randn(3, 4), torch.randn(3, 4)]
    (got,) = run([x, y], [total], data)
    want = torch.zeros(5, 4)
    want[:3] += data[0]
    want[2:] += data[1]
    assert torch.equal(got, want)
