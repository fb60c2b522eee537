"""The devices' default random number generators. None of these functions starts the runtime."""

from collections.abc import Iterable

import torch

from . import _C
from .devices import Device, _get_device_index

#: one generator a device
default_generators: tuple[torch.Generator, ...] = tuple(_C.default_generator(i) for i in range(_C.device_count()))


def _get_generator(device: Device) -> torch.Generator:
    index = _get_device_index(device)
    if not 0 <= index < len(default_generators):
        raise RuntimeError(
            f"neuron:{index} is an invalid device ordinal: {len(default_generators)} neuron devices are visible"
        )
    return default_generators[index]


def get_rng_state(device: Device = "neuron") -> torch.Tensor:
    """State of a device's generator: 16 bytes (seed, offset) in a CPU tensor of dtype uint8."""
    return _get_generator(device).get_state()


def set_rng_state(new_state: torch.Tensor, device: Device = "neuron") -> None:
    """Set a state that :func:`get_rng_state` returned. RuntimeError for any other tensor."""
    _get_generator(device).set_state(new_state)


def get_rng_state_all() -> list[torch.Tensor]:
    """The states of all devices' generators, in order."""
    return [generator.get_state() for generator in default_generators]


def set_rng_state_all(new_states: Iterable[torch.Tensor]) -> None:
    """Set the states of the first ``len(new_states)`` devices."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)


def manual_seed(seed: int) -> None:
    """Seed the current device's generator. Nothing happens without a device."""
    if default_generators:
        _get_generator(None).manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Seed every device's generator."""
    for generator in default_generators:
        generator.manual_seed(int(seed))


def seed() -> None:
    """Seed the current device's generator from the system's entropy."""
    if default_generators:
        _get_generator(None).seed()


def seed_all() -> None:
    """Seed every device's generator with one seed from the system's entropy."""
    if default_generators:
        manual_seed_all(default_generators[0].seed())


def initial_seed() -> int:
    """Seed of the current device's generator."""
    return _get_generator(None).initial_seed()
