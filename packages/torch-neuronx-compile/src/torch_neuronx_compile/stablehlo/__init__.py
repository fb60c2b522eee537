"""StableHLO as immutable values: `import torch_neuronx_compile.stablehlo as hlo`, then `hlo.add(x, y)`.

The functions check their operands by the operation's type rule (`HloTypeError`) and return new values. Nothing else
happens: a module is what is reachable from its results, and `print_module` writes its text.
"""

# ruff: noqa: F401

from torch_neuronx_compile.stablehlo.elementwise import (
    DIRECTIONS,
    abs,
    add,
    and_,
    atan2,
    binary,
    bitcast_convert,
    ceil,
    clamp,
    compare,
    convert,
    cosine,
    divide,
    erf,
    erf_inv,
    erfc,
    exponential,
    exponential_minus_one,
    floor,
    is_finite,
    log,
    log_plus_one,
    logistic,
    maximum,
    minimum,
    multiply,
    negate,
    not_,
    or_,
    power,
    remainder,
    round_nearest_even,
    rsqrt,
    select,
    shift_left,
    shift_right_arithmetic,
    shift_right_logical,
    sign,
    sine,
    sqrt,
    subtract,
    tan,
    tanh,
    unary,
    xor,
)  # fmt: skip
from torch_neuronx_compile.stablehlo.external import (
    NKI_TARGET,
    custom_call,
    random_bits,
)  # fmt: skip
from torch_neuronx_compile.stablehlo.indexing import (
    GATHER_DIMENSIONS,
    SCATTER_BODIES,
    SCATTER_DIMENSIONS,
    gather,
    scatter,
)  # fmt: skip
from torch_neuronx_compile.stablehlo.literal import literal, representable
from torch_neuronx_compile.stablehlo.movement import (
    broadcast_in_dim,
    concatenate,
    constant,
    dynamic_slice,
    dynamic_update_slice,
    iota,
    pad,
    reshape,
    reverse,
    slice,
    transpose,
)  # fmt: skip
from torch_neuronx_compile.stablehlo.ops import OPS, HloTypeError, OpSpec, kind, make, verify
from torch_neuronx_compile.stablehlo.printer import print_module
from torch_neuronx_compile.stablehlo.reduction import (
    REDUCE_BODIES,
    SCAN_BODIES,
    dot_general,
    reduce,
    scan,
)  # fmt: skip
from torch_neuronx_compile.stablehlo.value import (
    DTYPES,
    FLOATS,
    INTEGERS,
    Operation,
    Parameter,
    TensorType,
    Value,
    current_location,
    location,
    parameters,
    topological,
)  # fmt: skip
