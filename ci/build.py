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


def run(*command: str | Path, cwd: Path = ROOT, **variables: str) -> None:
    """Run one command with extra environment variables; a failure ends this program with the command's exit code."""
    print("+", *command, flush=True)
    code = subprocess.run([str(word) for word in command], cwd=cwd, env={**environment(), **variables}).returncode
    if code:
        sys.exit(code)


def runtime_tests(build: Path, *options: str) -> None:
    """Configure, build and run the runtime's C++ tests in folder `build`."""
    run("cmake", "-S", RUNTIME, "-B", build, "-G", "Ninja", "-DNEURON_TESTS=ON", *options)
    run("cmake", "--build", build)
    run("ctest", "--test-dir", build, "--output-on-failure", "--no-tests=error")
