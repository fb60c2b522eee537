"""Programs of graphs, and what a call needs to know about them: one file each, written by an atomic rename; a lock file for each key,
so that many processes compile it once.
"""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

from torch_neuronx_compile.cache import settings
from torch_neuronx_compile.cache.store import StoreWarning

_HEAD = b"neuron graph 1\n"
_warned = False


def read(path: Path) -> bytes | None:
    """The contents of a finished file; None when there is none, or not a whole one (a disk that lost power)."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        _warn(path, error)
        return None
    size = int.from_bytes(data[len(_HEAD) : len(_HEAD) + 8], "little")
    body = data[len(_HEAD) + 8 :]
    return body if data.startswith(_HEAD) and len(body) == size else None


def write(path: Path, body: bytes) -> bool:
    """Put a file in place whole, or not at all."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_HEAD + len(body).to_bytes(8, "little") + body)
            os.replace(name, path)
        except BaseException:
            os.unlink(name)
            raise
    except OSError as error:
        _warn(path, error)
        return False
    return True


def path_of(key: str) -> Path:
    """Where the file of a key is."""
    return settings.directory() / "graphs" / f"{key}.entry"


def obtain(key: str, make: Callable[[], bytes]) -> tuple[bytes, bool]:
    """The contents of a key and whether they were made now. An exception of `make` leaves nothing behind."""
    if settings.disabled():
        return make(), True
    path = path_of(key)
    found = read(path)
    if found is not None:
        return found, False
    from filelock import FileLock

    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = FileLock(path.with_suffix(".lock"))
        lock.acquire()
    except OSError as error:
        _warn(path, error)
        return make(), True
    try:
        found = read(path)
        if found is not None:
            return found, False
        body = make()
        write(path, body)
        return body, True
    finally:
        lock.release()


def clear() -> None:
    """Remove all graphs."""
    for path in (settings.directory() / "graphs").glob("*.entry"):
        path.unlink(missing_ok=True)


def _warn(path: Path, error: OSError) -> None:
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            f"the program cache {path.parent} cannot be used ({error}); graphs are compiled again in every process",
            StoreWarning, stacklevel=3,
        )  # fmt: skip
