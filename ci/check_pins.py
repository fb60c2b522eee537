"""Versions and pins agree. uv does not check the version pins between members of a workspace; this does."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator

from packaging.requirements import Requirement
from packaging.version import Version

from workspace import BY_NAME, PACKAGES, ROOT

# Packages that exist once a torch release: their version begins with torch's.
FOLLOW_TORCH = ("torch-neuronx-core", "torch-neuronx-compile", "torch-neuronx")


def problems() -> Iterator[str]:
    root = tomllib.loads((ROOT / "pyproject.toml").read_text())
    lock = tomllib.loads((ROOT / "uv.lock").read_text())
    locked = {entry["name"]: entry["version"] for entry in lock["package"] if "version" in entry}
    torch = Version(locked["torch"])
    projects = {package.name: package.project() for package in PACKAGES}

    for name, project in projects.items():
        table, version = project["project"], Version(project["project"]["version"])
        if name in FOLLOW_TORCH and version.release[:2] != torch.release[:2]:
            yield f"{name} {version} is built for torch {torch}: its version has to begin with the same two numbers"
        if table["requires-python"] != root["project"]["requires-python"]:
            yield f"{name} requires Python {table['requires-python']}, the root {root['project']['requires-python']}"
        if table.get("license") != "Apache-2.0":
            yield f"{name} does not state the licence Apache-2.0"
        requirements = {
            "dependencies": table["dependencies"],
            "build-system.requires": project["build-system"]["requires"],
            "dependency-groups.test": project.get("dependency-groups", {}).get("test", []),
        }
        if name != "torch-neuronx" and not requirements["dependency-groups.test"]:
            yield f"{name} has no dependency group `test`: what its own tests need when it is installed alone"
        for where, texts in requirements.items():
            for requirement in map(Requirement, texts):
                has = projects[requirement.name]["project"]["version"] if requirement.name in BY_NAME else None
                has = has or locked.get(requirement.name)
                if has and not requirement.specifier.contains(has, prereleases=True):
                    yield f"{name}, {where}: {requirement} excludes {has}, which this tree has"
        for sibling in BY_NAME[name].below:
            if f"{sibling}" not in root["tool"]["uv"]["sources"]:
                yield f"{sibling} is missing from tool.uv.sources of the root: uv would take it from an index"


if __name__ == "__main__":
    found = list(problems())
    print("\n".join(found) or "pins: versions agree")
    sys.exit(1 if found else 0)
