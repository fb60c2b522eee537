"""Device memory: statistics and the allocator's cache. Sizes are in bytes."""

from collections import OrderedDict
from typing import Any

import torch

from . import _C
from .devices import Device, _get_device_index


def memory_stats(device: Device = None) -> "OrderedDict[str, Any]":
    """Statistics under CUDA's flat names, e.g. ``allocated_bytes.all.current``. Starts the runtime."""
    index = _get_device_index(device)
    _C.initialize()
    return torch.accelerator.memory.memory_stats(index)


def _statistic(name: str, device: Device) -> int:
    # An unused device has no memory; asking must not start it.
    return memory_stats(device)[name] if _C.is_initialized() else 0


def memory_allocated(device: Device = None) -> int:
    """Bytes that tensors hold now."""
    return _statistic("allocated_bytes.all.current", device)


def max_memory_allocated(device: Device = None) -> int:
    """Most bytes that tensors held since the start or :func:`reset_peak_memory_stats`."""
    return _statistic("allocated_bytes.all.peak", device)


def memory_reserved(device: Device = None) -> int:
    """Bytes that the allocator holds, for tensors and for reuse."""
    return _statistic("reserved_bytes.all.current", device)


def max_memory_reserved(device: Device = None) -> int:
    """Most bytes that the allocator held since the start or :func:`reset_peak_memory_stats`."""
    return _statistic("reserved_bytes.all.peak", device)


def reset_peak_memory_stats(device: Device = None) -> None:
    """Let the peaks start again from the current values."""
    if _C.is_initialized():
        torch.accelerator.memory.reset_peak_memory_stats(_get_device_index(device))


def reset_accumulated_memory_stats(device: Device = None) -> None:
    """Let the sums over time (``*.allocated``, ``*.freed``, ``num_*``) start again from 0."""
    if _C.is_initialized():
        torch.accelerator.memory.reset_accumulated_memory_stats(_get_device_index(device))


def empty_cache() -> None:
    """Give memory that no tensor holds back to the host."""
    if _C.is_initialized():
        torch._C._accelerator_emptyCache()


def mem_get_info(device: Device = None) -> tuple[int, int]:
    """Free and total bytes of a device. Starts the runtime."""
    index = _get_device_index(device)
    _C.initialize()
    return torch._C._accelerator_getMemoryInfo(index)


def memory_snapshot(device: Device = None) -> list[dict[str, Any]]:
    """The live allocations of a device: ``{"device", "address", "size"}`` each, by address."""
    index = _get_device_index(device)
    blocks = _C.live_blocks(index) if _C.is_initialized() else []
    return [{"device": index, "address": address, "size": size} for address, size in sorted(blocks)]


def memory_summary(device: Device = None, abbreviated: bool = False) -> str:
    """A table of the statistics for people to read."""
    index = _get_device_index(device)
    stats = memory_stats(index)
    rows = [("Allocated memory", "allocated_bytes", True), ("Reserved memory", "reserved_bytes", True)]
    if not abbreviated:
        rows.append(("Allocations", "allocation", False))
    lines = [
        f"neuron:{index} memory, retries: {stats['num_alloc_retries']}, out of memory: {stats['num_ooms']}",
        f"{'':18}{'current':>14}{'peak':>14}{'allocated':>14}{'freed':>14}",
    ]
    for title, key, is_bytes in rows:
        values = (stats[f"{key}.all.{column}"] for column in ("current", "peak", "allocated", "freed"))
        lines.append(f"{title:18}" + "".join(f"{_size(value) if is_bytes else value:>14}" for value in values))
    return "\n".join(lines) + "\n"


def _size(nbytes: int) -> str:
    for unit in ("B", "KiB", "MiB"):
        if nbytes < 1024:
            return f"{nbytes:.0f} {unit}" if unit == "B" else f"{nbytes:.1f} {unit}"
        nbytes /= 1024
    return f"{nbytes:.1f} GiB"
