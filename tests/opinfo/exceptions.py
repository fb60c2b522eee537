"""Where the device differs from the CPU, as `exceptions.toml` lists it. The tests hold every row to what it says."""

from __future__ import annotations

import tomllib
import unittest
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.testing._internal.opinfo.core import DecorateInfo, OpInfo

from .samples import ALL

KINDS = ("unsupported", "expected failure")


@dataclass(frozen=True)
class Exception_:
    """One row of `[[exception]]`.

    op:     full name in the database, "std.unbiased"
    kind:   "unsupported": the device refuses, saying why; "expected failure": the device is wrong
    reason: why
    tests:  names of test methods, without "test_"
    dtypes: names of dtypes; all when empty
    all_samples: fails only in samples that a short run does not reach
    """

    op: str
    kind: str
    reason: str
    tests: tuple[str, ...]
    dtypes: tuple[str, ...] = ()
    all_samples: bool = False


@dataclass(frozen=True)
class Table:
    exceptions: tuple[Exception_, ...]
    fallback: dict[str, str]  # entry -> why it is left to the CPU

    @staticmethod
    def load(path: Path = Path(__file__).with_name("exceptions.toml")) -> Table:
        """Raises ValueError for a row without a reason or with an unknown kind or dtype."""
        data = tomllib.loads(path.read_text())
        rows = []
        for row in data.get("exception", []):
            found = Exception_(**{k: tuple(v) if isinstance(v, list) else v for k, v in row.items()})
            if found.kind not in KINDS or not found.reason or not found.tests:
                raise ValueError(f"{path.name}: {row}: kind is one of {KINDS}, reason and tests are given")
            for dtype in found.dtypes:
                if not isinstance(getattr(torch, dtype, None), torch.dtype):
                    raise ValueError(f"{path.name}: {row}: unknown dtype {dtype!r}")
            rows.append(found)
        return Table(tuple(rows), dict(data.get("fallback", {})))

    def overrides(self, database: list[OpInfo]) -> dict[str, list[DecorateInfo]]:
        """What `PrivateUse1TestBase.set_test_configs` takes. A test of a row that passes is then reported as a failure.
        Raises ValueError for an operator that the database does not have."""
        names = {op.full_name for op in database}
        found: dict[str, list[DecorateInfo]] = {}
        for row in self.exceptions:
            if row.op not in names:
                raise ValueError(f"exceptions.toml: the database has no operator {row.op!r}")
            if row.all_samples and not ALL:
                continue
            for test in row.tests:
                dtypes = [getattr(torch, dtype) for dtype in row.dtypes] or None
                found.setdefault(row.op, []).append(
                    DecorateInfo(unittest.expectedFailure, None, f"test_{test}", dtypes=dtypes)
                )
        return found
