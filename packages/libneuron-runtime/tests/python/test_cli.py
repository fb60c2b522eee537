"""The command `neff`."""

import subprocess
import sys
from pathlib import Path

import pytest
from programs import SAMPLES

from libneuron_runtime import neff
from libneuron_runtime.cli import main


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "add.neff"
    path.write_bytes(neff.pack(SAMPLES["add"]().to_bytes(), name="add"))
    return path


def test_info(file: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["info", str(file)]) == 0
    text = capsys.readouterr().out
    for line in (
        "name            add",
        "program         version 1, 2 slots, 0 scalars",
        "  input   x  float32[?, ?]",
        "sg00/program.neuronx",
    ):
        assert line in text


def test_dump(file: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["dump", str(file)]) == 0
    assert "r2 = ADD.F32 r0, r1" in capsys.readouterr().out


def test_verify(file: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["verify", str(file)]) == 0
    assert capsys.readouterr().out == "ok\n"
    data = bytearray(file.read_bytes())
    data[2000] ^= 1
    file.write_bytes(data)
    assert main(["verify", str(file)]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"neff: {file}: NEFF: the hash") and "Traceback" not in error


def test_files_that_are_none(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["info", str(tmp_path / "missing")]) == 1
    assert "missing: No such file or directory" in capsys.readouterr().err
    assert main(["info", str(tmp_path)]) == 1
    assert "Is a directory" in capsys.readouterr().err
    (tmp_path / "text").write_text("hello")
    for command in ("info", "dump", "verify"):
        assert main([command, str(tmp_path / "text")]) == 1
        assert "5 bytes are too few for its header of 1024" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["info"], ["explode", "x"], ["info", "a", "b"]])
def test_wrong_usage(arguments: list[str], capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "usage: neff" in capsys.readouterr().err


def test_the_module_runs(file: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "libneuron_runtime.cli", "verify", str(file)], capture_output=True, text=True
    )
    assert (result.returncode, result.stdout) == (0, "ok\n")
