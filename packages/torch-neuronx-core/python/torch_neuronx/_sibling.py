"""Modules that the other packages of this project provide under ``torch_neuronx``'s names."""

import importlib
from types import ModuleType


def load(module: str, distribution: str, wanted: str) -> ModuleType:
    """Import ``module``. Raises ImportError saying that ``wanted`` needs ``distribution`` when that is not installed."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # the package is there; something that it needs is not
        raise ImportError(
            f"{wanted} needs the package {distribution}, which is not installed: pip install {distribution}",
            name=error.name,
        ) from error
