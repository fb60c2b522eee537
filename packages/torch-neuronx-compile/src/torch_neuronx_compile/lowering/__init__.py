"""The lowering table: ATen operators as functions from StableHLO values to StableHLO values.

`functional(name)` finds the row for any called form, `Row.lower` applies it. A new operator is one function in a family
file here and one row in the conformance table of the same family.
"""

from torch_neuronx_compile.lowering import (  # noqa: F401  (importing a family adds its rows)
    activation,
    binary,
    comparison,
    creation,
    foreach,
    indexing,
    loss,
    matmul,
    movement,
    norm,
    optimizer,
    pooling,
    random,
    reduction,
    resampling,
    softmax,
    ternary,
    unary,
)
from torch_neuronx_compile.lowering.functional import Functional, functional  # noqa: F401
from torch_neuronx_compile.lowering.promotion import HLO_DTYPE, TORCH_DTYPE, hlo_dtype  # noqa: F401
from torch_neuronx_compile.lowering.registry import ROWS, Row, Unsupported, lookup, lowers  # noqa: F401
