"""Files for people: what each stage made, under TORCH_NEURONX_DEBUG_DIR when TORCH_NEURONX_PRESERVE_COMPILATION_ARTIFACTS=1."""

from __future__ import annotations

import itertools
import os
import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from torch_neuronx_compile.cache.settings import flag

_numbers = itertools.count()


def directory() -> Path:
    """TORCH_NEURONX_DEBUG_DIR, else neuron_backend in the directory for temporary files."""
    return Path(os.environ.get("TORCH_NEURONX_DEBUG_DIR") or Path(tempfile.gettempdir()) / "neuron_backend")


class Artifacts:
    """Collects the artifacts of one compilation in a directory of its own. Does nothing, at no cost, when they are not wanted."""

    __slots__ = ("path",)

    def __init__(self, name: str):
        self.path: Path | None = None
        if flag("TORCH_NEURONX_PRESERVE_COMPILATION_ARTIFACTS"):
            safe = re.sub(r"[^A-Za-z0-9_.-]+", "_", name).strip("_")
            stamp = time.strftime("%Y%m%d-%H%M%S")
            self.path = directory() / f"{safe}_{stamp}_{os.getpid()}_{next(_numbers)}"
            self.path.mkdir(parents=True, exist_ok=True)

    def keep(self, file: str, content: Callable[[], str | bytes]) -> None:
        """Write one artifact; `content` is called only if it is wanted."""
        if self.path is not None:
            data = content()
            (self.path / file).write_bytes(data if isinstance(data, bytes) else data.encode())
