"""Processes killed at every step of storing a program, and at random moments: what the caches then hold is whole and right.

A worker stores and reads programs whose bytes follow from their keys, so that anyone can tell a right one.
"""

from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest

from torch_neuronx_compile.cache import files
from torch_neuronx_compile.cache.store import FILE, Store

WORKER = """
import os, random, signal, sqlite3, sys, tempfile
from torch_neuronx_compile.cache import files, store

def program(n):
    return random.Random(n).randbytes(20_000)

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def die_before(module, name):
    setattr(module, name, lambda *args, **options: die())

def die_after(module, name):
    call = getattr(module, name)
    def wrapper(*args, **options):
        call(*args, **options)
        die()
    setattr(module, name, wrapper)

def die_at_statement(beginning):
    connect = sqlite3.connect
    def traced(*args, **options):
        connection = connect(*args, **options)
        connection.set_trace_callback(lambda text: die() if text.strip().startswith(beginning) else None)
        return connection
    sqlite3.connect = traced

def half_a_file(handle, mode):
    with open(handle, mode) as file:
        file.write(b"neuron graph 1\\n")
    die()

step, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
STEPS = {
    "none": lambda: None,
    "store: schema": lambda: die_at_statement("CREATE TABLE IF NOT EXISTS classes"),
    "store: begin": lambda: die_at_statement("BEGIN"),
    "store: program": lambda: die_at_statement("INSERT OR REPLACE INTO programs"),
    "store: class": lambda: die_at_statement("INSERT OR REPLACE INTO classes"),
    "store: commit": lambda: die_at_statement("COMMIT"),
    "store: stored": lambda: die_after(store.Store, "_write"),
    "graph: locked": lambda: die_before(sys.modules[__name__], "program"),
    "graph: made": lambda: die_before(tempfile, "mkstemp"),
    "graph: part begun": lambda: die_before(os, "fdopen"),
    "graph: part half written": lambda: setattr(os, "fdopen", half_a_file),
    "graph: part whole": lambda: die_before(os, "replace"),
    "graph: in place": lambda: die_after(os, "replace"),
}
STEPS[step]()
shelf = store.operators()
for n in range(first, first + count):
    if not step.startswith("graph"):
        found = [shelf.program(key) for _, key, _ in shelf.classes(f"class {n}")]
        assert found in ([], [program(n)]), n
        if not found:
            shelf.put(f"class {n}", "[]", f"program {n}", program(n))
    if not step.startswith("store"):
        assert files.obtain(f"key-{n}", lambda: program(n))[0] == random.Random(n).randbytes(20_000), n
    print(n, flush=True)
"""
COUNT = 6

STEPS = [
    "store: schema",
    "store: begin",
    "store: program",
    "store: class",
    "store: commit",
    "store: stored",
    "graph: locked",
    "graph: made",
    "graph: part begun",
    "graph: part half written",
    "graph: part whole",
    "graph: in place",
]


def program(n: int) -> bytes:
    return random.Random(n).randbytes(20_000)


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TORCH_NEURONX_NEFF_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("TORCH_NEURONX_NEFF_DISABLE_CACHE", raising=False)
    return tmp_path


def worker(step: str, first: int = 0, count: int = COUNT) -> subprocess.Popen:
    command = [sys.executable, "-W", "error", "-c", WORKER, step, str(first), str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def check(directory: Path, numbers: range) -> None:
    """The caches are whole, need no repair, and serve right programs, those that a killed worker had not stored included."""
    store = Store(directory / FILE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in numbers:
            for _, key, _ in store.classes(f"class {n}"):  # no class without its program
                assert store.program(key) == program(n)
            store.put(f"class {n}", "[]", f"program {n}", program(n))
            assert store.program(f"program {n}") == program(n)
            assert files.obtain(f"key-{n}", lambda n=n: program(n))[0] == program(n)
    store.close()
    assert sqlite3.connect(directory / FILE).execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.parametrize("step", STEPS)
def test_killed_at_a_step(directory: Path, step: str):
    victim = worker(step)
    stderr = victim.communicate()[1]
    assert victim.returncode == -signal.SIGKILL, stderr
    check(directory, range(COUNT))


def test_killed_at_fifty_random_moments(directory: Path):
    """Four workers at a time on the same programs; one, two or three of them are killed, and the others must finish."""
    moments, killed = random.Random(0), 0
    for turn in range(50):
        numbers = range(20 * turn, 20 * turn + 20)
        workers = [worker("none", numbers.start, len(numbers)) for _ in range(4)]
        victims = moments.sample(workers, moments.randint(1, 3))
        victims[0].stdout.readline()  # at work
        time.sleep(moments.uniform(0, 0.05))
        for victim in victims:
            victim.kill()
        for each in workers:
            stderr = each.communicate()[1]
            assert each.returncode in ((0, -signal.SIGKILL) if each in victims else (0,)), stderr
        killed += sum(each.returncode != 0 for each in victims)
        check(directory, numbers[::7])
    assert killed >= 10, "the moments are too late: workers had finished"
