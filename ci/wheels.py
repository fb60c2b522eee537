"""Every package as a wheel, installed by file in bare environments: `python3 ci/wheels.py`, after `ci/test.py`.

Three environments, each removed when it has served:

* runtime: the runtime alone, with its own tests;
* core: the device alone: a smoke test with nothing else installed, then its own tests;
* stack: the device, then its compiler, then the meta package: a smoke test of each; then the example of a plugin, with
  its own tests.

Wheels are named by path and never by bare name: an index may hold another package of the same name.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import uv
from build import PYTHON, ROOT, attempt, run
from workspace import BY_NAME, PACKAGES

DIST = ROOT / "build/dist"
CONSTRAINTS = ROOT / "build/constraints.txt"
SMOKE = ROOT / "ci/smoke.py"
PLUGIN, PLUGIN_FOLDER = "softclip", ROOT / "examples/plugin"
# A cache that starts empty and an independent working folder: what is imported is what is installed.
ENVIRONMENTS = ROOT / "build/environments"


class Environment:
    """A virtual environment that holds what `install` was asked for, and nothing else."""

    def __init__(self, name: str) -> None:
        self.folder = ENVIRONMENTS / name
        self.python = self.folder / "bin/python"
        run(UV, "venv", "--quiet", "--clear", "--python", PYTHON, self.folder)

    def install(self, *what: str | Path) -> None:
        run(UV, "pip", "install", "--quiet", "--python", self.python, "--constraints", CONSTRAINTS, *what)

    def smoke(self, level: str) -> None:
        cache = self.folder / "cache" / level
        run(self.python, SMOKE, level, cwd=self.folder, TORCH_NEURONX_NEFF_CACHE_DIR=str(cache))

    def test(self, folder: Path, *options: str) -> int:
        """The tests of the package in a folder, with what its group `test` names; returns pytest's exit code."""
        self.install("--group", f"{folder / 'pyproject.toml'}:test")
        return attempt(self.python, "-m", "pytest", "--quiet", "-p", "no:cacheprovider", folder / "tests", *options)

    def remove(self) -> None:
        shutil.rmtree(self.folder)


def wheel(name: str) -> Path:
    (path,) = DIST.glob(f"{name.replace('-', '_')}-*.whl")
    return path


def main() -> None:
    shutil.rmtree(DIST, ignore_errors=True)
    shutil.rmtree(ENVIRONMENTS, ignore_errors=True)
    # --frozen: the lock is taken as it is, placeholders and all; only names and versions leave it.
    run(
        UV,
        "export",
        "--quiet",
        "--frozen",
        "--all-packages",
        "--no-emit-workspace",
        "--no-hashes",
        "--output-file",
        CONSTRAINTS,
    )
    for name in (*(package.name for package in PACKAGES), PLUGIN):
        run(UV, "build", "--quiet", "--wheel", "--python", PYTHON, "--package", name, "--out-dir", DIST)

    runtime = Environment("runtime")
    runtime.install(wheel("libneuron-runtime"))
    codes = [runtime.test(BY_NAME["libneuron-runtime"].folder)]
    runtime.remove()

    core = Environment("core")
    core.install(wheel("libneuron-runtime"), wheel("torch-neuronx-core"))
    core.smoke("core")
    # That suite runs all others once more; `ci/test.py` has done so.
    folder = BY_NAME["torch-neuronx-core"].folder
    codes.append(core.test(folder, "--ignore", str(folder / "tests/test_host_invisible.py")))
    core.remove()

    stack = Environment("stack")
    stack.install(*(wheel(name) for name in ("libneuron-runtime", "torch-neuronx-core", "torch-neuronx-compile")))
    stack.smoke("compile")
    stack.install(*(wheel(package.name) for package in PACKAGES))
    stack.smoke("compile")
    stack.install(wheel(PLUGIN))
    codes.append(stack.test(PLUGIN_FOLDER))
    stack.remove()
    if any(codes):
        sys.exit("wheels: a package fails its own tests where it is installed alone")
    print("wheels: each package works alone and with those below it")


if __name__ == "__main__":
    UV = uv.find_uv()
    main()
