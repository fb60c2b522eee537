"""Entry point of the group ``torch.backends``: ``import torch`` ends by calling :func:`autoload`.

A package of its own, because torch imports the package of an entry point before it calls it, and an error there would end
``import torch``.
"""

import warnings


def autoload() -> None:
    """Register the device. Never raises: a device that cannot be loaded leaves torch as it is, with a warning."""
    try:
        import torch_neuronx  # noqa: F401  half imported when the program imports it before torch; then it goes on later
    except Exception as error:
        warnings.warn(f'The device "neuron" is not available: {error}', RuntimeWarning, stacklevel=2)
