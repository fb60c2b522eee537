"""Build for another torch or Python and run the smoke tests: `python3 ci/matrix.py --torch 2.13 --python 3.13`.

One source tree serves every release of torch; a binary serves one. The tree is copied, versions and pins in the copy
are rewritten from the table below (torch 2.13 -> packages 2.13.N), its lock is resolved anew with the committed
versions as preferences, so that only torch and what it brings change, and the smoke tests run in its environment.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from pathlib import Path

from build import ROOT, run
from check_text import files

# torch release -> how its range is written. The first is the one that the tree itself is written for.
TORCH = {"2.14": ">=2.14,<2.15", "2.13": ">=2.13,<2.14"}
PYTHON = ("3.12", "3.13", "3.14")
HOME = next(iter(TORCH))


def rewrite(text: str, torch: str) -> str:
    """A pyproject.toml of this tree, made one for another torch release."""
    text = text.replace(f"torch{TORCH[HOME]}", f"torch{TORCH[torch]}")
    text = re.sub(rf"(torch-neuronx[a-z-]*)=={re.escape(HOME)}\.\*", rf"\g<1>=={torch}.*", text)
    return re.sub(rf'^version = "{re.escape(HOME)}\.', f'version = "{torch}.', text, flags=re.MULTILINE)


def copy_tree(target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    for path in files():
        copy = target / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, copy)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--torch", choices=TORCH, default=HOME)
    parser.add_argument("--python", choices=PYTHON, default=PYTHON[0])
    parser.add_argument("--keep", action="store_true", help="leave the copy and its environment (about 6 GB) in place")
    options = parser.parse_args()

    tree = ROOT / f"build/matrix/torch-{options.torch}-python-{options.python}"
    copy_tree(tree)
    for project in tree.rglob("pyproject.toml"):
        project.write_text(rewrite(project.read_text(), options.torch))
    variables = {"UV_PYTHON": options.python, "UV_PROJECT_ENVIRONMENT": str(tree / ".venv")}
    run(sys.executable, "ci/uv.py", "sync", "--all-packages", cwd=tree, **variables)
    python = tree / ".venv/bin/python"
    run(python, "ci/check_pins.py", cwd=tree)
    run(python, "ci/smoke.py", "compile", cwd=tree, TORCH_NEURONX_NEFF_CACHE_DIR=str(tree / "cache"))
    if not options.keep:
        shutil.rmtree(tree)


if __name__ == "__main__":
    main()
