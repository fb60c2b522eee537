"""Activation functions and their backward forms; computed in f32 and rounded once."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch_neuronx_compile.stablehlo as hlo
from torch_neuronx_compile.lowering.binary import apply_wide
from torch_neuronx_compile.lowering.promotion import Number, cast, is_float, result_type
from torch_neuronx_compile.lowering.registry import lowers
from torch_neuronx_compile.lowering.shape import full
from torch_neuronx_compile.lowering.ternary import bounded
from torch_neuronx_compile.lowering.unary import in_compute
from torch_neuronx_compile.stablehlo import Value

_SQRT_HALF = math.sqrt(0.5)
_BETA, _KAPPA = math.sqrt(2 / math.pi), 0.044715  # of gelu's tanh approximation


def _mul(x: Value, factor: float) -> Value:
    return hlo.multiply(x, full(factor, x))


def _add(x: Value, term: float) -> Value:
    return hlo.add(x, full(term, x))


def _where(x: Value, direction: str, bound: float, on_true: Value, on_false: Value) -> Value:
    return hlo.select(hlo.compare(x, full(bound, x), direction), on_true, on_false)


def _pair(function: Callable[[Value, Value], Value], a: Value, b: Value) -> Value:
    """function(a, b) in f32 for bf16 and fp16, broadcast, in the common type."""
    return apply_wide(function, result_type(a, b), a, b)


@lowers("aten::relu")
def relu(x: Value) -> Value:
    return bounded(x, 0, None)


@lowers("aten::threshold")
def threshold(x: Value, bound: Number, value: Number) -> Value:
    """x where x > bound (NaN too), else the value."""
    limit = cast(bound, x.dtype)
    beyond = hlo.compare(x, hlo.broadcast_in_dim(limit, x.shape, ()), "LE")
    return hlo.select(beyond, hlo.broadcast_in_dim(cast(value, x.dtype), x.shape, ()), x)


@lowers("aten::threshold_backward")
def threshold_backward(grad: Value, x: Value, bound: Number) -> Value:
    return _pair(lambda g, v: _where(v, "LE", float(bound) if is_float(v.dtype) else bound, full(0, g), g), grad, x)


@lowers("aten::leaky_relu")
def leaky_relu(x: Value, slope: Number) -> Value:
    return in_compute(lambda v: _where(v, "GT", 0, v, _mul(v, slope)), x)


@lowers("aten::leaky_relu_backward")
def leaky_relu_backward(grad: Value, x: Value, slope: Number, self_is_result: bool) -> Value:
    return _pair(lambda g, v: _where(v, "GT", 0, g, _mul(g, slope)), grad, x)


@lowers("aten::hardtanh")
def hardtanh(x: Value, low: Number, high: Number) -> Value:
    return cast(bounded(x, cast_number(low, x), cast_number(high, x)), x.dtype)


def cast_number(number: Number, x: Value) -> Number:
    """A bound in the tensor's kind: an integer tensor takes integers."""
    return float(number) if is_float(x.dtype) else int(number)


@lowers("aten::hardtanh_backward")
def hardtanh_backward(grad: Value, x: Value, low: Number, high: Number) -> Value:
    def compute(g: Value, v: Value) -> Value:
        outside = hlo.or_(hlo.compare(v, full(low, v), "LE"), hlo.compare(v, full(high, v), "GE"))
        return hlo.select(outside, full(0, g), g)

    return _pair(compute, grad, x)


@lowers("aten::elu")
def elu(x: Value, alpha: Number, scale: Number, input_scale: Number) -> Value:
    def compute(v: Value) -> Value:
        negative = _mul(hlo.exponential_minus_one(_mul(v, input_scale)), alpha * scale)
        return _where(v, "LE", 0, negative, _mul(v, scale))

    return in_compute(compute, x)


@lowers("aten::elu_backward")
def elu_backward(grad: Value, alpha: Number, scale: Number, input_scale: Number, is_result: bool, x: Value) -> Value:
    def compute(g: Value, v: Value) -> Value:
        if is_result:
            negative = hlo.multiply(_mul(g, input_scale), _add(v, alpha * scale))
        else:
            negative = hlo.multiply(_mul(g, input_scale * alpha * scale), hlo.exponential(_mul(v, input_scale)))
        return _where(v, "LE", 0, negative, _mul(g, scale))

    return _pair(compute, grad, x)


@lowers("aten::gelu")
def gelu(x: Value, approximate: str = "none") -> Value:
    """x times the normal distribution function of x, exactly ("none") or by "tanh"."""

    def compute(v: Value) -> Value:
        if approximate == "tanh":
            cube = hlo.multiply(hlo.multiply(v, v), v)
            inner = _mul(hlo.add(v, _mul(cube, _KAPPA)), _BETA)
            return hlo.multiply(_mul(v, 0.5), _add(hlo.tanh(inner), 1))
        return hlo.multiply(_mul(v, 0.5), _add(hlo.erf(_mul(v, _SQRT_HALF)), 1))

    return in_compute(compute, x)


