"""The c10d backend "neuron", which the package torch-neuronx-dist provides: importing this module registers it.

Importing this module without that package raises an ImportError that says so.
"""

from torch_neuronx._sibling import load

_backend = load("torch_neuronx_dist.backend", "torch-neuronx-dist", __name__)


def __getattr__(name: str):
    return getattr(_backend, name)


def __dir__():
    return dir(_backend)
