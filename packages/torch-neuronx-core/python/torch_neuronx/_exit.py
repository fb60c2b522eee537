"""The end of the process: daemon threads that use the device are held before the interpreter shuts down."""

import atexit
import threading
import time

from torch_neuronx import _C

# How long threads that run now get to reach their next use of the device, at which they stay.
PATIENCE_SECONDS = 0.2
# How long autograd's threads, which threading does not know, get to give back the Python objects of the last backward pass:
# they wait for the GIL to do so, and are gone with it in microseconds.
AUTOGRAD_SECONDS = 0.005


def _hold_threads() -> None:
    others = [thread for thread in threading.enumerate() if thread is not threading.current_thread()]
    _C.begin_exit()
    time.sleep(AUTOGRAD_SECONDS)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while _C.threads_held_at_exit() < len(others) and time.monotonic() < deadline:
        time.sleep(0.001)  # without the GIL, for which they may be waiting


def register() -> None:
    """Once a process. Handlers that are registered later, such as the program's own, still find the threads working."""
    atexit.register(_hold_threads)
