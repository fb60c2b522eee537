"""Random numbers. Element i of a result is computed from the words of Philox(seed, offset + i), so that it does not depend
on shapes, threads or fusion; the caller advances the generator."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch_neuronx_compile.stablehlo as hlo
from torch_neuronx_compile.lowering.promotion import Operand, cast, compute_dtype, is_float
from torch_neuronx_compile.lowering.registry import Unsupported, lowers
from torch_neuronx_compile.lowering.shape import Shape, broadcast_to, full
from torch_neuronx_compile.stablehlo import TensorType, Value

# Bits of a uniform number: as many as the type can hold without rounding up to 1.
_PRECISION = {"f32": 24, "f64": 24, "bf16": 8, "f16": 11}


def _leading_bits(seed: Value, offset: Value, shape: Shape, count: int, word: int = 0) -> Value:
    """The `count` leading bits of a word as a number of type i32 that is not negative."""
    bits = hlo.random_bits(seed, offset, shape, word)
    return hlo.shift_right_logical(bits, full(32 - count, bits))


def unit(seed: Value, offset: Value, shape: Shape, dtype: str) -> Value:
    """Uniform in [0, 1), in the type that `dtype` is computed in."""
    count, wide = _PRECISION[dtype], compute_dtype(dtype)
    number = hlo.convert(_leading_bits(seed, offset, shape, count), wide)
    return hlo.multiply(number, full(2.0**-count, number))


def _spread(number: Operand, like: Value) -> Value:
    return broadcast_to(cast(number, like.dtype), like.shape)


def _uniform(seed: Value, offset: Value, type: TensorType, low: Operand, high: Operand) -> Value:
    if not is_float(type.dtype):
        raise Unsupported(f"uniform_ on {type.dtype}; floating types work")
    u = unit(seed, offset, type.shape, type.dtype)
    low, high = _spread(low, u), _spread(high, u)
    value = hlo.convert(hlo.add(hlo.multiply(u, hlo.subtract(high, low)), low), type.dtype)
    # Rounding may reach the upper bound, which is not part of the interval.
    bottom, top = hlo.convert(low, type.dtype), hlo.convert(high, type.dtype)
    return hlo.select(hlo.compare(value, top, "GE"), bottom, value)


def _normal(seed: Value, offset: Value, type: TensorType, mean: Operand, std: Operand) -> Value:
    """Box-Muller: one number from two words."""
    wide = compute_dtype(type.dtype)
    first = hlo.convert(_leading_bits(seed, offset, type.shape, 31, 0), wide)
    radius_source = hlo.multiply(hlo.add(first, full(1, first)), full(2.0**-31, first))  # in (0, 1]
    angle_source = hlo.convert(_leading_bits(seed, offset, type.shape, 24, 1), wide)
    angle = hlo.multiply(angle_source, full(2 * math.pi * 2.0**-24, first))
    radius = hlo.sqrt(hlo.multiply(hlo.log(radius_source), full(-2, first)))
    z = hlo.multiply(radius, hlo.cosine(angle))
    return hlo.convert(hlo.add(hlo.multiply(z, _spread(std, z)), _spread(mean, z)), type.dtype)


@lowers("aten::uniform", operands=("from", "to"), random=True)
def uniform(x: Value, low: Operand, high: Operand, generator: Any, seed: Value, offset: Value) -> Value:
    return _uniform(seed, offset, x.type, low, high)


@lowers("aten::normal_functional", operands=("mean", "std"), random=True)
def normal(x: Value, mean: Operand, std: Operand, generator: Any, seed: Value, offset: Value) -> Value:
    return _normal(seed, offset, x.type, mean, std)


@lowers("aten::rand", "aten::rand_like", random=True, outputs=True)
def rand(*arguments: Any, outputs: Sequence[TensorType], seed: Value, offset: Value) -> Value:
    return _uniform(seed, offset, outputs[0], 0.0, 1.0)


@lowers("aten::randn", "aten::randn_like", random=True, outputs=True)
def randn(*arguments: Any, outputs: Sequence[TensorType], seed: Value, offset: Value) -> Value:
    return _normal(seed, offset, outputs[0], 0.0, 1.0)


def _happens(seed: Value, offset: Value, shape: Shape, probability: Operand) -> Value:
    """i1, true with a probability."""
    u = unit(seed, offset, shape, "f32")
    return hlo.compare(u, broadcast_to(cast(probability, "f32"), shape), "LT")


@lowers("aten::bernoulli.p", operands=("p",), random=True)
@lowers("aten::bernoulli.Tensor", random=True)
def bernoulli_with(x: Value, p: Operand, generator: Any, seed: Value, offset: Value) -> Value:
    return hlo.convert(_happens(seed, offset, x.shape, p), x.dtype)


@lowers("aten::bernoulli", random=True)
def bernoulli(p: Value, generator: Any, seed: Value, offset: Value) -> Value:
    return hlo.convert(_happens(seed, offset, p.shape, p), p.dtype)


@lowers("aten::native_dropout", random=True)
def native_dropout(x: Value, p: float, train: bool | None, seed: Value, offset: Value) -> tuple[Value, Value]:
    """(x * mask / (1 - p), mask); without training x and ones."""
    if train is False or p == 0:
        return x, full(True, x, "i1")
    mask = _happens(seed, offset, x.shape, 1.0 - p)
    wide = hlo.convert(x, compute_dtype(x.dtype))
    # A product, not a selection: NaN times 0 is NaN, as in torch.
    kept = hlo.multiply(wide, hlo.convert(mask, wide.dtype))
    scale = 1.0 / (1.0 - p) if p < 1 else 0.0
    return hlo.convert(hlo.multiply(kept, full(scale, kept)), x.dtype), mask


@lowers("aten::native_dropout_backward")
def native_dropout_backward(grad: Value, mask: Value, scale: float) -> Value:
    wide = hlo.convert(grad, compute_dtype(grad.dtype))
    kept = hlo.multiply(wide, hlo.convert(mask, wide.dtype))
    return hlo.convert(hlo.multiply(kept, full(scale, kept)), grad.dtype)


def _integers(seed: Value, offset: Value, shape: Shape, low: int, count: int) -> Value:
    """i64 from `low`, of `count` values: 32 bits modulo the count, or 63 or 64 bits for larger counts."""
    word = hlo.convert(hlo.random_bits(seed, offset, shape, 0), "i64")
    if count > 1 << 63:
        other = hlo.convert(hlo.random_bits(seed, offset, shape, 1), "i64")
        bits = hlo.or_(hlo.shift_left(word, full(32, word)), hlo.and_(other, full(0xFFFFFFFF, word)))
        if count == 1 << 64:
            return bits
        # An unsigned number holds the count at most once; with their top bits flipped, unsigned numbers compare as signed.
        # As an i64, the count is negative.
        inside = hlo.compare(hlo.xor(bits, full(-(1 << 63), bits)), full(count - (1 << 63), bits), "LT")
        return hlo.add(hlo.select(inside, bits, hlo.subtract(bits, full(count - (1 << 64), bits))), full(low, bits))
    number = hlo.and_(word, full(0xFFFFFFFF, word))
    if count > 1 << 32:
        other = _leading_bits(seed, offset, shape, 31, 1)
        number = hlo.or_(number, hlo.shift_left(hlo.convert(other, "i64"), full(32, word)))
    if count != 1 << 32 and count != 1 << 63:
        number = hlo.remainder(number, full(count, number))
    return hlo.add(number, full(low, number))


# Values of random_() without bounds: all non-negative integers, for floats as far as they are exact.
_RANDOM_COUNT = {"i64": 1 << 63, "i32": 1 << 31, "i16": 1 << 15, "i8": 1 << 7, "ui8": 1 << 8, "i1": 2,
                 "f32": (1 << 24) + 1, "f64": (1 << 53) + 1, "f16": (1 << 11) + 1, "bf16": (1 << 8) + 1}  # fmt: skip


@lowers("aten::random", random=True)
def random(x: Value, generator: Any, seed: Value, offset: Value) -> Value:
    return hlo.convert(_integers(seed, offset, x.shape, 0, _RANDOM_COUNT[x.dtype]), x.dtype)


@lowers("aten::random.from", random=True)
def random_from(x: Value, low: int, high: int | None, generator: Any, seed: Value, offset: Value) -> Value:
    """Integers in [low, high); without `high` up to the largest int64."""
    return hlo.convert(_integers(seed, offset, x.shape, low, (1 << 63 if high is None else high) - low), x.dtype)


@lowers("aten::random.to", random=True)
def random_to(x: Value, high: int, generator: Any, seed: Value, offset: Value) -> Value:
    return hlo.convert(_integers(seed, offset, x.shape, 0, high), x.dtype)


@lowers("aten::randint", random=True, outputs=True)
def randint(high: int, *options: Any, outputs: Sequence[TensorType], seed: Value, offset: Value) -> Value:
    return hlo.convert(_integers(seed, offset, outputs[0].shape, 0, high), outputs[0].dtype)


@lowers("aten::randint.low", random=True, outputs=True)
def randint_low(low: int, high: int, *options: Any, outputs: Sequence[TensorType], seed: Value, offset: Value) -> Value:
    return hlo.convert(_integers(seed, offset, outputs[0].shape, low, high - low), outputs[0].dtype)


@lowers("aten::randint_like", random=True, outputs=True)
def randint_like(
    x: Value, high: int, *options: Any, outputs: Sequence[TensorType], seed: Value, offset: Value
) -> Value:
    return randint(high, outputs=outputs, seed=seed, offset=offset)


@lowers("aten::randint_like.low_dtype", random=True, outputs=True)
def randint_like_low(x: Value, low: int, high: int, *options: Any, outputs: Sequence[TensorType], seed: Value,
                     offset: Value) -> Value:  # fmt: skip
    return randint_low(low, high, outputs=outputs, seed=seed, offset=offset)


@lowers("aten::exponential", operands=("lambd",), random=True)
def exponential(x: Value, lambd: Operand, generator: Any, seed: Value, offset: Value) -> Value:
    """-log(1 - u) / lambd."""
    u = unit(seed, offset, x.shape, "f32")
    magnitude = hlo.negate(hlo.log_plus_one(hlo.negate(u)))
    return hlo.convert(hlo.divide(magnitude, _spread(lambd, magnitude)), x.dtype)


@lowers("aten::log_normal", operands=("mean", "std"), random=True)
def log_normal(x: Value, mean: Operand, std: Operand, generator: Any, seed: Value, offset: Value) -> Value:
    wide = TensorType(x.shape, compute_dtype(x.dtype))
    return hlo.convert(hlo.exponential(_normal(seed, offset, wide, mean, std)), x.dtype)


@lowers("aten::cauchy", operands=("median", "sigma"), random=True)
def cauchy(x: Value, median: Operand, sigma: Operand, generator: Any, seed: Value, offset: Value) -> Value:
    """median + sigma * tan(pi * (u - 1/2))."""
    u = unit(seed, offset, x.shape, "f32")
    slope = hlo.tan(hlo.multiply(hlo.subtract(u, full(0.5, u)), full(math.pi, u)))
    return hlo.convert(hlo.add(hlo.multiply(slope, _spread(sigma, u)), _spread(median, u)), x.dtype)


@lowers("aten::geometric", operands=("p",), random=True)
def geometric(x: Value, p: Operand, generator: Any, seed: Value, offset: Value) -> Value:
    """ceil(log(1 - u) / log(1 - p)), at least 1."""
    u = unit(seed, offset, x.shape, "f32")
    failure = hlo.log_plus_one(hlo.negate(_spread(p, u)))
    trials = hlo.ceil(hlo.divide(hlo.log_plus_one(hlo.negate(u)), failure))
    return hlo.convert(hlo.maximum(trials, full(1, trials)), x.dtype)


@lowers("aten::multinomial", random=True)
def multinomial(weights: Value, count: int, replacement: bool, generator: Any, seed: Value, offset: Value) -> Value:
    """Indices drawn by weight: the number of running sums that a uniform number of the total exceeds."""
    if not replacement and count > 1:
        raise Unsupported(
            "aten::multinomial of several samples without replacement; one sample, or replacement=True, works"
        )
    classes = weights.rank - 1
    size = weights.shape[classes]
    wide = hlo.convert(weights, "f32" if weights.dtype != "f64" else "f64")
    sums = hlo.scan(wide, "add", classes)
    shape = (*weights.shape[:classes], count)
    u = hlo.convert(unit(seed, offset, shape, "f32"), wide.dtype)
    total = hlo.broadcast_in_dim(hlo.reduce(wide, "add", (classes,)), shape, range(classes))
    threshold = hlo.multiply(u, total)
    pairs = (*shape, size)
    below = hlo.compare(
        hlo.broadcast_in_dim(sums, pairs, (*range(classes), classes + 1)),
        hlo.broadcast_in_dim(threshold, pairs, range(classes + 1)),
        "LE",
    )
    index = hlo.reduce(hlo.convert(below, "i64"), "add", (classes + 1,))
    return hlo.minimum(index, full(size - 1, index))
