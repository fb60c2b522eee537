"""Choosing, counting and describing devices. A device is one logical NeuronCore that this process may use."""

import os
from dataclasses import dataclass

import torch

from . import _C

Device = torch.device | str | int | None


def is_available() -> bool:
    """Whether there is at least one device. Does not start the runtime."""
    return _C.device_count() > 0


def device_count() -> int:
    """Number of visible cores (``NEURON_RT_VISIBLE_CORES``, ``NEURON_RT_NUM_CORES``). Does not start the runtime."""
    return _C.device_count()


def is_initialized() -> bool:
    """Whether the runtime has been started in this process."""
    return _C.is_initialized()


def init() -> None:
    """Start the runtime if it is not running; the first tensor does it as well. RuntimeError without a device, and in a
    process forked from one that had used a device."""
    _C.initialize()


_lazy_init = init  # the name that torch calls


def _is_in_bad_fork() -> bool:
    return _C.in_bad_fork()


def _get_device_index(device: Device, optional: bool = True, allow_cpu: bool = False) -> int:
    """Index of ``device``: a torch.device, a string, an index, or None for the current device.

    -1 for a CPU device when ``allow_cpu``. ValueError for another type of device, or for None when not ``optional``.
    """
    if isinstance(device, int) and not isinstance(device, bool):
        return _C.current_device() if device < 0 else device
    if isinstance(device, str):
        device = torch.device(device)
    if isinstance(device, torch.device):
        if allow_cpu and device.type == "cpu":
            return -1
        if device.type != "neuron":
            raise ValueError(f"Expected a neuron device, but got: {device}")
        if device.index is not None:
            return device.index
    elif device is not None:
        raise ValueError(f"Expected a torch.device, a string, an index or None, but got: {device!r}")
    if not optional:
        raise ValueError(f"Expected a neuron device with an index, but got: {device}")
    return _C.current_device()


def current_device() -> int:
    """Index of the calling thread's device."""
    return _C.current_device()


def set_device(device: Device) -> None:
    """Make ``device`` the calling thread's device. RuntimeError for an index out of range; negative ones change nothing."""
    index = device if isinstance(device, int) else _get_device_index(device)
    if index >= 0:
        _C.set_device(index)


def _exchange_device(device: int) -> int:
    """Make ``device`` current and return the previous index; a negative index changes nothing."""
    previous = _C.current_device()
    if device >= 0:
        _C.set_device(device)
    return previous


_maybe_exchange_device = _exchange_device  # every device is as cheap to choose as not to


class device:
    """Context manager: the given device is current inside. Nothing changes for None and negative indices."""

    def __init__(self, device: Device):
        self.idx = -1 if device is None or (isinstance(device, int) and device < 0) else _get_device_index(device)
        self.prev_idx = -1

    def __enter__(self):
        self.prev_idx = _exchange_device(self.idx)

    def __exit__(self, *_):
        _exchange_device(self.prev_idx)
        return False


class device_of(device):
    """Context manager: the device of a tensor or storage is current inside; nothing changes for other devices' tensors."""

    def __init__(self, obj):
        super().__init__(obj.device.index if obj.device.type == "neuron" else None)


def synchronize(device: Device = None) -> None:
    """Wait until all work of all streams of the device is done; errors of that work are raised here."""
    index = _get_device_index(device)
    _C.initialize()
    _C.synchronize(index)


@dataclass(frozen=True)
class DeviceProperties:
    """What :func:`get_device_properties` returns."""

    name: str  #: platform target: "trn1", "trn2", "trn2u", "trn3"...
    total_memory: int  #: bytes of device memory that tensors may take
    generation: int  #: of the NeuronCore: 2, 3 or 4


_GENERATIONS = {"trn1": 2, "trn1n": 2, "inf2": 2, "trn2": 3, "trn2n": 3, "trn2u": 3, "trn3": 4}
_TARGETS = {"gen2": "trn1", "gen3": "trn2", "gen4": "trn3"}
# nrt_instance_family_t to platform target
_FAMILIES = {2: "trn1", 3: "trn1n", 4: "inf2", 6: "trn2n", 7: "inf2", 9: "trn2u", 13: "trn2u", 14: "trn3", 15: "trn3"}


def _platform_target() -> str:
    """The target: ``NEURON_PLATFORM_TARGET_OVERRIDE`` (trn1 or gen2, trn2 or gen3, trn3 or gen4), else the machine's.

    ValueError when the variable names no target.
    """
    override = os.environ.get("NEURON_PLATFORM_TARGET_OVERRIDE", "").lower()
    if not override:
        return _FAMILIES.get(_C.instance_family(), "trn2")
    target = _TARGETS.get(override, override)
    if target not in _GENERATIONS:
        raise ValueError(
            f"NEURON_PLATFORM_TARGET_OVERRIDE={override!r} names no target: use one of "
            f"{', '.join(sorted({*_GENERATIONS, *_TARGETS}))}"
        )
    return target


def get_device_properties(device: Device = None) -> DeviceProperties:
    """Name, memory and generation of a device. Starts the runtime."""
    index = _get_device_index(device)
    _C.initialize()
    _, total = torch._C._accelerator_getMemoryInfo(index)
    target = _platform_target()
    return DeviceProperties(name=target, total_memory=total, generation=_GENERATIONS[target])


def get_device_name(device: Device = None) -> str:
    """For example "neuron-trn2"."""
    _get_device_index(device)
    return f"neuron-{_platform_target()}"


def get_device_capability(device: Device = None) -> tuple[int, int]:
    """Generation of the NeuronCore, and 0."""
    _get_device_index(device)
    return _GENERATIONS[_platform_target()], 0


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """True: bfloat16 is a native type of every NeuronCore."""
    return True


def get_amp_supported_dtype() -> list[torch.dtype]:
    """The dtypes that ``torch.autocast("neuron", dtype=...)`` accepts."""
    return [torch.bfloat16, torch.float16]
