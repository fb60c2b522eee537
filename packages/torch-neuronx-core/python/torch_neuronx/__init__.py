"""The PyTorch device "neuron". This module is also ``torch.neuron``.

``import torch`` loads it by itself; importing it by name is only needed for what is here and not in torch.
"""

import importlib

import torch

from ._build import TORCH_MINOR as _TORCH_MINOR
from ._build import VERSION as __version__

if not torch.__version__.startswith(f"{_TORCH_MINOR}."):
    raise ImportError(
        f"torch-neuronx-core {__version__} was built for torch {_TORCH_MINOR}, but torch {torch.__version__} is installed. "
        f"Install torch-neuronx-core {'.'.join(torch.__version__.split('.')[:2])}.*, or torch {_TORCH_MINOR}.*"
    )

from . import _C, _registration  # noqa: E402
from ._sibling import load as _load_sibling  # noqa: E402
from .devices import (  # noqa: E402
    _exchange_device,
    _get_device_index,
    _is_in_bad_fork,
    _lazy_init,
    _maybe_exchange_device,
    current_device,
    device,
    device_count,
    device_of,
    get_amp_supported_dtype,
    get_device_capability,
    get_device_name,
    get_device_properties,
    init,
    is_available,
    is_bf16_supported,
    is_initialized,
    set_device,
    synchronize,
)
from .memory import (  # noqa: E402
    empty_cache,
    max_memory_allocated,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    memory_snapshot,
    memory_stats,
    memory_summary,
    reset_accumulated_memory_stats,
    reset_peak_memory_stats,
)
from .precision import NeuronPrecisionWarning  # noqa: E402
from .random import (  # noqa: E402
    _get_generator,
    default_generators,
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from .streams import (  # noqa: E402
    Event,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    set_stream,
    stream,
)
from .tracking import (  # noqa: E402
    NeuronFallbackWarning,
    clear_op_tracking,
    get_executed_ops,
    get_fallback_ops,
    op_counters,
)

_registration.register()

# What other packages of this project fill in: attribute -> (module, distribution that brings it).
_ELSEWHERE = {
    "nki": ("nki", "nki"),
    "nki_op": ("nki.torch", "nki"),
    "wrap_nki": ("nki.torch", "nki"),
    "get_dynamo_metrics": ("torch_neuronx_compile.dynamo_backend", "torch-neuronx-compile"),
    "reset_dynamo_metrics": ("torch_neuronx_compile.dynamo_backend", "torch-neuronx-compile"),
}
# What Inductor asks the device's module for; the compiler's package answers.
_INDUCTOR = ("Scheduling", "PythonWrapperCodegen", "CppWrapperCodegen", "WrapperFxCodegen")
_SUBMODULES = ("distributed", "neuron_dynamo_backend", "profiling", "utils")


def __getattr__(name: str):
    if name == "_initialized":  # torch.utils.checkpoint reads this attribute of a device module
        return is_initialized()
    if name in _SUBMODULES:
        return importlib.import_module(f"torch_neuronx.{name}")
    if name in _ELSEWHERE:
        module, distribution = _ELSEWHERE[name]
        loaded = _load_sibling(module, distribution, f"torch_neuronx.{name}")
        return loaded if name == module else getattr(loaded, name)
    if name in _INDUCTOR:
        try:
            return getattr(_load_sibling("torch_neuronx_compile.inductor", "torch-neuronx-compile", name), name)
        except ImportError:
            pass  # without the compiler, Inductor finds nothing here
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
