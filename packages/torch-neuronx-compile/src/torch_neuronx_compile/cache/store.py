"""The store of one-op programs: an sqlite3 file, shared by all processes of a user.

Two tables are two levels: a class of calls leads to a program's key (with the guards under which it holds), and that leads to
the NEFF; a class that is not supported leads to the reason. A
killed process loses at most its last entry: everything is a transaction. A store that cannot be written or
read (read-only directory, full disk) is replaced by memory, with one warning; a damaged file is set aside and begun anew.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from torch_neuronx_compile.cache import settings

FILE = "operators.sqlite3"
BUSY_SECONDS = 10  # patience with other processes' transactions, each of which takes well below a millisecond
LIMIT_BYTES = 64 << 20  # of all (compressed) programs, tens of thousands; passing it drops the oldest quarter
_CHECK_EVERY = 256  # insertions between two looks at the limit

_SCHEMA = """
CREATE TABLE IF NOT EXISTS traits (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS classes (key TEXT NOT NULL, guards TEXT NOT NULL, program TEXT, PRIMARY KEY (key, guards)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS refusals (key TEXT NOT NULL, guards TEXT NOT NULL, reason TEXT NOT NULL, PRIMARY KEY (key, guards))
  WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS programs (id INTEGER PRIMARY KEY, key TEXT UNIQUE NOT NULL, neff BLOB NOT NULL);
"""

T = TypeVar("T")


class StoreWarning(UserWarning):
    """The store on disk cannot be used as it should be; programs are compiled again in every process."""


class Store:
    """Open lazily, usable by all threads; a forked child opens the file again."""

    def __init__(self, path: Path | None):
        """path None: memory only."""
        self.path = path
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._process = 0
        self._inserted = 0
        self._writable = True
        self._unwritten: list[tuple[str, tuple]] = []
        self._traits: dict[str, str] = {}
        self._classes: dict[str, dict[str, tuple[str | None, str | None]]] = {}
        self._programs: dict[str, bytes] = {}

    # ---- what is stored ---------------------------------------------------------------------------------------------

    def traits(self, key: str) -> str | None:
        """What describe() answered for an operator."""
        known = self._traits.get(key)
        if known is not None:
            return known
        rows = self._read("SELECT value FROM traits WHERE key = ?", key)
        return rows[0][0] if rows else None

    def put_traits(self, key: str, value: str) -> None:
        """Kept in memory until the next program is stored, in whose transaction it goes to the disk."""
        with self._lock:
            self._traits[key] = value
            self._unwritten.append(("INSERT OR REPLACE INTO traits VALUES (?, ?)", (key, value)))

    def classes(self, key: str) -> list[tuple[str, str | None, str | None]]:
        """(guards, program key, None) of all programs of a class; (guards, None, reason) where it is not supported."""
        rows = self._read(
            "SELECT guards, program, NULL FROM classes WHERE key = ? UNION ALL "
            "SELECT guards, NULL, reason FROM refusals WHERE key = ?",
            key,
            key,
        )
        return rows or [(guards, *answer) for guards, answer in self._classes.get(key, {}).items()]

    def program(self, key: str) -> bytes | None:
        rows = self._read("SELECT neff FROM programs WHERE key = ?", key)
        if not rows:
            return self._programs.get(key)
        try:
            return zlib.decompress(rows[0][0])
        except zlib.error:
            return None  # damaged in a way that sqlite does not see: made again, and stored over it

    def put(self, class_key: str, guards: str, program_key: str, neff: bytes) -> None:
        """Store a class and its program."""
        # A NEFF is mostly padding; a few pages less cost less to write than the compression.
        work = [
            ("INSERT OR REPLACE INTO programs (key, neff) VALUES (?, ?)", (program_key, zlib.compress(neff, 1))),
            ("INSERT OR REPLACE INTO classes VALUES (?, ?, ?)", (class_key, guards, program_key)),
        ]
        if not self._write(work):
            self._classes.setdefault(class_key, {})[guards] = program_key, None
            self._programs[program_key] = neff

    def put_refusal(self, class_key: str, guards: str, reason: str) -> None:
        """Store that a class is not supported, and why."""
        if not self._write([("INSERT OR REPLACE INTO refusals VALUES (?, ?, ?)", (class_key, guards, reason))]):
            self._classes.setdefault(class_key, {})[guards] = None, reason

    # ---- sqlite -----------------------------------------------------------------------------------------------------

    def _read(self, query: str, *values: str) -> list[Any]:
        return self._guarded(lambda connection: connection.execute(query, values).fetchall(), [], writing=False)

    def _write(self, work: list[tuple[str, tuple]]) -> bool:
        def run(connection: sqlite3.Connection) -> bool:
            connection.execute("BEGIN IMMEDIATE")
            try:
                for query, values in (*self._unwritten, *work):
                    connection.execute(query, values)
                if self._inserted % _CHECK_EVERY == 0:
                    self._shrink(connection)
                self._inserted += 1
                connection.execute("COMMIT")
                self._unwritten.clear()
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            return True

        return self._writable and self._guarded(run, False, writing=True)

    def _shrink(self, connection: sqlite3.Connection) -> None:
        (count, total) = connection.execute("SELECT count(*), coalesce(sum(length(neff)), 0) FROM programs").fetchone()
        if total > LIMIT_BYTES:
            connection.execute(
                "DELETE FROM programs WHERE id IN (SELECT id FROM programs ORDER BY id LIMIT ?)", (max(1, count // 4),)
            )
            connection.execute(
                "DELETE FROM classes WHERE program IS NOT NULL AND program NOT IN (SELECT key FROM programs)"
            )

    def _guarded(self, work: Callable[[sqlite3.Connection], T], otherwise: T, *, writing: bool) -> T:
        """Run on the open store; `otherwise` when there is none. A damaged file is replaced once."""
        with self._lock:
            for attempt in (0, 1):
                if self.path is None:
                    return otherwise
                try:
                    return work(self._open())
                except sqlite3.OperationalError as error:
                    self._give_up(error, reading=not writing)
                    if writing:
                        return otherwise
                except (sqlite3.DatabaseError, OSError) as error:
                    if attempt == 0 and isinstance(error, sqlite3.DatabaseError):
                        self._set_aside(error)
                    else:
                        self._give_up(error)
            return otherwise

    def _open(self) -> sqlite3.Connection:
        if self._connection is not None and self._process == os.getpid():
            return self._connection
        # A connection inherited from the parent of a fork must not be used, nor closed: that would touch its locks.
        assert self.path is not None
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if self.path.exists() and not os.access(self.path.parent, os.W_OK):  # somebody else's, filled in advance
            connection = sqlite3.connect(
                f"{self.path.absolute().as_uri()}?immutable=1", uri=True, check_same_thread=False
            )
        else:
            connection = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(
                "PRAGMA synchronous = NORMAL"
            )  # a power failure may lose the last entries, never break the file
            connection.executescript(_SCHEMA)
        self._connection, self._process = connection, os.getpid()
        return connection

    def _close(self) -> None:
        if self._connection is not None and self._process == os.getpid():
            try:
                self._connection.close()
            except sqlite3.Error:
                pass  # the file is damaged; it is about to be renamed
        self._connection = None

    def close(self) -> None:
        """Release the file; the next question opens it again."""
        with self._lock:
            self._close()

    def clear(self) -> None:
        """Forget everything, in memory and on disk."""
        with self._lock:
            self._traits.clear()
            self._unwritten.clear()
            self._classes.clear()
            self._programs.clear()
            self._write([(f"DELETE FROM {table}", ()) for table in ("traits", "classes", "refusals", "programs")])

    def _set_aside(self, error: Exception) -> None:
        assert self.path is not None
        self._close()
        name = f"{self.path.name}.damaged-{os.getpid()}-{time.time_ns()}"
        warnings.warn(
            f"the program store {self.path} is damaged ({error}); it is kept as {name} and begun anew",
            StoreWarning,
            stacklevel=2,
        )
        try:
            os.replace(self.path, self.path.with_name(name))
            for suffix in ("-wal", "-shm"):
                self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)
        except FileNotFoundError:
            pass  # another process was faster
        except OSError as problem:
            self._give_up(problem)

    def _give_up(self, error: Exception, *, reading: bool = True) -> None:
        """Use the file no more: not at all, or only for reading."""
        warnings.warn(
            f"the program store {self.path} cannot be {'used' if reading else 'written'} ({error}); new programs are kept in "
            "memory only. Set TORCH_NEURONX_NEFF_CACHE_DIR to a writable directory, or TORCH_NEURONX_NEFF_DISABLE_CACHE=1",
            StoreWarning,
            stacklevel=2,
        )
        self._writable = False
        if reading:
            self._close()
            self.path = None


_stores: dict[Path | None, Store] = {}
_stores_lock = threading.Lock()


def operators() -> Store:
    """The store of the directory that the environment names now."""
    path = None if settings.disabled() else settings.directory() / FILE
    with _stores_lock:
        store = _stores.get(path)
        if store is None:
            store = _stores[path] = Store(path)
        return store
