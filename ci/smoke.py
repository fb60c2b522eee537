"""A few steps on the device in whatever is installed: `python smoke.py core | compile`. Needs nothing of the tree.

`core`: the device without its compiler: every op is computed, by a counted fallback. `compile`: the same ops run as
programs on the device, and a compiled function agrees with the eager one bit for bit.
"""

from __future__ import annotations

import sys
import warnings

import torch


def check(condition: bool, what: str) -> None:
    if not condition:
        sys.exit(f"smoke: {what}")


def main(level: str) -> None:
    import torch_neuronx

    check(torch.neuron.is_available() and torch.neuron.device_count() >= 1, "no device")
    warnings.simplefilter("ignore", torch_neuronx.NeuronFallbackWarning)
    generator = torch.Generator().manual_seed(0)
    x, w = (torch.randn(8, 8, generator=generator) for _ in range(2))

    def step(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return torch.relu(x @ w).sum(1)

    expected = step(x, w)
    torch_neuronx.clear_op_tracking()
    dx, dw = x.to("neuron"), w.to("neuron").requires_grad_()
    result = step(dx, dw)
    result.sum().backward()
    torch.testing.assert_close(result.cpu(), expected)
    check(dw.grad is not None and dw.grad.device.type == "neuron", "no gradient on the device")
    fallbacks = torch_neuronx.get_fallback_ops()
    if level == "core":
        check(bool(fallbacks), "no compiler is installed, yet no fallback was counted")
    else:
        check(not fallbacks, f"left to the CPU: {sorted(set(fallbacks))}")
        compiled = torch.compile(step, backend="neuron")(dx, dw)
        check(torch.equal(compiled, result), "compiled and eager results differ")
    print(f"smoke: {level} works with torch {torch.__version__} on Python {sys.version.split()[0]}")


if __name__ == "__main__":
    if sys.argv[1:] not in (["core"], ["compile"]):
        sys.exit("usage: python smoke.py core | compile")
    main(sys.argv[1])
