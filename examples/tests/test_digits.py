"""The digits example as a user runs it, in a process of its own with fallbacks forbidden."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parents[1] / "digits.py"


def run(tmp_path: Path, *arguments: str) -> tuple[str, dict[str, list[float]]]:
    """What the example prints, and its losses by "model/mode/device"."""
    losses = tmp_path / "losses.json"
    environment = {**os.environ, "NEURON_FALLBACK_ENABLED": "0", "TORCH_NEURONX_NEFF_CACHE_DIR": str(tmp_path / "neff")}
    command = [sys.executable, str(EXAMPLE), *arguments, "--losses", str(losses)]
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout, json.loads(losses.read_text())


def accuracy(output: str, model: str, mode: str, device: str) -> float:
    """From the printed table."""
    (line,) = (words for words in map(str.split, output.splitlines()) if words[:3] == [model, mode, device])
    return float(line[3])


@pytest.mark.parametrize("model", ["mlp", "transformer"])
def test_eager_follows_the_cpu(tmp_path: Path, model: str):
    output, losses = run(tmp_path, "--model", model, "--mode", "eager", "--epochs", "2")
    ours, theirs = losses[f"{model}/eager/neuron"], losses[f"{model}/eager/cpu"]
    assert len(ours) == 2 * 22
    # Equal arithmetic in another order of summation: the first step differs by rounding alone, later ones amplify it.
    assert ours[0] == pytest.approx(theirs[0], rel=1e-5)
    assert ours == pytest.approx(theirs, rel=1e-3)
    assert accuracy(output, model, "eager", "neuron") == pytest.approx(
        accuracy(output, model, "eager", "cpu"), abs=0.02
    )
    assert "ops left to the CPU: none" in output
    assert "imported by eager training: 0" in output


@pytest.mark.parametrize("model", ["mlp", "transformer"])
def test_compiled_equals_eager_bit_for_bit(tmp_path: Path, model: str):
    _, losses = run(tmp_path, "--model", model, "--epochs", "2", "--no-compare")
    assert losses[f"{model}/compiled/neuron"] == losses[f"{model}/eager/neuron"]


def test_mlp_learns(tmp_path: Path):
    output, _ = run(tmp_path, "--model", "mlp", "--mode", "eager", "--no-compare")
    assert accuracy(output, "mlp", "eager", "neuron") >= 0.96


def test_epochs_below_one_are_refused():
    result = subprocess.run([sys.executable, str(EXAMPLE), "--epochs", "0"], capture_output=True, text=True)
    assert result.returncode == 2 and "--epochs must be at least 1, got 0" in result.stderr
