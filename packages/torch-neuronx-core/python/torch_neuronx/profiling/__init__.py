"""Device profiles for ``torch.profiler``, which the package torch-neuronx-profiling provides.

Importing this module without that package raises an ImportError that says so.
"""

from torch_neuronx._sibling import load

_profiling = load("torch_neuronx_profiling", "torch-neuronx-profiling", __name__)


def __getattr__(name: str):
    return getattr(_profiling, name)


def __dir__():
    return dir(_profiling)