@lowers("aten::gelu_backward")
def gelu_backward(grad: Value, x: Value, approximate: str = "none") -> Value:
    def compute(g: Value, v: Value) -> Value:
        square = hlo.multiply(v, v)
        if approximate == "tanh":
            inner = _mul(hlo.add(v, _mul(hlo.multiply(square, v), _KAPPA)), _BETA)
            t = hlo.tanh(inner)
            slope = _mul(_add(_mul(square, 3 * _KAPPA), 1), _BETA)
            derivative = hlo.multiply(hlo.subtract(full(1, t), hlo.multiply(t, t)), slope)
            left = _mul(_add(t, 1), 0.5)
            return hlo.multiply(g, hlo.add(left, hlo.multiply(_mul(v, 0.5), derivative)))
        distribution = _mul(_add(hlo.erf(_mul(v, _SQRT_HALF)), 1), 0.5)
        density = _mul(hlo.exponential(_mul(square, -0.5)), 1 / math.sqrt(2 * math.pi))
        return hlo.multiply(g, hlo.add(distribution, hlo.multiply(v, density)))

    return _pair(compute, grad, x)


@lowers("aten::silu")
def silu(x: Value) -> Value:
    """x * sigmoid(x), as the quotient x / (1 + exp(-x))."""
    return in_compute(lambda v: hlo.divide(v, _add(hlo.exponential(hlo.negate(v)), 1)), x)


@lowers("aten::silu_backward")
def silu_backward(grad: Value, x: Value) -> Value:
    def compute(g: Value, v: Value) -> Value:
        s = hlo.logistic(v)
        inner = _add(hlo.multiply(v, hlo.subtract(full(1, s), s)), 1)
        return hlo.multiply(hlo.multiply(g, s), inner)

    return _pair(compute, grad, x)


@lowers("aten::sigmoid_backward")
def sigmoid_backward(grad: Value, output: Value) -> Value:
    return _pair(lambda g, s: hlo.multiply(hlo.multiply(g, hlo.subtract(full(1, s), s)), s), grad, output)


@lowers("aten::tanh_backward")
def tanh_backward(grad: Value, output: Value) -> Value:
    return _pair(lambda g, t: hlo.multiply(g, hlo.subtract(full(1, t), hlo.multiply(t, t))), grad, output)


@lowers("aten::logit_backward")
def logit_backward(grad: Value, x: Value, eps: float | None) -> Value:
    def compute(g: Value, v: Value) -> Value:
        result = hlo.divide(g, hlo.multiply(v, hlo.subtract(full(1, v), v)))
        low, high = (0.0, 1.0) if eps is None else (eps, 1 - eps)
        outside = hlo.or_(hlo.compare(v, full(low, v), "LT"), hlo.compare(v, full(high, v), "GT"))
        return hlo.select(outside, full(math.nan if eps is None else 0.0, v), result)

    return _pair(compute, grad, x)


@lowers("aten::hardsigmoid")
def hardsigmoid(x: Value) -> Value:
    return in_compute(lambda v: hlo.divide(hlo.minimum(hlo.maximum(_add(v, 3), full(0, v)), full(6, v)), full(6, v)), x)


@lowers("aten::hardsigmoid_backward")
def hardsigmoid_backward(grad: Value, x: Value) -> Value:
    def compute(g: Value, v: Value) -> Value:
        inside = hlo.and_(hlo.compare(v, full(-3, v), "GT"), hlo.compare(v, full(3, v), "LT"))
        return hlo.select(inside, _mul(g, 1 / 6), full(0, g))

    return _pair(compute, grad, x)


@lowers("aten::hardswish")
def hardswish(x: Value) -> Value:
    def compute(v: Value) -> Value:
        gate = hlo.minimum(hlo.maximum(_add(v, 3), full(0, v)), full(6, v))
        return hlo.divide(hlo.multiply(v, gate), full(6, v))

    return in_compute(compute, x)


@lowers("aten::hardswish_backward")
def hardswish_backward(grad: Value, x: Value) -> Value:
    def compute(g: Value, v: Value) -> Value:
        middle = hlo.multiply(g, _add(hlo.divide(v, full(3, v)), 0.5))
        return _where(v, "LE", -3, full(0, g), _where(v, "LT", 3, middle, g))

    return _pair(compute, grad, x)


def _softplus(v: Value) -> Value:
    """log(1 + exp(v)) without overflow."""
    return hlo.add(hlo.maximum(v, full(0, v)), hlo.log_plus_one(hlo.exponential(hlo.negate(hlo.abs(v)))))


@lowers("aten::mish")
def mish(x: Value) -> Value:
    return in_compute(lambda v: hlo.multiply(v, hlo.tanh(_softplus(v))), x)


