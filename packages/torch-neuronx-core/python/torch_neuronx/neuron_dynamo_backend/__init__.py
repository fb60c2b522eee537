"""The ``torch.compile`` backend "neuron", which the package torch-neuronx-compile provides.

Importing this module without that package raises an ImportError that says so.
"""

from torch_neuronx._sibling import load

_backend = load("torch_neuronx_compile.dynamo_backend", "torch-neuronx-compile", __name__)


def __getattr__(name: str):
    return getattr(_backend, name)


def __dir__():
    return dir(_backend)
