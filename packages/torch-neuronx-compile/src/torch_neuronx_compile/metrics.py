"""Counters of compiled graphs: torch.neuron.get_dynamo_metrics()."""

from __future__ import annotations

import threading
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(slots=True)
class GraphMetrics:
    """One graph that the backend was given.

    model: name of the model (option `model_name` or set_model_name()); nodes: calls in the FX graph; instructions: of the program;
    cached: the program came from the disk; times in milliseconds, 0 for what was not done.
    """

    model: str
    graph: int
    nodes: int
    cached: bool
    lowering_time_ms: float
    compile_time_ms: float
    neff_bytes: int


_lock = threading.Lock()
_graphs: list[GraphMetrics] = []
_model_name = ""


def record(metrics: GraphMetrics) -> None:
    """Add a graph."""
    with _lock:
        _graphs.append(metrics)


def next_number() -> int:
    """Number for the next graph of this process."""
    with _lock:
        return len(_graphs)


def get_dynamo_metrics() -> list[dict[str, Any]]:
    """One entry per graph compiled since the start or the last reset, in order."""
    with _lock:
        return [asdict(graph) for graph in _graphs]


def reset_dynamo_metrics() -> None:
    """Forget all entries."""
    with _lock:
        _graphs.clear()


def set_model_name(name: str) -> None:
    """Label of the graphs compiled from now on, in metrics, artifacts and NEFF files. Raises TypeError for anything but text."""
    global _model_name
    if not isinstance(name, str):
        raise TypeError(f"set_model_name() takes a str, got {type(name).__name__}")
    _model_name = name


def model_name() -> str:
    """What set_model_name() was given last."""
    return _model_name