@lowers("aten::mish_backward")
def mish_backward(grad: Value, x: Value) -> Value:
    def compute(g: Value, v: Value) -> Value:
        t = hlo.tanh(_softplus(v))
        slope = hlo.multiply(hlo.logistic(v), hlo.subtract(full(1, t), hlo.multiply(t, t)))
        return hlo.multiply(g, hlo.add(t, hlo.multiply(v, slope)))

    return _pair(compute, grad, x)


@lowers("aten::softplus")
def softplus(x: Value, beta: Number, threshold: Number) -> Value:
    def compute(v: Value) -> Value:
        scaled = _mul(v, beta)
        curve = hlo.divide(hlo.log_plus_one(hlo.exponential(scaled)), full(beta, v))
        return _where(scaled, "GT", threshold, v, curve)

    return in_compute(compute, x)


@lowers("aten::softplus_backward")
def softplus_backward(grad: Value, x: Value, beta: Number, threshold: Number) -> Value:
    def compute(g: Value, v: Value) -> Value:
        scaled = _mul(v, beta)
        return _where(scaled, "GT", threshold, g, hlo.multiply(g, hlo.logistic(scaled)))

    return _pair(compute, grad, x)


@lowers("aten::log_sigmoid_forward")
def log_sigmoid(x: Value) -> tuple[Value, Value]:
    """(log(sigmoid(x)), exp(-|x|)); the second is kept for the backward form."""

    def compute(v: Value) -> Value:
        decay = hlo.exponential(hlo.negate(hlo.abs(v)))
        return hlo.subtract(hlo.minimum(v, full(0, v)), hlo.log_plus_one(decay))

    return in_compute(compute, x), in_compute(lambda v: hlo.exponential(hlo.negate(hlo.abs(v))), x)


@lowers("aten::log_sigmoid_backward")
def log_sigmoid_backward(grad: Value, x: Value, buffer: Value) -> Value:
    return _pair(lambda g, v: hlo.multiply(g, hlo.logistic(hlo.negate(v))), grad, x)


@lowers("aten::_prelu_kernel")
def prelu(x: Value, weight: Value) -> Value:
    return _pair(lambda v, w: _where(v, "GT", 0, v, hlo.multiply(w, v)), x, weight)


@lowers("aten::_prelu_kernel_backward")
def prelu_backward(grad: Value, x: Value, weight: Value) -> tuple[Value, Value]:
    dtype = result_type(grad, x)
    by_input = apply_wide(lambda g, v, w: _where(v, "GT", 0, g, hlo.multiply(w, g)), dtype, grad, x, weight)
    by_weight = _pair(lambda g, v: _where(v, "GT", 0, full(0, g), hlo.multiply(v, g)), grad, x)
    return by_input, by_weight


def _shrink(soft: bool, x: Value, lambd: Number) -> Value:
    def compute(v: Value) -> Value:
        if not soft:
            inside = hlo.compare(hlo.abs(v), full(lambd, v), "LE")
            return hlo.select(inside, full(0, v), v)
        low = _where(v, "LT", -lambd, _add(v, lambd), _mul(v, 0))
        return _where(v, "GT", lambd, _add(v, -lambd), low)

    return in_compute(compute, x)


@lowers("aten::hardshrink")
def hardshrink(x: Value, lambd: Number) -> Value:
    return _shrink(False, x, lambd)


@lowers("aten::softshrink")
def softshrink(x: Value, lambd: Number) -> Value:
    return _shrink(True, x, lambd)


@lowers("aten::hardshrink_backward", "aten::softshrink_backward")
def shrink_backward(grad: Value, x: Value, lambd: Number) -> Value:
    def compute(g: Value, v: Value) -> Value:
        return hlo.select(hlo.compare(hlo.abs(v), full(lambd, v), "LE"), full(0, g), g)

    return _pair(compute, grad, x)


def _halves(x: Value, dim: int) -> tuple[Value, Value]:
    d = dim % x.rank
    half = x.shape[d] // 2
    start, limit = [0] * x.rank, list(x.shape)
    limit[d] = start[d] + half
    first = hlo.slice(x, start, limit)
    start[d], limit[d] = half, x.shape[d]
    return first, hlo.slice(x, start, limit)


@lowers("aten::glu")
def glu(x: Value, dim: int) -> Value:
    """The first half times the sigmoid of the second."""
    return _pair(lambda a, b: hlo.multiply(a, hlo.logistic(b)), *_halves(x, dim))


@lowers("aten::glu_backward")
def glu_backward(grad: Value, x: Value, dim: int) -> Value:
    first, second = _halves(x, dim)

    def by_second(g: Value, a: Value, b: Value) -> Value:
        s = hlo.logistic(b)
        return hlo.multiply(hlo.multiply(hlo.multiply(hlo.subtract(full(1, s), s), s), g), a)

    left = _pair(lambda g, b: hlo.multiply(hlo.logistic(b), g), grad, second)
    right = apply_wide(by_second, x.dtype, grad, first, second)
    return hlo.concatenate((left, right), dim % x.rank)
