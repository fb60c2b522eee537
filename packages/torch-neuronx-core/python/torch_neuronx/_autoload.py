"""Entry point of the group ``torch.backends``: ``import torch`` ends by calling :func:`autoload`.

A module of its own, so that torch can load it while ``torch_neuronx`` itself is still being imported (when a program
imports ``torch_neuronx`` first).
"""

import warnings


def autoload() -> None:
    """Register the device. Never raises: a device that cannot be loaded leaves torch as it is, with a warning."""
    try:
        import torch_neuronx  # noqa: F401
    except Exception as error:
        warnings.warn(f'The device "neuron" is not available: {error}', RuntimeWarning, stacklevel=2)
