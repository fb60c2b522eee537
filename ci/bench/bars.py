"""What each figure has to reach: the one table. Ratios are ours divided by the peer's; less is better."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Bar:
    limit: float
    unit: str = ""  # "" for a ratio


EACH = "each"  # no row of the group may exceed this
GEOMEAN = "geomean"  # the geometric mean of the group's ratios

# (suite, group) -> {row, EACH or GEOMEAN: bar}
BARS: dict[tuple[str, str], dict[str, Bar]] = {
    ("eager", "small"): {"add 16x16": Bar(0.75)},
    ("eager", "large"): {GEOMEAN: Bar(1.0), EACH: Bar(1.3)},
    ("eager", "miss"): {"median": Bar(1.0, "ms")},
    ("startup", "process"): {"autoload": Bar(60.0, "ms"), "first op": Bar(80.0, "ms")},
    ("compile", "run"): {GEOMEAN: Bar(0.9), EACH: Bar(1.25)},
    ("compile", "compiler"): {GEOMEAN: Bar(0.05)},
    ("compile", "first call"): {EACH: Bar(1.25)},
}
