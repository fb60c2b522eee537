"""Fixtures of core's tests."""

import os
import subprocess
import sys
import warnings

import pytest
import torch

import torch_neuronx

warnings.filterwarnings("ignore", category=torch_neuronx.NeuronFallbackWarning)


@pytest.fixture
def python():
    """Run a program in a fresh interpreter: ``python(code, VARIABLE="value")``; returns the finished process."""

    def run(code: str, **environment: str) -> subprocess.CompletedProcess:
        inherited = {name: value for name, value in os.environ.items() if name not in environment}
        return subprocess.run(
            [sys.executable, "-c", code], env=inherited | environment, capture_output=True, text=True, timeout=300
        )

    return run


@pytest.fixture(autouse=True)
def first_device():
    """Every test starts and ends on neuron:0."""
    torch.neuron.set_device(0)
    yield
    torch.neuron.set_device(0)
