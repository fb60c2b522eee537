"""What every key contains besides the work itself: whatever else decides which program comes out."""

from __future__ import annotations

import hashlib
import os
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, entry_points, version
from pathlib import Path

FORMAT = 1  # raised when the meaning of stored records changes


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "none"


@cache
def compiler() -> str:
    """Versions of the compiler, the runtime and torch, and the state of the compiler's own files (which change in development)."""
    digest = hashlib.blake2b(digest_size=16)
    torch = sys.modules.get("torch")
    torch_version = torch.__version__ if torch is not None else _version("torch")
    for text in (
        FORMAT,
        _version("torch-neuronx-compile"),
        _version("libneuron-runtime"),
        torch_version,
        sys.byteorder,
    ):
        digest.update(f"{text}\n".encode())
    root = Path(__file__).parent.parent
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(files):
            if name.endswith(".py"):
                status = os.stat(os.path.join(folder, name))
                digest.update(f"{name} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()


@cache
def plugins() -> str:
    """The packages that add lowerings. Slow (a walk over all installed packages); only for what they can change."""
    names = sorted(
        f"{entry.name} {entry.value} {entry.dist.version if entry.dist else ''}"
        for entry in entry_points(group="torch_neuronx.lowerings")
    )
    return "; ".join(names)


def target() -> str:
    """NEURON_PLATFORM_TARGET_OVERRIDE, or the simulated device's default."""
    return os.environ.get("NEURON_PLATFORM_TARGET_OVERRIDE", "sim")


def key(*parts: str | bytes) -> str:
    """A digest of parts, the compiler's fingerprint and the target."""
    digest = hashlib.blake2b(digest_size=20)
    for part in (compiler(), target(), *parts):
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()
