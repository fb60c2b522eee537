"""Fused optimizer steps: one program updates all parameters and their state. Computed in f32.

The learning rate is given at launch. `grad_scale` divides the gradients, and where `found_inf` is 1 nothing changes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch_neuronx_compile.stablehlo as hlo
from torch_neuronx_compile.lowering.promotion import Operand, cast, compute_dtype
from torch_neuronx_compile.lowering.registry import lowers
from torch_neuronx_compile.lowering.shape import broadcast_to, full
from torch_neuronx_compile.stablehlo import Value

Values = Sequence[Value]


def _spread(number: Operand, like: Value) -> Value:
    """A number or 0-d tensor under another value's type."""
    value = cast(number, like.dtype)
    return broadcast_to(hlo.reshape(value, ()) if value.rank else value, like.shape)


def _guarded(new: Value, old: Value, found_inf: Value | None) -> Value:
    """The new value in the old one's dtype, or the old one after an overflow."""
    result = hlo.convert(new, old.dtype)
    if found_inf is None:
        return result
    skip = hlo.compare(hlo.reshape(found_inf, ()), hlo.constant(1, found_inf.dtype), "EQ")
    return hlo.select(skip, old, result)


def _bias_correction(beta: float, step: Value) -> Value:
    """1 - beta ** step without cancellation."""
    power = hlo.multiply(step, full(math.log(beta) if beta > 0 else -math.inf, step))
    return hlo.negate(hlo.exponential_minus_one(power))


def _gradient(grad: Value, wide: str, grad_scale: Value | None, maximize: bool) -> tuple[Value, Value]:
    """(the gradient to use, the unscaled gradient to store)."""
    stored = hlo.convert(grad, wide)
    if grad_scale is not None:
        stored = hlo.divide(stored, _spread(grad_scale, stored))
    return hlo.negate(stored) if maximize else stored, stored


def _adam(decoupled: bool, params: Values, grads: Values, exp_avgs: Values, exp_avg_sqs: Values,
          max_exp_avg_sqs: Values, state_steps: Values, lr: Operand, beta1: float, beta2: float, weight_decay: float,
          eps: float, amsgrad: bool, maximize: bool, grad_scale: Value | None,
          found_inf: Value | None) -> tuple[list[Value], ...]:  # fmt: skip
    """New (parameters, gradients, first moments, second moments, their maxima)."""
    new: tuple[list[Value], ...] = ([], [], [], [], [])
    for number, (param, grad, first, second, step) in enumerate(
        zip(params, grads, exp_avgs, exp_avg_sqs, state_steps, strict=True)
    ):
        wide = compute_dtype(param.dtype)
        p, m, v = (hlo.convert(x, wide) for x in (param, first, second))
        g, stored = _gradient(grad, wide, grad_scale, maximize)
        rate = cast(lr, wide)
        rate = hlo.reshape(rate, ()) if rate.rank else rate
        if weight_decay != 0:
            if decoupled:
                kept = hlo.subtract(full(1, rate), hlo.multiply(rate, full(weight_decay, rate)))
                p = hlo.multiply(p, broadcast_to(kept, p.shape))
            else:
                g = hlo.add(g, hlo.multiply(p, full(weight_decay, p)))
        m = hlo.add(m, hlo.multiply(hlo.subtract(g, m), full(1 - beta1, m)))
        v = hlo.add(hlo.multiply(v, full(beta2, v)), hlo.multiply(hlo.multiply(g, g), full(1 - beta2, v)))
        count = hlo.reshape(cast(step, wide), ())
        step_size = hlo.divide(rate, _bias_correction(beta1, count))
        largest = v
        if amsgrad:
            largest = hlo.maximum(hlo.convert(max_exp_avg_sqs[number], wide), v)
            new[4].append(_guarded(largest, max_exp_avg_sqs[number], found_inf))
        deviation = hlo.divide(hlo.sqrt(largest), broadcast_to(hlo.sqrt(_bias_correction(beta2, count)), p.shape))
        denominator = hlo.add(deviation, full(eps, deviation))
        p = hlo.subtract(p, hlo.divide(hlo.multiply(broadcast_to(step_size, p.shape), m), denominator))
        new[0].append(_guarded(p, param, found_inf))
        new[1].append(_guarded(stored, grad, found_inf) if grad_scale is not None else grad)
        new[2].append(_guarded(m, first, found_inf))
        new[3].append(_guarded(v, second, found_inf))
    return new


