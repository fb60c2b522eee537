"""The runtime's C++ tests under sanitizers: `python3 ci/sanitize.py [address | thread]`."""

from __future__ import annotations

import os
import sys

from build import ROOT, runtime_tests

SETS = {"address": "address,undefined", "thread": "thread"}

if __name__ == "__main__":
    name = sys.argv[1] if len(sys.argv) > 1 else "address"
    if name not in SETS:
        sys.exit(f"ci/sanitize.py: no such set of sanitizers: {name}; there are {', '.join(SETS)}")
    os.environ.setdefault("ASAN_OPTIONS", "detect_stack_use_after_return=1:strict_string_checks=1")
    os.environ.setdefault("UBSAN_OPTIONS", "print_stacktrace=1")
    sys.exit(runtime_tests(ROOT / f"build/{name}", f"-DNEURON_SANITIZE={SETS[name]}"))
