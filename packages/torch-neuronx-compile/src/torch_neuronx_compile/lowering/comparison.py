"""Comparisons; the result is boolean."""

from __future__ import annotations

from functools import partial

import torch_neuronx_compile.stablehlo as hlo
from torch_neuronx_compile.dim import product
from torch_neuronx_compile.lowering.binary import apply
from torch_neuronx_compile.lowering.promotion import Operand, result_type
from torch_neuronx_compile.lowering.registry import lowers
from torch_neuronx_compile.stablehlo import Value


def compare(direction: str, x: Operand, y: Operand) -> Value:
    """x `direction` y in their common type."""
    return apply(partial(hlo.compare, direction=direction), result_type(x, y), x, y)


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    lowers(f"aten::{_name}.Tensor")(partial(compare, _name.upper()))
    lowers(f"aten::{_name}.Scalar", operands=("other",))(partial(compare, _name.upper()))


@lowers("aten::isin.Tensor_Scalar", operands=("test_element",))
def isin_scalar(elements: Value, test_element: Operand, assume_unique: bool, invert: bool) -> Value:
    return compare("NE" if invert else "EQ", elements, test_element)


@lowers("aten::isin.Scalar_Tensor")
def isin_of_scalar(element: Operand, test_elements: Value, assume_unique: bool, invert: bool) -> Value:
    found = compare("EQ", element, test_elements)
    found = hlo.reduce(found, "or", range(found.rank)) if found.rank else found
    return hlo.not_(found) if invert else found


@lowers("aten::isin.Tensor_Tensor")
def isin(elements: Value, test_elements: Value, assume_unique: bool, invert: bool) -> Value:
    """Whether each element equals one of the others: every pair is compared."""
    rank, count = elements.rank, product(test_elements.shape)
    tests = hlo.reshape(test_elements, (count,))
    dtype = result_type(elements, test_elements)
    shape = (*elements.shape, count)
    found = hlo.reduce(
        hlo.compare(
            hlo.broadcast_in_dim(hlo.convert(elements, dtype), shape, range(rank)),
            hlo.broadcast_in_dim(hlo.convert(tests, dtype), shape, (rank,)),
            "EQ",
        ),
        "or",
        (rank,),
    )
    return hlo.not_(found) if invert else found