@lowers("aten::_fused_adam", operands=("lr",))
@lowers("aten::_fused_adam.tensor_lr")
def fused_adam(*arguments) -> tuple[list[Value], ...]:
    return _adam(False, *arguments)


@lowers("aten::_fused_adamw", operands=("lr",))
@lowers("aten::_fused_adamw.tensor_lr")
def fused_adamw(*arguments) -> tuple[list[Value], ...]:
    return _adam(True, *arguments)


@lowers("aten::_fused_sgd", operands=("lr",))
@lowers("aten::_fused_sgd.tensor_lr")
def fused_sgd(params: Values, grads: Values, momentum_buffers: Values, weight_decay: float, momentum: float, lr: Operand,
              dampening: float, nesterov: bool, maximize: bool, is_first_step: bool, grad_scale: Value | None,
              found_inf: Value | None) -> tuple[list[Value], ...]:  # fmt: skip
    """New (parameters, gradients, momentum buffers)."""
    new: tuple[list[Value], ...] = ([], [], [])
    for number, (param, grad) in enumerate(zip(params, grads, strict=True)):
        wide = compute_dtype(param.dtype)
        p = hlo.convert(param, wide)
        g, stored = _gradient(grad, wide, grad_scale, maximize)
        if weight_decay != 0:
            g = hlo.add(g, hlo.multiply(p, full(weight_decay, p)))
        if momentum != 0:
            buffer = momentum_buffers[number]
            b = g
            if not is_first_step:
                old = hlo.multiply(hlo.convert(buffer, wide), full(momentum, p))
                b = hlo.add(old, hlo.multiply(g, full(1 - dampening, g)))
            new[2].append(_guarded(b, buffer, found_inf))
            g = hlo.add(g, hlo.multiply(b, full(momentum, b))) if nesterov else b
        new[0].append(_guarded(hlo.subtract(p, hlo.multiply(_spread(lr, p), g)), param, found_inf))
        new[1].append(_guarded(stored, grad, found_inf) if grad_scale is not None else grad)
    return new


# Gradient scaling of torch.amp.


@lowers("aten::_amp_foreach_non_finite_check_and_unscale")
def unscale(tensors: Values, found_inf: Value, inv_scale: Value) -> tuple[list[Value], Value]:
    """(gradients times inv_scale, found_inf set to 1 if any of them is not finite)."""
    found = hlo.reshape(found_inf, ())
    scaled = []
    for x in tensors:
        finite = hlo.is_finite(x)
        finite = hlo.reduce(finite, "and", range(x.rank)) if x.rank else finite
        found = hlo.select(finite, found, full(1, found))
        wide = hlo.convert(x, compute_dtype(x.dtype))
        # A scale of exactly 1 leaves infinities and NaNs as they are; so does the product.
        scaled.append(hlo.convert(hlo.multiply(wide, _spread(inv_scale, wide)), x.dtype))
    return scaled, hlo.reshape(found, found_inf.shape)


@lowers("aten::_amp_update_scale")
def update_scale(scale: Value, growth_tracker: Value, found_inf: Value, growth_factor: float, backoff_factor: float,
                 growth_interval: int) -> tuple[Value, Value]:  # fmt: skip
    """(new scale, new number of steps since it last changed)."""
    overflow = hlo.compare(found_inf, full(0, found_inf), "NE")
    steps = hlo.add(growth_tracker, full(1, growth_tracker))
    grows = hlo.compare(steps, full(growth_interval, steps), "EQ")
    grown = hlo.multiply(scale, full(growth_factor, scale))
    grown = hlo.select(hlo.is_finite(grown), grown, scale)
    smaller = hlo.multiply(scale, full(backoff_factor, scale))
    zero = full(0, steps)
    new_scale = hlo.select(overflow, smaller, hlo.select(grows, grown, scale))
    return new_scale, hlo.select(hlo.or_(overflow, grows), zero, steps)
