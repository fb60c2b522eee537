"""The packages of the workspace, from bottom to top, and what a changed file concerns. The one table of the layers."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Package:
    """One published package. `below`: the siblings that it may import, by distribution name."""

    name: str
    module: str | None  # None: the meta package has no code
    below: tuple[str, ...]

    @property
    def folder(self) -> Path:
        return ROOT / "packages" / self.name

    def project(self) -> dict:
        """The parsed pyproject.toml."""
        return tomllib.loads((self.folder / "pyproject.toml").read_text())


PACKAGES = [
    Package("libneuron-runtime", "libneuron_runtime", ()),
    Package("torch-neuronx-core", "torch_neuronx", ("libneuron-runtime",)),
    Package("torch-neuronx-compile", "torch_neuronx_compile", ("libneuron-runtime", "torch-neuronx-core")),
    Package("torch-neuronx", None, ("torch-neuronx-core", "torch-neuronx-compile")),
]
BY_NAME = {package.name: package for package in PACKAGES}

# Files outside packages/ that concern every package, and those that concern none.
EVERYTHING = ("pyproject.toml", "uv.lock", ".python-version", "ci/", ".ci/", "tests/")
NOTHING = ("README.md", "LICENSE", "docs/", "examples/", ".gitignore", ".clang-format")


def affected(path: str) -> list[Package]:
    """The packages whose tests a change of `path` (relative to the root) calls for: its own and all above.

    Raises ValueError for a path that belongs nowhere, so that a new package cannot escape the tests.
    """
    for package in PACKAGES:
        if path.startswith(f"packages/{package.name}/"):
            return [other for other in PACKAGES if other is package or package.name in _all_below(other)]
    if path.startswith(EVERYTHING):
        return PACKAGES
    if path.startswith(NOTHING):
        return []
    raise ValueError(f"{path} belongs to no package: add it to the tables of ci/workspace.py")


def _all_below(package: Package) -> set[str]:
    names = set(package.below)
    return names.union(*(_all_below(BY_NAME[name]) for name in names))
