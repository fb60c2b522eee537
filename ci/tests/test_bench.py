"""What the benchmarks say of their figures: a bar is reached only by figures that are there and low enough."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

BENCH = Path(__file__).resolve().parents[1] / "bench"


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """ci/bench/__main__.py, with its folder on the path as when it is run."""
    monkeypatch.syspath_prepend(str(BENCH))
    spec = importlib.util.spec_from_file_location("bench_main", BENCH / "__main__.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "bench_main", module)
    spec.loader.exec_module(module)
    return module


def entry(bench: ModuleType, bar: str, *ratios: float | None) -> dict:
    """The verdict on a bar of the large eager rows, one row a ratio; None: a row that cannot run yet."""
    figures = [bench.Figure("large", f"row {n}", ratio, ratio and 1.0, "peer") for n, ratio in enumerate(ratios)]
    (found,) = (e for e in bench.verdicts("eager", figures) if e["group"] == "large" and e["bar"] == bar)
    return found


def test_reached_and_missed(bench: ModuleType):
    assert entry(bench, "geomean", 0.5, 2.0)["value"] == pytest.approx(1.0)
    assert entry(bench, "geomean", 0.5, 1.9)["verdict"] == "reached"
    assert entry(bench, "each", 0.5, 1.9)["verdict"] == "missed"


def test_a_row_that_is_missing_does_not_count_as_reached(bench: ModuleType):
    assert entry(bench, "geomean", 0.5, None) | {"value": None} == {
        "group": "large",
        "bar": "geomean",
        "limit": 1.0,
        "unit": "",
        "value": None,
        "verdict": "incomplete",
        "missing": 1,
    }
    assert entry(bench, "geomean", None)["verdict"] == "not yet"


def test_every_bar_names_rows_that_exist(bench: ModuleType):
    from bars import BARS, EACH, GEOMEAN

    assert {suite for suite, _ in BARS} == set(bench.SUITES)
    names = {name for bars in BARS.values() for name in bars} - {EACH, GEOMEAN}
    assert names == {"add 16x16", "median", "autoload", "first op"}
