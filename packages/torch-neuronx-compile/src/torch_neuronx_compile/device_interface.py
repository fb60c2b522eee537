"""What Dynamo asks of a device type, for "neuron"."""

from __future__ import annotations

from typing import Any

import torch
from torch._dynamo.device_interface import DeviceInterface, device_interfaces, register_interface_for_device


class NeuronInterface(DeviceInterface):
    """Forwards to torch.neuron."""

    class Worker:
        """The same questions, asked from a compile worker."""

        @staticmethod
        def set_device(device: int) -> None:
            torch.neuron.set_device(device)

        @staticmethod
        def current_device() -> int:
            return torch.neuron.current_device()

        @staticmethod
        def get_device_properties(device: Any = None) -> Any:
            return torch.neuron.get_device_properties(device)

    @staticmethod
    def current_device() -> int:
        return torch.neuron.current_device()

    @staticmethod
    def set_device(device: Any) -> None:
        torch.neuron.set_device(device)

    @staticmethod
    def exchange_device(device: int) -> int:
        previous = torch.neuron.current_device()
        if device >= 0:
            torch.neuron.set_device(device)
        return previous

    maybe_exchange_device = exchange_device

    @staticmethod
    def device_count() -> int:
        return torch.neuron.device_count()

    @staticmethod
    def is_available() -> bool:
        return torch.neuron.is_available()

    @staticmethod
    def current_stream(device: Any = None) -> Any:
        return torch.neuron.current_stream(device)

    @staticmethod
    def stream(stream: Any) -> Any:
        return torch.neuron.stream(stream)

    @staticmethod
    def set_stream(stream: Any) -> None:
        torch.neuron.set_stream(stream)

    @staticmethod
    def synchronize(device: Any = None) -> None:
        torch.neuron.synchronize(device)

    @staticmethod
    def get_raw_stream(device: int) -> int:
        return torch.neuron.current_stream(device).stream_id

    @staticmethod
    def get_device_properties(device: Any = None) -> Any:
        return torch.neuron.get_device_properties(device)

    @staticmethod
    def get_compute_capability(device: Any = None) -> Any:
        return torch.neuron.get_device_capability(device)

    @staticmethod
    def memory_allocated(device: Any = None) -> int:
        return torch.neuron.memory_allocated(device)

    @staticmethod
    def is_bf16_supported(including_emulation: bool = False) -> bool:
        return True

    @staticmethod
    def is_dtype_supported(dtype: torch.dtype, including_emulation: bool = False) -> bool:
        return not dtype.is_complex

    @staticmethod
    def is_triton_capable(device: Any = None) -> bool:
        return False

    @staticmethod
    def raise_if_triton_unavailable(device: Any = None) -> None:
        raise RuntimeError("Triton does not run on neuron devices; write the kernel in NKI (package nki)")


def register() -> None:
    """Make Dynamo know the device; a second call does nothing."""
    if "neuron" not in device_interfaces:
        register_interface_for_device("neuron", NeuronInterface)
        for index in range(torch.neuron.device_count()):
            register_interface_for_device(f"neuron:{index}", NeuronInterface)
