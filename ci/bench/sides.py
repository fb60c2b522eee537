"""The parent's view of a worker process: start it, ask it, and let two of them take turns."""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

WORKER = Path(__file__).with_name("worker.py")
THREADS = "2"


class Side:
    """A worker for one device and Dynamo backend, with caches of its own that start empty."""

    def __init__(self, device: str, backend: str = "eager", caches: Path | None = None, **variables: str) -> None:
        self.scratch = tempfile.TemporaryDirectory()
        caches = caches or Path(self.scratch.name)
        environment = {
            **os.environ,
            "OMP_NUM_THREADS": THREADS,
            "MKL_NUM_THREADS": THREADS,
            "NEURON_SIM_THREADS": THREADS,
            "TORCHINDUCTOR_CACHE_DIR": str(caches / "inductor"),
            "TORCH_NEURONX_NEFF_CACHE_DIR": str(caches / "neff"),
            **variables,
        }
        self.process = subprocess.Popen(
            [sys.executable, str(WORKER), device, backend],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def ask(self, **command: str) -> dict:
        """The worker's answer. A worker that died is the answer {"not yet": "the process ended: ..."}."""
        try:
            self.process.stdin.write(json.dumps(command) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        return json.loads(line) if line else {"not yet": f"the process ended with code {self.process.wait()}"}

    def close(self) -> None:
        with contextlib.suppress(BrokenPipeError):  # it may have died
            self.process.stdin.close()
        self.process.wait()
        self.scratch.cleanup()

    def __enter__(self) -> Side:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def take_turns(ours: Side, peer: Side, rounds: int, **command: str) -> tuple[dict, dict]:
    """Ask both sides `rounds` times, one after the other and never at once, changing who goes first.

    Returns the two answers with the medians as "seconds"; a "not yet" of ours ends the row.
    """
    seconds: tuple[list[float], list[float]] = ([], [])
    for number in range(rounds):
        for which in (0, 1) if number % 2 == 0 else (1, 0):
            answer = (ours, peer)[which].ask(**command)
            if "seconds" not in answer:
                return (answer, {}) if which == 0 else ({}, answer)
            seconds[which].append(answer["seconds"])
    return {"seconds": statistics.median(seconds[0])}, {"seconds": statistics.median(seconds[1])}
