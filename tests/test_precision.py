"""float64 models: one warning a process, results of float32 accuracy."""

from __future__ import annotations

import subprocess
import sys

import pytest

MODEL = """
import warnings, torch, torch_neuronx
dtype = torch.{dtype}
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Tanh(), torch.nn.Linear(7, 3)).to(dtype)
x = torch.randn(4, 5, dtype=dtype)
expected = model(x)
model.to("neuron")
run = {run}
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for _ in range(2):
        y = run(x.to("neuron"))
        y.square().mean().backward()
torch.testing.assert_close(y.cpu(), expected, rtol=1e-5, atol=1e-6)
assert y.dtype == dtype
print([str(w.message) for w in caught if issubclass(w.category, torch_neuronx.NeuronPrecisionWarning)])
"""


@pytest.mark.parametrize("run", ["model", 'torch.compile(model, backend="neuron")'], ids=["eager", "compiled"])
@pytest.mark.parametrize(("dtype", "count"), [("float64", 1), ("float32", 0)])
def test_one_warning_a_process(dtype: str, count: int, run: str):
    command = [sys.executable, "-c", MODEL.format(dtype=dtype, run=run)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    assert line.count("compute it as float32") == count, line
