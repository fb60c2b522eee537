"""The suites: which rows are asked of which sides. Each yields figures; what they have to reach is in bars.py."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from eager_rows import LARGE, SMALL
from graph_rows import FIRST_CALLS, GRAPHS
from sides import Side, take_turns


@dataclass(frozen=True)
class Figure:
    """One row of the table. Times are in seconds; `peer` is None where there is nothing to compare with."""

    group: str
    row: str
    ours: float | None
    peer: float | None
    peer_name: str = ""
    not_yet: str = ""  # why there is no figure

    @property
    def ratio(self) -> float | None:
        return self.ours / self.peer if self.ours is not None and self.peer else None


def compared(group: str, row: str, peer_name: str, ours: dict, peer: dict) -> Figure:
    reason = ours.get("not yet") or (f"{peer_name}: {peer['not yet']}" if "not yet" in peer else "")
    return Figure(group, row, ours.get("seconds"), peer.get("seconds"), peer_name, reason)


def eager(rounds: int) -> Iterator[Figure]:
    with Side("neuron") as ours, Side("cpu") as peer:
        for group, rows in (("small", SMALL), ("large", LARGE)):
            for row in rows:
                answers = take_turns(ours, peer, rounds, do="time", suite="eager", row=row)
                yield compared(group, row, "torch CPU eager", *answers)
    with Side("neuron") as ours:
        answer = ours.ask(do="misses")
    seconds = statistics.median(answer["seconds"].values()) if "seconds" in answer else None
    yield Figure("miss", "median", seconds, None, not_yet=answer.get("not yet", ""))


def startup(rounds: int) -> Iterator[Figure]:
    """Fresh processes one after the other; the first fills the disk cache and is not counted."""
    answers = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(max(20, rounds) + 1):
            with Side("neuron", caches=Path(folder), TORCH_DEVICE_BACKEND_AUTOLOAD="0") as ours:
                answers.append(ours.ask(do="startup"))
            if "seconds" not in answers[-1]:
                break
    for row in ("autoload", "first op"):
        if "seconds" in answers[-1]:
            yield Figure("process", row, statistics.median(a["seconds"][row] for a in answers[1:]), None)
        else:
            yield Figure("process", row, None, None, not_yet=answers[-1]["not yet"])


def compile(rounds: int) -> Iterator[Figure]:
    with Side("neuron", "neuron") as ours, Side("cpu", "inductor") as peer:
        for row in GRAPHS:
            compilers = take_turns(ours, peer, 1, do="compiler", row=row)
            yield compared("compiler", row, "Inductor", *compilers)
            if all("seconds" in answer for answer in compilers):
                answers = take_turns(ours, peer, rounds, do="time", suite="compile", row=row)
                yield compared("run", row, "Inductor", *answers)
    for row in FIRST_CALLS:
        pairs = []
        for _ in range(max(1, rounds // 2)):
            with Side("neuron", "neuron") as ours, Side("cpu", "aot_eager") as peer:
                pairs.append(take_turns(ours, peer, 1, do="first call", row=row))
            if "seconds" not in pairs[-1][0] or "seconds" not in pairs[-1][1]:
                break
        else:
            medians = [{"seconds": statistics.median(pair[side]["seconds"] for pair in pairs)} for side in (0, 1)]
            pairs.append((medians[0], medians[1]))
        yield compared("first call", row, "aot_eager", *pairs[-1])


SUITES = {"eager": eager, "startup": startup, "compile": compile}
