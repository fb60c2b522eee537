"""Streams and events: torch's generic ones, bound to this device.

Work runs inline in the thread that submits it, so a stream orders nothing that Python has not ordered already; streams
and events exist for programs written for devices that overlap work.
"""

import torch

from . import _C
from .devices import Device, _get_device_index


class Stream(torch.Stream):
    """A stream of a device (default: the current one). ``priority`` is accepted and has no effect."""

    def __new__(cls, device: Device = None, priority: int = 0, **kwargs):
        if kwargs:  # stream_id, device_index, device_type: an existing stream
            return super().__new__(cls, priority=priority, **kwargs)
        return super().__new__(cls, torch.device("neuron", _get_device_index(device)), priority=priority)

    def __repr__(self) -> str:
        return f"torch.neuron.Stream(device={self.device}, stream_id={self.stream_id})"


class _EventType(type):
    def __instancecheck__(cls, instance):
        return isinstance(instance, torch.Event) and instance.device.type == "neuron"


class Event(torch.Event, metaclass=_EventType):
    """An event of the current device. ``elapsed_time`` of two events is the host's wall time in milliseconds.

    Calling the class returns a ``torch.Event``: torch's own ``elapsed_time`` and ``record_event`` refuse subclasses.
    """

    def __new__(cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False):
        device = torch.device("neuron", _C.current_device())
        return torch.Event(device, enable_timing=enable_timing, blocking=blocking, interprocess=interprocess)


def _stream(stream_id: int, device_index: int) -> Stream:
    return Stream(stream_id=stream_id, device_index=device_index, device_type=_DEVICE_TYPE)


def current_stream(device: Device = None) -> Stream:
    """The calling thread's stream of a device."""
    index = _get_device_index(device)
    return _stream(_C.current_stream_id(index), index)


def default_stream(device: Device = None) -> Stream:
    """The stream that every thread starts with."""
    return _stream(0, _get_device_index(device))


def set_stream(stream: torch.Stream | None) -> None:
    """Make ``stream`` the calling thread's stream of its device, and that device current. None changes nothing."""
    if stream is not None:
        torch._C._accelerator_setStream(stream)


class StreamContext:
    """Context manager: the stream and its device are current inside. None changes nothing."""

    def __init__(self, stream: torch.Stream | None):
        self.stream = stream

    def __enter__(self):
        if self.stream is None:
            return
        self._device = _C.current_device()
        self._previous = current_stream(self.stream.device)
        set_stream(self.stream)

    def __exit__(self, *_):
        if self.stream is not None:
            set_stream(self._previous)
            _C.set_device(self._device)
        return False


def stream(stream: torch.Stream | None) -> StreamContext:
    """``with torch.neuron.stream(s): ...``"""
    return StreamContext(stream)


_DEVICE_TYPE = 20  # c10::DeviceType::PrivateUse1
