"""The store of one-op programs."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import pytest

from torch_neuronx_compile.cache import store as store_module
from torch_neuronx_compile.cache.store import Store, StoreWarning

WRITER = """
import sys
from pathlib import Path
from torch_neuronx_compile.cache.store import Store
store = Store(Path(sys.argv[1]))
first, count = int(sys.argv[2]), int(sys.argv[3])
for n in range(first, first + count):
    store.put(f"class {n}", "[]", f"program {n}", bytes([n % 256]) * 5000)
    print(n, flush=True)
"""


def writer(path: Path, first: int, count: int) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), str(first), str(count)], stdout=subprocess.PIPE, text=True
    )


def test_an_entry_is_found_again_by_another_store(tmp_path: Path):
    Store(tmp_path / "a.sqlite3").put("class", '[["EQ",1,1]]', "program", b"neff")
    other = Store(tmp_path / "a.sqlite3")
    assert other.classes("class") == [('[["EQ",1,1]]', "program", None)]
    assert other.program("program") == b"neff"
    assert other.classes("unknown") == [] and other.program("unknown") is None


def test_one_class_may_have_several_programs(tmp_path: Path):
    store = Store(tmp_path / "a.sqlite3")
    store.put("class", "one", "program 1", b"1")
    store.put_refusal("class", "two", "because")
    answers = [("one", "program 1", None), ("two", None, "because")]
    assert sorted(store.classes("class")) == answers
    assert sorted(Store(tmp_path / "a.sqlite3").classes("class")) == answers


def test_processes_write_at_the_same_time(tmp_path: Path):
    path = tmp_path / "a.sqlite3"
    writers = [writer(path, 100 * n, 50) for n in range(4)]
    assert [w.wait() for w in writers] == [0, 0, 0, 0]
    for w in writers:
        w.stdout.close()
    store = Store(path)
    for n in (*range(50), *range(100, 150), *range(200, 250), *range(300, 350)):
        assert store.program(f"program {n}") == bytes([n % 256]) * 5000


@pytest.mark.parametrize("seen", [1, 7, 23])
def test_a_killed_writer_loses_nothing_that_it_had_stored(tmp_path: Path, seen: int):
    path = tmp_path / "a.sqlite3"
    process = writer(path, 0, 100000)
    stored = [int(process.stdout.readline()) for _ in range(seen)]
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    store = Store(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in stored:
            assert store.program(f"program {n}") == bytes([n % 256]) * 5000
        store.put("class", "[]", "after", b"after")
    assert sqlite3.connect(path).execute("PRAGMA integrity_check").fetchone() == ("ok",)
    for key, _ in [(f"class {n}", 0) for n in range(200)]:  # no class without its program
        for _, program, _ in store.classes(key):
            assert store.program(program) is not None


@pytest.mark.parametrize(
    "damage", [b"this is no database, but long enough to look like a file" * 100, b"SQLite format 3\0" + b"\xff" * 8000]
)
def test_a_damaged_file_is_set_aside_and_begun_anew(tmp_path: Path, damage: bytes):
    path = tmp_path / "a.sqlite3"
    path.write_bytes(damage)
    store = Store(path)
    with pytest.warns(StoreWarning, match="damaged"):
        assert store.classes("class") == []
    store.put("class", "[]", "program", b"neff")
    assert Store(path).program("program") == b"neff"
    (kept,) = tmp_path.glob("a.sqlite3.damaged-*")
    assert kept.read_bytes() == damage


def test_damage_in_the_middle_of_a_used_file(tmp_path: Path):
    path = tmp_path / "a.sqlite3"
    store = Store(path)
    for n in range(100):
        store.put(f"class {n}", "[]", f"program {n}", os.urandom(5000))
    store.close()
    data = bytearray(path.read_bytes())
    data[8192:-4096] = b"\xee" * len(data[8192:-4096])
    path.write_bytes(data)
    store = Store(path)
    with pytest.warns(StoreWarning, match="damaged"):
        for n in range(100):
            store.program(f"program {n}")
    store.put("class", "[]", "program", b"neff")
    assert Store(path).program("program") == b"neff"


def test_an_impossible_place_degrades_to_memory_with_one_warning(tmp_path: Path):
    (tmp_path / "file").write_text("in the way")
    store = Store(tmp_path / "file" / "a.sqlite3")
    with pytest.warns(StoreWarning, match="cannot be") as caught:
        store.put("class", "[]", "program", b"neff")
        store.put("class 2", "[]", "program 2", b"neff 2")
    assert len(caught) == 1
    assert store.program("program") == b"neff" and store.classes("class 2") == [("[]", "program 2", None)]


def test_a_file_that_cannot_grow_is_still_read(tmp_path: Path):
    path = tmp_path / "a.sqlite3"
    store = Store(path)
    store.put("class", "[]", "program", b"neff")
    store._open().execute("PRAGMA query_only = ON")  # every write fails, as on a full disk or a read-only mount
    with pytest.warns(StoreWarning, match="cannot be written") as caught:
        store.put("class 2", "[]", "program 2", b"neff 2")
        store.put("class 3", "[]", "program 3", b"neff 3")
    assert len(caught) == 1
    assert [store.program(f"program{suffix}") for suffix in ("", " 2", " 3")] == [b"neff", b"neff 2", b"neff 3"]
    assert Store(path).program("program 2") is None


def test_the_store_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(store_module, "LIMIT_BYTES", 50_000)
    monkeypatch.setattr(store_module, "_CHECK_EVERY", 1)
    store = Store(tmp_path / "a.sqlite3")
    for n in range(100):
        store.put(f"class {n}", "[]", f"program {n}", os.urandom(1000))  # does not get smaller
    held = [n for n in range(100) if store.program(f"program {n}") is not None]
    assert len(held) <= 51 and held == list(range(held[0], 100)), "the oldest go first"
    assert all(bool(store.classes(f"class {n}")) == (n in held) for n in range(100))


def test_threads_share_a_store(tmp_path: Path):
    store = Store(tmp_path / "a.sqlite3")
    failures = []

    def work(n: int) -> None:
        try:
            for k in range(20):
                store.put(f"class {n} {k}", "[]", f"program {n} {k}", b"x" * 100)
                assert store.program(f"program {n} {k}") == b"x" * 100
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_forked_child_has_its_own_connection(tmp_path: Path):
    store = Store(tmp_path / "a.sqlite3")
    store.put("class", "[]", "program", b"neff")
    child = os.fork()
    if child == 0:
        store.put("child", "[]", "of the child", b"child")
        os._exit(0 if store.program("program") == b"neff" else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert store.program("of the child") == b"child"


def test_without_a_path_everything_stays_in_memory():
    store = Store(None)
    store.put("class", "[]", "program", b"neff")
    store.put_traits("op", "0 1")
    assert store.program("program") == b"neff" and store.traits("op") == "0 1"
    store.clear()
    assert store.program("program") is None and store.traits("op") is None
