"""Programs of graphs in files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from torch_neuronx_compile.cache import files
from torch_neuronx_compile.cache.store import StoreWarning

MAKER = """
import os, sys, time
from pathlib import Path
from torch_neuronx_compile.cache import files
def make():
    print("making", flush=True)
    if sys.argv[1] == "hang":
        time.sleep(600)
    with open(os.environ["COUNT"], "a") as file:
        file.write("x")
    time.sleep(0.3)
    return b"program"
print(*files.obtain("key", make))
"""


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TORCH_NEURONX_NEFF_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("COUNT", str(tmp_path / "count"))
    monkeypatch.delenv("TORCH_NEURONX_NEFF_DISABLE_CACHE", raising=False)
    return tmp_path / "cache" / "graphs"


def maker(mode: str = "") -> subprocess.Popen:
    return subprocess.Popen([sys.executable, "-c", MAKER, mode], stdout=subprocess.PIPE, text=True)


def test_processes_make_a_program_once(tmp_path: Path):
    makers = [maker() for _ in range(4)]
    outputs = [m.communicate()[0].splitlines()[-1] for m in makers]
    assert sorted(outputs) == ["b'program' False"] * 3 + ["b'program' True"]
    assert (tmp_path / "count").read_text() == "x"


def test_a_killed_maker_leaves_the_way_free(directory: Path):
    process = maker("hang")
    assert process.stdout.readline() == "making\n"
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert files.obtain("key", lambda: b"mine") == (b"mine", True)
    assert files.obtain("key", lambda: b"never") == (b"mine", False)


def test_a_failure_is_not_remembered():
    def fail() -> bytes:
        raise RuntimeError("no program today")

    for _ in range(2):
        with pytest.raises(RuntimeError, match="today"):
            files.obtain("key", fail)
    assert files.obtain("key", lambda: b"program") == (b"program", True)


@pytest.mark.parametrize("keep", [0, 5, 20, 23])
def test_a_file_cut_short_is_made_again(directory: Path, keep: int):
    files.obtain("key", lambda: b"program")
    path = directory / "key.entry"
    path.write_bytes(path.read_bytes()[:keep])
    assert files.obtain("key", lambda: b"again") == (b"again", True)
    assert files.obtain("key", lambda: b"never") == (b"again", False)


def test_disabled(directory: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TORCH_NEURONX_NEFF_DISABLE_CACHE", "1")
    assert files.obtain("key", lambda: b"program") == (b"program", True)
    assert files.obtain("key", lambda: b"program") == (b"program", True)
    assert not directory.exists()


def test_an_impossible_place_warns_once_and_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("TORCH_NEURONX_NEFF_CACHE_DIR", str(tmp_path / "file"))
    monkeypatch.setattr(files, "_warned", False)
    with pytest.warns(StoreWarning) as caught:
        assert files.obtain("key", lambda: b"program") == (b"program", True)
        assert files.obtain("key", lambda: b"program") == (b"program", True)
    assert len(caught) == 1
