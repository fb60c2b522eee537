"""Where the caches are, and whether they are used. Read from the environment at every question, so that a test can change it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

_OFF = ("", "0", "false", "no", "off")


def flag(name: str, default: bool = False) -> bool:
    """A boolean environment variable: unset gives the default; 0, false, no, off and the empty text are false."""
    value = os.environ.get(name)
    return default if value is None else value.strip().lower() not in _OFF


def disabled() -> bool:
    """TORCH_NEURONX_NEFF_DISABLE_CACHE: neither read nor write programs on disk."""
    return flag("TORCH_NEURONX_NEFF_DISABLE_CACHE")


def directory() -> Path:
    """TORCH_NEURONX_NEFF_CACHE_DIR, else torch_neuronx/neff_cache in the user's cache directory (XDG_CACHE_HOME or ~/.cache), which,
    unlike the directory for temporary files, survives a restart and belongs to the user alone. A user without a home gets a
    directory of his own under the temporary one.
    """
    chosen = os.environ.get("TORCH_NEURONX_NEFF_CACHE_DIR")
    if chosen:
        return Path(chosen).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    if base and os.path.isabs(base):
        return Path(base) / "torch_neuronx" / "neff_cache"
    home = os.path.expanduser("~")
    if os.path.isabs(home) and home != os.path.sep:
        return Path(home) / ".cache" / "torch_neuronx" / "neff_cache"
    return Path(tempfile.gettempdir()) / f"torch_neuronx_{os.getuid()}" / "neff_cache"
