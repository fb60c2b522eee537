"""What Inductor, torch.compile's default backend, finds when it looks for code generation on this device: a sentence.

Inductor asks a renamed device's module for these four classes (torch._inductor.codegen.common.init_backend_registration), which
is the only time that this module is imported. Before it uses them it looks for overrides of device operators.
"""

from __future__ import annotations

from typing import Any, NoReturn

from torch._inductor.codegen.common import DeviceOpOverrides, register_device_op_overrides

register_device_op_overrides("neuron", DeviceOpOverrides())


class InductorUnsupportedError(RuntimeError):
    """torch.compile was called without backend="neuron" on tensors of this device."""


def _refuse(*_: Any, **__: Any) -> NoReturn:
    raise InductorUnsupportedError(
        'Inductor generates no code for neuron devices; call torch.compile(..., backend="neuron") or module.compile(backend="neuron")'
    )


class Scheduling:
    """Refuses to be made."""

    __init__ = _refuse

    @classmethod
    def get_backend_features(cls, device: Any) -> NoReturn:
        """Asked before anything is generated."""
        _refuse()


class PythonWrapperCodegen:
    """Refuses to be made."""

    supports_caching = False
    __init__ = _refuse
    create = staticmethod(_refuse)


class CppWrapperCodegen(PythonWrapperCodegen):
    """Refuses to be made."""


class WrapperFxCodegen(PythonWrapperCodegen):
    """Refuses to be made."""
