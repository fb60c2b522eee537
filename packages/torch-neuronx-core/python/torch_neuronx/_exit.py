"""The end of the process: threads that use the device come to rest before the interpreter shuts down."""

import atexit
import threading
import time
from pathlib import Path

from torch_neuronx import _C

# How long threads that run now get to come to rest.
PATIENCE_SECONDS = 0.2
_INTERVAL_SECONDS = 0.002


def _autograd_rests() -> bool:
    """Whether autograd's threads, which `threading` does not know, all sleep.

    They give back the Python objects of a backward pass after it has returned, and need the GIL for that.
    """
    for task in Path("/proc/self/task").iterdir():
        try:
            name, state = (task / "stat").read_text().split("(", 1)[1].rsplit(") ", 1)
        except OSError:
            continue  # ended meanwhile
        if name.startswith("pt_autograd") and not state.startswith("S"):
            return False
    return True


def _hold_threads() -> None:
    others = [thread for thread in threading.enumerate() if thread is not threading.current_thread()]
    _C.begin_exit()
    if not _C.is_initialized():
        return  # no thread has used the device
    deadline = time.monotonic() + PATIENCE_SECONDS
    rests = 0
    while time.monotonic() < deadline:
        time.sleep(_INTERVAL_SECONDS)  # without the GIL, for which they may be waiting
        rests = rests + 1 if _autograd_rests() else 0
        if rests >= 2 and _C.threads_held_at_exit() >= len(others):
            break


def register() -> None:
    """Once a process. Handlers that are registered later, such as the program's own, still find the threads working."""
    atexit.register(_hold_threads)
