"""The table of layers: what a change concerns."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CI = Path(__file__).resolve().parents[1]


@pytest.fixture(autouse=True)
def ci_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(CI))


@pytest.mark.parametrize(
    ("path", "names"),
    [
        (
            "packages/libneuron-runtime/src/a.cpp",
            {"libneuron-runtime", "torch-neuronx-core", "torch-neuronx-compile", "torch-neuronx"},
        ),
        ("packages/torch-neuronx-compile/src/a.py", {"torch-neuronx-compile", "torch-neuronx"}),
        ("packages/torch-neuronx/pyproject.toml", {"torch-neuronx"}),
        ("docs/dev/index.md", set()),
    ],
)
def test_a_change_concerns_its_package_and_those_above(path: str, names: set[str]):
    from workspace import affected

    assert {package.name for package in affected(path)} == names


def test_a_path_that_belongs_nowhere_is_an_error():
    from workspace import affected

    with pytest.raises(ValueError, match="packages/new/a.py belongs to no package"):
        affected("packages/new/a.py")


def test_every_package_folder_is_in_the_table():
    from workspace import PACKAGES

    assert {folder.name for folder in (CI.parent / "packages").iterdir()} == {package.name for package in PACKAGES}


@pytest.mark.parametrize("check", ["check_text.py", "check_layers.py", "check_pins.py"])
def test_the_checks_pass(check: str):
    result = subprocess.run([sys.executable, CI / check], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("see /wor" + "k/main", "path of one machine"),
        ("# TO" + "DO: later", "unfinished"),
        ("@pytest.mark." + "skip", "test left out without a reason"),
        ("as issue" + " 12 says", "number of an issue"),
    ],
)
def test_text_that_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, why: str):
    import check_text

    monkeypatch.setattr(check_text, "ROOT", tmp_path)
    path = tmp_path / "a.py"
    path.write_text(f"x = 1\n{text}\n")
    (problem,) = check_text.problems(path)
    assert problem.startswith("a.py:2: ") and why in problem


def test_files_that_are_too_long_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    import check_text

    monkeypatch.setattr(check_text, "ROOT", tmp_path)
    path = tmp_path / "a.py"
    path.write_text("x = 1\n" * 801)
    assert check_text.problems(path) == ["a.py: 801 lines; the limit is 800"]
    path.write_text("x = 1\n" * 800)
    assert check_text.problems(path) == []
