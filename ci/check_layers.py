"""Imports go down only, and what must stay light stays light. Reads the sources; imports nothing of ours."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from workspace import BY_NAME, PACKAGES, ROOT, Package, affected

OURS = {package.module: package.name for package in PACKAGES if package.module}

# Top-level modules that a package's own code (not its tests) never imports, at any depth of a function.
FORBIDDEN = {
    "libneuron-runtime": {"torch", "numpy", "jax", "jaxlib"},
    "torch-neuronx-core": {"numpy", "jax", "jaxlib"},
    "torch-neuronx-compile": {"jax", "jaxlib"},
}
# Slow to import (1.4 s): core never loads them, compile only where a graph is compiled or an op is decomposed.
SLOW = ("torch._dynamo", "torch._inductor", "torch.fx", "torch._functorch")
NO_SLOW_AT_IMPORT = {"torch-neuronx-core"}

# Headers that the runtime does not include outside its binding: it knows neither torch nor Python.
FOREIGN_HEADER = re.compile(r'#\s*include\s*[<"](torch/|ATen/|c10/|pybind11/|Python\.h)')
BINDING = "packages/libneuron-runtime/src/python/"


def imports(tree: ast.AST) -> Iterator[tuple[int, str, bool]]:
    """(line, module, at import time) of every import statement and every import_module("...") call."""

    def walk(node: ast.AST, eager: bool) -> Iterator[tuple[int, str, bool]]:
        for child in ast.iter_child_nodes(node):
            inside = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                continue
            if isinstance(child, ast.Import):
                yield from ((child.lineno, alias.name, eager) for alias in child.names)
            elif isinstance(child, ast.ImportFrom) and not child.level and child.module:
                yield child.lineno, child.module, eager
                yield from ((child.lineno, f"{child.module}.{alias.name}", eager) for alias in child.names)
            elif isinstance(child, ast.Call) and ast.unparse(child.func).endswith("import_module") and child.args:
                if isinstance(child.args[0], ast.Constant) and isinstance(child.args[0].value, str):
                    yield child.lineno, child.args[0].value, eager
            yield from walk(child, eager and not inside)

    yield from walk(tree, True)


def problems_of_module(package: Package, path: Path) -> Iterator[str]:
    where = path.relative_to(ROOT)
    for line, module, eager in imports(ast.parse(path.read_text(), str(path))):
        top = module.partition(".")[0]
        owner = OURS.get(top)
        if owner and owner != package.name and owner not in package.below:
            yield f"{where}:{line}: {package.name} is below {owner} and cannot import {module}"
        if top in FORBIDDEN.get(package.name, ()):
            yield f"{where}:{line}: {package.name} does not depend on {top}"
        if eager and package.name in NO_SLOW_AT_IMPORT and module.startswith(SLOW):
            yield f"{where}:{line}: {module} is imported when {package.name} is; import it where it is used"


def sources(package: Package) -> Iterator[Path]:
    """Python files of the package itself: those that go into its wheel."""
    for name in ("src", "python"):
        if package.module and (folder := package.folder / name / package.module).is_dir():
            yield from sorted(folder.rglob("*.py"))


def problems() -> Iterator[str]:
    for package in PACKAGES:
        for path in sources(package):
            yield from problems_of_module(package, path)
        declared = {re.split(r"[^A-Za-z0-9_.-]", text)[0] for text in package.project()["project"]["dependencies"]}
        if extra := (declared & set(BY_NAME)) - set(package.below):
            yield f"{package.name} depends on {', '.join(sorted(extra))}, which ci/workspace.py does not put below it"
        if missing := set(package.below) - declared:
            yield f"{package.name} does not declare {', '.join(sorted(missing))}, which ci/workspace.py puts below it"
    runtime = BY_NAME["libneuron-runtime"].folder
    for path in sorted([*runtime.glob("src/**/*"), *runtime.glob("include/**/*")]):
        name = str(path.relative_to(ROOT))
        if path.suffix in {".h", ".cpp", ".c"} and not name.startswith(BINDING):
            for number, text in enumerate(path.read_text().splitlines(), 1):
                if FOREIGN_HEADER.search(text):
                    yield f"{name}:{number}: the runtime knows neither torch nor Python outside its binding: {text}"
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in listed.splitlines():
        try:
            affected(name)
        except ValueError as error:
            yield str(error)


if __name__ == "__main__":
    found = list(problems())
    print("\n".join(found) or "layers: imports go down only")
    sys.exit(1 if found else 0)
