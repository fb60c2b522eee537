"""Running build commands from the root of the tree, and the runtime's C++ tests. Python 3.11, standard library only."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTHON = ROOT / ".venv/bin/python"
RUNTIME = ROOT / "packages/libneuron-runtime"


def environment() -> dict[str, str]:
    """Compile through ccache where it is installed: wheels, tests and sanitizers share sources."""
    launcher = {"CMAKE_CXX_COMPILER_LAUNCHER": "ccache", "CMAKE_C_COMPILER_LAUNCHER": "ccache"}
    jobs = {"CMAKE_BUILD_PARALLEL_LEVEL": str(os.cpu_count() or 1)}
    return {**jobs, **(launcher if shutil.which("ccache") else {}), **os.environ}


def attempt(*command: str | Path, cwd: Path = ROOT, **variables: str) -> int:
    """Run one command with extra environment variables and return its exit code."""
    print("+", *command, flush=True)
    return subprocess.run([str(word) for word in command], cwd=cwd, env={**environment(), **variables}).returncode


def run(*command: str | Path, cwd: Path = ROOT, **variables: str) -> None:
    """The same for a command that the rest needs: a failure ends this program with the command's exit code."""
    if code := attempt(*command, cwd=cwd, **variables):
        sys.exit(code)


def runtime_tests(build: Path, *options: str) -> int:
    """Configure, build and run the runtime's C++ tests in folder `build`; returns ctest's exit code."""
    run("cmake", "-S", RUNTIME, "-B", build, "-G", "Ninja", "-DNEURON_TESTS=ON", *options)
    run("cmake", "--build", build)
    return attempt("ctest", "--test-dir", build, "--output-on-failure", "--no-tests=error")
