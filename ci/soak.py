"""Hours of eager and compiled training with changing batch sizes: `.venv/bin/python ci/soak.py --minutes 30`.

Memory may grow while programs are still being compiled; after the first quarter of the time neither device memory nor
the process may grow any more, and every loss stays finite.
"""

from __future__ import annotations

import argparse
import math
import resource
import sys
import time

import torch

# Growth of the process over three quarters of a run that is put down to fragmentation, not to a leak.
SLACK_MIB = 64


def resident_mib() -> int:
    """Peak resident memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30)
    options = parser.parse_args()

    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(32, 64), torch.nn.LayerNorm(64), torch.nn.GELU(), torch.nn.Dropout(0.1), torch.nn.Linear(64, 8)
    ).to("neuron")
    optimizer = torch.optim.AdamW(model.parameters())

    def loss_of(x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(model(x), labels)

    compiled = torch.compile(loss_of, backend="neuron", dynamic=False)
    end = time.monotonic() + 60 * options.minutes
    quarter = time.monotonic() + 15 * options.minutes
    baseline: tuple[int, int] | None = None
    steps = 0
    while time.monotonic() < end:
        size = int(torch.randint(1, 200, ()))
        function = loss_of if steps % 2 else compiled
        size = size if function is loss_of else 64  # a compiled graph serves one shape
        x = torch.randn(size, 32).to("neuron")
        labels = torch.randint(8, (size,)).to("neuron")
        loss = function(x, labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if not math.isfinite(loss.item()):
            sys.exit(f"soak: loss {loss.item()} in step {steps}")
        del x, labels, loss
        steps += 1
        if baseline is None and time.monotonic() > quarter:
            baseline = torch.neuron.memory_allocated(), resident_mib()
    if baseline is None:
        sys.exit("soak: one step took longer than a quarter of the time; give it more --minutes")
    allocated, resident = torch.neuron.memory_allocated(), resident_mib()
    print(f"soak: {steps} steps; device bytes {baseline[0]} -> {allocated}, resident MiB {baseline[1]} -> {resident}")
    if allocated > baseline[0] or resident > baseline[1] + SLACK_MIB:
        sys.exit("soak: memory grew")


if __name__ == "__main__":
    main()
