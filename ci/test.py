"""Build everything and run all tests: `python3 ci/test.py`. Arguments go to pytest.

The environment `.venv` is made or brought up to date, then the runtime's C++ tests run (ctest), then pytest over all
packages, examples and documents. Any Python from 3.11 on runs this file.
"""

from __future__ import annotations

import sys

from build import PYTHON, ROOT, attempt, run, runtime_tests

if __name__ == "__main__":
    run(sys.executable, "ci/uv.py", "sync")
    codes = runtime_tests(ROOT / "build/runtime"), attempt(PYTHON, "-m", "pytest", *sys.argv[1:])
    sys.exit(next((code for code in codes if code), 0))
