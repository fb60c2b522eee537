"""XLA's CPU backend as an oracle for StableHLO: parse, verify, compile and run a printed module. Tests only."""

from __future__ import annotations

import functools

import jax
import ml_dtypes
import numpy as np
import torch
from jaxlib import _jax, xla_client
from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _jax_mlir_ext
from jaxlib.mlir.dialects import chlo, stablehlo

jax.config.update("jax_enable_x64", True)


@functools.cache
def context() -> ir.Context:
    """An MLIR context that knows func, StableHLO and CHLO, and accepts discardable attributes of `neuron`."""
    made = ir.Context()
    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    made.append_dialect_registry(registry)
    made.load_all_available_dialects()
    stablehlo.register_dialect(made)
    chlo.register_dialect(made)
    return made


def verify(text: str) -> ir.Module:
    """The parsed module. Raises jaxlib's error when the text is not a valid module."""
    with context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        module.operation.verify()
    return module


def run(text: str, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    """The results of a module's function for the given inputs."""
    device = jax.devices("cpu")[0]
    module = verify(text)
    with context():
        executable = device.client.compile_and_load(module, _jax.DeviceList((device,)), xla_client.CompileOptions())
    arrays = [jax.device_put(to_numpy(x), device) for x in inputs]
    results = executable.execute_sharded(arrays).disassemble_into_single_device_arrays()
    return [to_torch(np.asarray(result[0])) for result in results]


def to_numpy(x: torch.Tensor) -> np.ndarray:
    """A tensor as an array; NumPy knows bf16 through ml_dtypes."""
    if x.dtype == torch.bfloat16:
        return x.contiguous().view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return x.contiguous().numpy()


def to_torch(x: np.ndarray) -> torch.Tensor:
    """The inverse of `to_numpy`."""
    if x.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(np.array(x.view(np.int16))).view(torch.bfloat16)
    return torch.from_numpy(np.array(x))
