"""Run uv on this workspace: `python3 ci/uv.py sync`, `python3 ci/uv.py run examples/digits.py`, ...

Two things stand between a clean clone and plain `uv`, and this file is both of them.

* uv may be missing. Then a pinned one is installed into an environment of its own in the user's cache folder.
* `uv.lock` is committed with every download address under a placeholder host (`*.invalid`), so that the repository
  names no registry. uv reads addresses from the lock, so the true ones, those that the local uv resolves from, are
  put in place for the length of one command and taken out afterwards, whether it succeeds, fails or is interrupted.

`run` is split into `sync` (with true addresses) and `uv run --no-sync` (without): a program may run for hours, and
the lock is held by one command at a time. Any Python from 3.11 on runs this file; it needs the standard library only.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "uv.lock"
UV_VERSION = "0.13.9"  # what we install where there is none
UV_OLDEST = (0, 9)  # an older one on PATH does not know all the settings of our pyproject.toml

INDEX = "https://index.invalid/simple"
FILES = "https://files.invalid/"
# The commands that resolve or download by the lock's addresses; all others run with the placeholders in place.
READS_LOCK = {"sync", "lock", "add", "remove", "export", "version"}
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PROBE = """[project]
name = "probe"
version = "0"
requires-python = ">=3.11"
dependencies = ["iniconfig"]
"""


class Failure(Exception):
    """A message for the person at the terminal; no traceback."""


def cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "torch-neuronx"


@contextlib.contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold an advisory lock on an existing file or folder; a second process waits. The kernel drops it when we die."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def find_uv() -> str:
    """The uv to run: the one on PATH, else a pinned one that is installed once a user."""
    if found := shutil.which("uv"):
        words = subprocess.run([found, "--version"], capture_output=True, text=True).stdout.split()
        if len(words) > 1 and tuple(int(n) for n in re.findall(r"\d+", words[1])[:2]) >= UV_OLDEST:
            return found
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    uv = folder / f"uv-{UV_VERSION}" / "bin" / "uv"
    with held(folder):
        if not uv.exists():
            # Built under another name and renamed, so that an interrupted install is never taken for a finished one.
            with tempfile.TemporaryDirectory(dir=folder) as scratch:
                environment = Path(scratch, "environment")
                oldest = ".".join(map(str, UV_OLDEST))
                print(
                    f"ci/uv.py: no uv >= {oldest} on PATH; installing {UV_VERSION} in {uv.parents[1]}", file=sys.stderr
                )
                for command in (
                    [sys.executable, "-m", "venv", str(environment)],
                    [str(environment / "bin/python"), "-m", "pip", "install", "--quiet", f"uv=={UV_VERSION}"],
                ):
                    if subprocess.run(command).returncode:
                        raise Failure(f"no uv: {' '.join(command)} failed (on Debian: apt-get install python3-venv)")
                environment.rename(uv.parents[1])
    return str(uv)


def true_addresses(uv: str) -> tuple[str, str]:
    """The index and the file host that this machine's uv resolves from, read from the lock of a one-line project."""
    with tempfile.TemporaryDirectory() as scratch:
        Path(scratch, "pyproject.toml").write_text(PROBE)
        # The working folder stays ROOT: .python-version chooses the interpreter there.
        command = [uv, "lock", "--quiet", "--project", scratch]
        if subprocess.run(command, cwd=ROOT).returncode:
            raise Failure("uv cannot reach a package index (see above)")
        text = Path(scratch, "uv.lock").read_text()
    index, files = re.search(r'registry = "([^"]+)"', text), re.search(r'url = "(.*?)packages/', text)
    if not index or not files:
        raise Failure("the local package index has no …/packages/… in its addresses; ci/uv.py knows no other layout")
    return index[1], files[1]


def replace_in_lock(pairs: list[tuple[str, str]]) -> None:
    if not LOCK.exists():
        return
    old = text = LOCK.read_text()
    for before, after in pairs:
        text = text.replace(before, after)
    if text != old:
        scratch = LOCK.with_name(f".uv.lock.{os.getpid()}")
        scratch.write_text(text)
        scratch.replace(LOCK)


@contextlib.contextmanager
def addresses_in_place(uv: str) -> Iterator[None]:
    """True addresses in uv.lock for the length of the block. Also mends a lock that a killed run left behind."""
    index, files = true_addresses(uv)
    with held(ROOT / "pyproject.toml"):
        try:
            replace_in_lock([(INDEX, index), (FILES, files)])
            yield
        finally:
            # Nothing may stop the restoration.
            previous = {number: signal.signal(number, signal.SIG_IGN) for number in STOPPING}
            replace_in_lock([(f'"{index}"', f'"{INDEX}"'), (f'"{files}', f'"{FILES}')])
            for number, handler in previous.items():
                signal.signal(number, handler)
        hosts = set(re.findall(r'"https?://([^/"]+)', LOCK.read_text())) if LOCK.exists() else set()
        if left := sorted(host for host in hosts if not host.endswith(".invalid")):
            raise Failure(f"uv.lock holds addresses of more than one index; ci/uv.py hides those of one. Left: {left}")


def run(uv: str, arguments: list[str]) -> int:
    """Run uv to its end. A signal that asks us to stop is passed on, and we wait: uv must not write after us."""
    child: subprocess.Popen | None = None
    early: list[int] = []

    def stop(number: int, frame: object) -> None:
        if child is None:
            early.append(number)
        else:
            child.send_signal(number)

    previous = {number: signal.signal(number, stop) for number in STOPPING}
    child = subprocess.Popen([uv, *arguments], cwd=ROOT)
    for number in early:
        child.send_signal(number)
    code = child.wait()
    for number, handler in previous.items():
        signal.signal(number, handler)
    return code if code >= 0 else 128 - code


def leave(number: int, frame: object) -> None:
    raise SystemExit(128 + number)  # so that every `finally` runs


def main(arguments: list[str]) -> int:
    signal.signal(signal.SIGTERM, leave)
    signal.signal(signal.SIGHUP, leave)
    uv = find_uv()
    command = arguments[0] if arguments else ""
    if command == "run":
        with addresses_in_place(uv):
            code = run(uv, ["sync", "--all-packages"])
        if code == 0:
            os.chdir(ROOT)
            os.execv(uv, [uv, "run", "--no-sync", *arguments[1:]])
        return code
    if command in READS_LOCK:
        if command == "sync" and not any(a.startswith(("--package", "--all-packages")) for a in arguments):
            arguments = [*arguments, "--all-packages"]
        with addresses_in_place(uv):
            return run(uv, arguments)
    return run(uv, arguments)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Failure as failure:
        sys.exit(f"ci/uv.py: {failure}")
