"""What is generated from schema/program.toml is up to date and agrees with the library."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from libneuron_runtime import _schema

PACKAGE = Path(__file__).resolve().parents[2]
GENERATOR = PACKAGE / "schema" / "generate.py"
PAGE = PACKAGE.parents[1] / "docs" / "reference" / "program.md"


def generate(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, GENERATOR, *arguments], capture_output=True, text=True)


@pytest.mark.skipif(not PAGE.exists(), reason="the reference page is part of the repository, not of the package")
def test_the_reference_page_is_up_to_date() -> None:
    result = generate("--check", "reference", str(PAGE))
    assert result.returncode == 0, result.stderr


def test_the_installed_tables_are_up_to_date() -> None:
    result = generate("--check", "python", _schema.__file__)
    assert result.returncode == 0, result.stderr + "rebuild the package"


def test_check_reports_a_difference(tmp_path: Path) -> None:
    stale = tmp_path / "program.md"
    stale.write_text("old")
    result = generate("--check", "reference", str(stale))
    assert result.returncode == 1
    assert "is not up to date: run generate.py reference" in result.stderr
    assert stale.read_text() == "old"


def test_record_sizes() -> None:
    sizes = {name: getattr(_schema, name.upper()).size for name in _schema.FIELDS}
    assert sizes == {
        "header": 40, "section": 24, "value": 24, "guard": 16, "buffer": 16, "io": 64, "pattern": 48, "micro": 24, "instruction": 96,
    }  # fmt: skip


def test_a_padded_record_is_refused(tmp_path: Path) -> None:
    broken = tmp_path / "program.toml"
    text = (PACKAGE / "schema" / "program.toml").read_text()
    broken.write_text(
        text.replace(
            '{ name = "a", type = "u32" },\n  { name = "b"', '{ name = "a", type = "u16" },\n  { name = "b"', 1
        )
    )
    for module in GENERATOR.parent.glob("*.py"):
        shutil.copy(module, tmp_path)
    result = subprocess.run(
        [sys.executable, tmp_path / "generate.py", "python", tmp_path / "out.py"], capture_output=True, text=True
    )
    assert result.returncode == 1
    assert "record value: field b at byte 6 is not aligned" in result.stderr


def test_every_micro_operation_is_described() -> None:
    assert set(_schema.MICROS) == set(_schema.Micro)
    assert set(_schema.PARAMS) == set(_schema.Opcode)
    assert set(_schema.DTYPE_BYTES) == set(_schema.DTYPE_KIND) == set(_schema.Dtype)
