"""Operations whose meaning lies outside of StableHLO's arithmetic: random bits and calls of foreign kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch_neuronx_compile.dim import Size
from torch_neuronx_compile.stablehlo.ops import OpSpec, check_count, define, make, make_all, refuse
from torch_neuronx_compile.stablehlo.value import TensorType, Value

NKI_TARGET = "AwsNeuronCustomNativeKernel"  # the call target under which Neuron's compiler expects an NKI kernel


def _random_bits(spec: OpSpec, operands: tuple[Value, ...], attributes: Mapping[str, Any]) -> tuple[TensorType, ...]:
    check_count(spec, operands, 2)
    if any(x.shape or x.dtype != "i64" for x in operands) or attributes["word"] not in (0, 1, 2, 3):
        raise refuse(
            spec, operands, f"seed and offset, each i64 of rank 0, and a word from 0 to 3, not {attributes['word']}"
        )
    return (TensorType(attributes["shape"], "i32"),)


def _custom_call(spec: OpSpec, operands: tuple[Value, ...], attributes: Mapping[str, Any]) -> tuple[TensorType, ...]:
    types = attributes["types"]
    for result, operand in attributes["aliases"]:
        if not 0 <= result < len(types) or not 0 <= operand < len(operands) or types[result] != operands[operand].type:
            raise refuse(
                spec, operands, f"aliased operands of the results' types, not result {result} = operand {operand}"
            )
    return tuple(types)


define("random_bits", "stablehlo.rng_bit_generator", _random_bits, attributes=("shape", "word"), style="random_bits")
define("custom_call", "stablehlo.custom_call", _custom_call,
       attributes=("target", "backend_config", "types", "aliases"), style="custom_call")  # fmt: skip


def random_bits(seed: Value, offset: Value, shape: Sequence[Size], word: int = 0) -> Value:
    """i32: element i (row-major) is word `word` of Philox4x32-10 with key `seed` and counter `offset` + i.

    `seed` and `offset` are i64 of rank 0.
    """
    return make("random_bits", (seed, offset), {"shape": tuple(shape), "word": word})


def custom_call(target: str, operands: Sequence[Value], types: Sequence[TensorType], *, backend_config: str = "",
                aliases: Sequence[tuple[int, int]] = ()) -> tuple[Value, ...]:  # fmt: skip
    """Results of a foreign kernel. `aliases`: pairs (result, operand) that share memory."""
    return make_all("custom_call", tuple(operands), {
        "target": target, "backend_config": backend_config, "types": tuple(types), "aliases": tuple(map(tuple, aliases)),
    })  # fmt: skip
