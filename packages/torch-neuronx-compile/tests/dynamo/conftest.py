"""A fresh Dynamo and an empty program cache for every test."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch


@pytest.fixture(autouse=True)
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TORCH_NEURONX_NEFF_CACHE_DIR", str(tmp_path / "neff_cache"))
    torch._dynamo.reset()
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()
