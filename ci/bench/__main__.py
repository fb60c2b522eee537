"""Benchmarks against a named peer: `python ci/bench eager | startup | compile [--json FILE] [--rounds N]`.

Ours and the peer run in processes of their own on two threads, take turns, and are compared by medians. Prints a table
and whether each bar (bars.py) is reached. The exit code says whether the benchmark ran, never how fast.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
from pathlib import Path

from bars import BARS, EACH, GEOMEAN, Bar
from rich.console import Console
from rich.table import Table
from suites import SUITES, Figure


def milliseconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1e3:.4g}"


def verdicts(suite: str, figures: list[Figure]) -> list[dict]:
    """One entry a bar: {"group", "bar", "limit", "unit", "value", "verdict", "missing"}."""
    entries = []
    for (of, group), bars in BARS.items():
        rows = [figure for figure in figures if figure.group == group]
        ratios = [figure.ratio for figure in rows if figure.ratio is not None]
        for name, bar in bars.items() if of == suite else ():
            if name == GEOMEAN:
                value = math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None
            elif name == EACH:
                value = max(ratios, default=None)
            else:
                value = next((value_of(figure, bar) for figure in rows if figure.row == name), None)
            missing = sum(figure.ours is None for figure in rows if name in (GEOMEAN, EACH, figure.row))
            reached = value is not None and value <= bar.limit
            verdict = (
                "not yet" if value is None else "missed" if not reached else "incomplete" if missing else "reached"
            )
            entries.append(
                {"group": group, "bar": name, "limit": bar.limit, "unit": bar.unit}
                | {"value": value, "verdict": verdict, "missing": missing}
            )
    return entries


def value_of(figure: Figure, bar: Bar) -> float | None:
    if bar.unit == "ms":
        return None if figure.ours is None else figure.ours * 1e3
    return figure.ratio


def show(suite: str, figures: list[Figure], entries: list[dict]) -> None:
    console = Console(width=None if Console().is_terminal else 120)
    table = Table(title=f"{suite}: medians in ms, ratio = ours / peer")
    for column in ("group", "row", "ours", "peer", "ratio", "against"):
        table.add_column(column, justify="left" if column in ("group", "row", "against") else "right", overflow="fold")
    for figure in figures:
        ratio = "" if figure.ratio is None else f"{figure.ratio:.2f}"
        against = f"not yet: {figure.not_yet}" if figure.not_yet else figure.peer_name
        table.add_row(figure.group, figure.row, milliseconds(figure.ours), milliseconds(figure.peer), ratio, against)
    console.print(table)
    for entry in entries:
        value = "-" if entry["value"] is None else f"{entry['value']:.3g}"
        missing = f", {entry['missing']} rows not yet" if entry["missing"] else ""
        unit = f" {entry['unit']}" if entry["unit"] else ""
        console.print(
            f"{entry['group']}, {entry['bar']}: {value}{unit} (bar {entry['limit']:g}{unit}), {entry['verdict']}"
            f"{missing}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(prog="ci/bench", description=__doc__.splitlines()[0])
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures and verdicts")
    parser.add_argument("--rounds", type=int, default=7, help="turns of each side, at least 1 (default 7)")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error(f"--rounds must be at least 1, got {options.rounds}")
    figures = list(SUITES[options.suite](options.rounds))
    entries = verdicts(options.suite, figures)
    show(options.suite, figures, entries)
    if options.json:
        rows = [vars(figure) | {"ratio": figure.ratio} for figure in figures]
        machine = {"machine": platform.machine(), "python": platform.python_version(), "rounds": options.rounds}
        options.json.write_text(
            json.dumps({"suite": options.suite, **machine, "rows": rows, "bars": entries}, indent=1)
        )


if __name__ == "__main__":
    main()
