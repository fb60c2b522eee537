"""ci/uv.py puts true addresses into uv.lock for one command and takes them out whatever happens.

A stand-in for uv plays the index: it answers the probe, and its `sync` reports what uv.lock looks like and waits until
the test lets it go. No network.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[1] / "uv.py"
HIDDEN = 'source = { registry = "https://index.invalid/simple" }\nurl = "https://files.invalid/packages/aa/x.whl"\n'
TRUE = 'source = { registry = "https://index.test/simple" }\nurl = "https://files.test/packages/aa/x.whl"\n'

STAND_IN = """#!{python}
import os, pathlib, sys, time
if sys.argv[1:] == ["--version"]:
    print("uv 0.13.9")
elif "--project" in sys.argv:
    pathlib.Path(sys.argv[-1], "uv.lock").write_text({true!r})
else:
    seen = pathlib.Path("seen", str(os.getpid()))
    seen.write_text(pathlib.Path("uv.lock").read_text())
    while not pathlib.Path("go").exists():
        time.sleep(0.01)
    sys.exit(int(pathlib.Path("go").read_text()))
"""


class Tree:
    """A workspace with ci/uv.py and a committed lock, and a PATH whose uv is the stand-in."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for folder in ("ci", "bin", "seen"):
            (root / folder).mkdir()
        shutil.copy(SCRIPT, root / "ci/uv.py")
        (root / "pyproject.toml").write_text("")
        self.lock = root / "uv.lock"
        self.lock.write_text(HIDDEN)
        uv = root / "bin/uv"
        uv.write_text(STAND_IN.format(python=sys.executable, true=TRUE))
        uv.chmod(0o755)

    def start(self, *arguments: str) -> subprocess.Popen:
        environment = {**os.environ, "PATH": f"{self.root / 'bin'}:{os.environ['PATH']}"}
        return subprocess.Popen([sys.executable, "ci/uv.py", *arguments], cwd=self.root, env=environment)

    def seen(self) -> list[str]:
        """What uv.lock held at the start of each command so far."""
        return [path.read_text() for path in (self.root / "seen").iterdir()]

    def let_go(self, code: int = 0) -> None:
        (self.root / "go").write_text(str(code))


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def wait_for(condition: Callable[[], bool]) -> None:
    """The test's own time limit ends a wait that lasts for ever."""
    while not condition():
        time.sleep(0.01)


def test_true_addresses_for_the_length_of_a_command(tree: Tree):
    process = tree.start("sync")
    wait_for(lambda: tree.seen() == [TRUE])
    tree.let_go()
    assert process.wait() == 0
    assert tree.lock.read_text() == HIDDEN


def test_exit_code_of_uv_is_passed_on(tree: Tree):
    tree.let_go(7)
    assert tree.start("sync").wait() == 7
    assert tree.lock.read_text() == HIDDEN


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_command_restores_the_placeholders(tree: Tree, number: signal.Signals):
    process = tree.start("sync")
    wait_for(lambda: tree.seen() == [TRUE])
    process.send_signal(number)
    assert process.wait() != 0
    assert tree.lock.read_text() == HIDDEN


def test_the_next_run_mends_the_lock_of_a_killed_one(tree: Tree):
    process = tree.start("sync")
    wait_for(lambda: tree.seen() == [TRUE])
    process.kill()
    process.wait()
    assert tree.lock.read_text() == TRUE
    tree.let_go()
    assert tree.start("sync").wait() == 0
    assert tree.lock.read_text() == HIDDEN


def test_two_at_once_run_one_after_the_other(tree: Tree):
    first = tree.start("sync")
    wait_for(lambda: len(tree.seen()) == 1)
    second = tree.start("sync")
    time.sleep(0.5)  # long enough for the second to reach uv if nothing held it back
    assert len(tree.seen()) == 1
    tree.let_go()
    assert (first.wait(), second.wait()) == (0, 0)
    assert tree.seen() == [TRUE, TRUE]
    assert tree.lock.read_text() == HIDDEN


def test_a_command_that_does_not_read_the_lock_sees_placeholders(tree: Tree):
    tree.let_go()
    assert tree.start("cache", "dir").wait() == 0
    assert tree.seen() == [HIDDEN]
