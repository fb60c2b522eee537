"""Gaps in other libraries that keep them from working with this device, closed when those libraries are imported.

Every gap is one row of :data:`ROWS`. ``TORCH_NEURONX_INTEROP=0`` leaves all libraries as they are.
"""

import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import os
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType


@dataclass(frozen=True)
class Row:
    """One gap in one library."""

    module: str  #: whose import applies the row
    distribution: str  #: what :attr:`versions` counts
    versions: tuple[
        str, str
    ]  #: first version with the gap, first one known not to need the row ("" when there is none)
    symbol: str  #: what is replaced
    why: str
    link: str  #: upstream issue or code
    test: str  #: the test that fails without the row
    apply: Callable[[ModuleType], None]


def _dlpack(torch: ModuleType) -> None:
    from . import dlpack

    dlpack.apply(torch)


def _safetensors(module: ModuleType) -> None:
    from . import safetensors

    safetensors.apply(module)


ROWS = (
    Row(
        module="torch",
        distribution="torch",
        versions=("2.13", ""),
        symbol="torch.Tensor.__dlpack_device__",
        why="compares the device's type with the literal 'privateuse1', which a renamed device never has",
        link="pytorch/pytorch:torch/_tensor.py",
        test="tests/test_interop.py::test_dlpack",
        apply=_dlpack,
    ),
    Row(
        module="safetensors",
        distribution="safetensors",
        versions=("0.4", ""),
        symbol="safetensors.safe_open",
        why="the list of device names is closed",
        link="huggingface/safetensors:bindings/python/src/lib.rs",
        test="tests/test_interop.py::test_safetensors",
        apply=_safetensors,
    ),
)


def _release(version: str) -> tuple[int, ...]:
    """ "2.14.1+cu130" -> (2, 14, 1)"""
    numbers = []
    for part in version.split("+")[0].split("."):
        digits = "".join(character for character in part if character.isdigit())
        if not digits:
            break
        numbers.append(int(digits))
    return tuple(numbers)


def _wanted(row: Row, module: ModuleType) -> bool:
    first, fixed = row.versions
    version = getattr(module, "__version__", None) or importlib.metadata.version(row.distribution)
    return _release(first) <= _release(version) and not (fixed and _release(fixed) <= _release(version))


def _apply(module: ModuleType) -> None:
    for row in ROWS:
        if row.module == module.__name__ and _wanted(row, module):
            try:
                row.apply(module)
            except Exception as error:  # the other library changed: it must still import
                warnings.warn(
                    f"torch_neuronx could not adapt {row.symbol} ({row.why}): {error}", RuntimeWarning, stacklevel=2
                )


class _Loader(importlib.abc.Loader):
    """Runs a module's own loader, then its rows."""

    def __init__(self, loader: importlib.abc.Loader):
        self._loader = loader

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        self._loader.exec_module(module)
        _apply(module)

    def __getattr__(self, name):  # get_source, get_resource_reader...
        return getattr(self._loader, name)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the modules that have rows, by asking all other finders."""

    _modules = frozenset(row.module for row in ROWS)

    def find_spec(self, name, path=None, target=None):
        if name not in self._modules:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Loader(spec.loader)
                return spec
        return None


def install() -> None:
    """Apply the rows of imported libraries now, and of the others when they are imported."""
    if os.environ.get("TORCH_NEURONX_INTEROP", "1") == "0":
        return
    for name in {row.module for row in ROWS}:
        if name in sys.modules:
            _apply(sys.modules[name])
    sys.meta_path.insert(0, _Finder())
