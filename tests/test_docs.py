"""The Python blocks of README.md and docs/start run as they stand, those of one page in order and in one process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs/start").glob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")


def blocks(page: Path) -> list[str]:
    return BLOCK.findall(page.read_text())


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: page.name)
def test_code_blocks_run(page: Path, tmp_path: Path):
    environment = {**os.environ, "NEURON_FALLBACK_ENABLED": "0", "TORCH_NEURONX_NEFF_CACHE_DIR": str(tmp_path / "neff")}
    command = [sys.executable, "-c", "\n".join(blocks(page))]
    result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("page", [*PAGES, *sorted((ROOT / "docs").rglob("*.md"))], ids=lambda page: page.name)
def test_links_within_the_repository_lead_somewhere(page: Path):
    broken = [link for link in LINK.findall(page.read_text()) if not (page.parent / link).exists()]
    assert broken == []


def test_the_readme_has_a_quick_start_that_runs():
    assert blocks(ROOT / "README.md")
