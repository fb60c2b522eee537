"""ruff and clang-format over the whole tree: `python ci/check_style.py`, and `--fix` to format in place."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from check_text import ROOT, files

TOOLS = Path(sys.executable).parent


def run(*command: str) -> bool:
    return subprocess.run([str(TOOLS / command[0]), *command[1:]], cwd=ROOT).returncode == 0


if __name__ == "__main__":
    fix = "--fix" in sys.argv[1:]
    cpp = [str(path) for path in files() if path.suffix in {".h", ".hpp", ".c", ".cc", ".cpp", ".inc"}]
    passed = [
        run("ruff", "check", "--quiet", *(["--fix"] if fix else []), "."),
        run("ruff", "format", *([] if fix else ["--check"]), "."),
        run("clang-format", *(["-i"] if fix else ["--dry-run", "-Werror"]), *cpp),
    ]
    print(f"style: {'formatted' if fix else 'checked'}, {len(cpp)} C++ files among them")
    sys.exit(0 if all(passed) else 1)
