"""Telling torch about the device: its name, its Python module and the methods named after it."""

import sys

import torch

from . import _C


def register() -> None:
    """Rename PrivateUse1 to "neuron" and register everything that torch asks a device for. Once a process."""
    torch.utils.rename_privateuse1_backend("neuron")
    torch._register_device_module("neuron", sys.modules["torch_neuronx"])
    torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)
    _C.register_device()

    from . import _exit, interop

    interop.install()
    _exit.register()
