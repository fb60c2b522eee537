"""How the device "neuron" runs `softclip::softclip`: one function, one row of the lowering table."""

from __future__ import annotations

import torch_neuronx_compile.stablehlo as hlo
from torch_neuronx_compile.lowering import lowers
from torch_neuronx_compile.lowering.promotion import compute_dtype
from torch_neuronx_compile.lowering.shape import full
from torch_neuronx_compile.stablehlo import Value


@lowers("softclip::softclip")
def softclip(x: Value, limit: float) -> Value:
    """`x`: any shape, any floating dtype (16-bit ones are computed in fp32). `limit`: part of the program."""
    wide = hlo.convert(x, compute_dtype(x.dtype))
    bound = full(limit, wide)
    return hlo.convert(hlo.multiply(bound, hlo.tanh(hlo.divide(wide, bound))), x.dtype)
