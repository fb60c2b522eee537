"""Every case of the conformance tables as a launch: request, program, simulated NeuronCore, compared with torch on the CPU."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any

import pytest
import torch

from torch_neuronx_compile.lowering import functional
from torch_neuronx_compile.passes.module import Module
from torch_neuronx_compile.passes.pipeline import compile_module

from ..conformance.case import Case
from ..conformance.closeness import difference
from ..conformance.lowered import lower
from ..conformance.tables import ALL
from ..passes.programs import execute

BY_ROW: dict[str, list[Case]] = defaultdict(list)
for _case in ALL:
    _found = functional(_case.op)
    BY_ROW[_found.row.name if _found else _case.op].append(_case)


def single(value: Any) -> Any:
    """float64 tensors as float32, in which the device computes them."""
    if isinstance(value, torch.Tensor) and value.dtype == torch.float64:
        return value.float()
    if isinstance(value, (list, tuple)):
        return type(value)(map(single, value))
    return value


def run(case: Case) -> list[str]:
    """What is wrong with a case's results."""
    args, kwargs = case.make()
    expected = case.expected(args, kwargs)
    lowered = lower(case, args, kwargs, expected)
    strides = [None] * sum(p.role == "tensor" for p in lowered.parameters)
    program = compile_module(Module(case.op, lowered.parameters, strides, lowered.results)).program
    given = list(zip(lowered.parameters, lowered.inputs, strict=True))
    got = execute(
        program, [x for p, x in given if p.role == "tensor"], [(e.shape, e.dtype) for e in expected],
        [x.item() for p, x in given if p.role == "scalar"],
    )  # fmt: skip
    return [
        f"{case.id} result {number}: {text}"
        for number, (result, reference) in enumerate(zip(got, expected, strict=True))
        if (case.compare is None or number in case.compare)
        and (text := compare(case, number, result, reference, args, kwargs))
    ]


def compare(
    case: Case, number: int, result: torch.Tensor, reference: torch.Tensor, args: tuple, kwargs: dict
) -> str | None:
    """float64 is computed as float32: its results are what torch gives for the rounded arguments, or the rounded result."""
    if reference.dtype != torch.float64:
        return difference(result, reference, case.tolerance)
    tolerance = case.tolerance
    if tolerance.ulp == 0 and tolerance.absolute == 0:
        tolerance = replace(tolerance, ulp=1, reason="arguments and results are rounded to float32")
    rounded = single(case.expected(single(args), {k: single(v) for k, v in kwargs.items()})[number])
    text = difference(result.float(), rounded, tolerance)
    return text and difference(result.float(), reference.float(), tolerance)


@pytest.mark.parametrize("row", sorted(BY_ROW))
def test_row(row: str):
    wrong = [text for case in BY_ROW[row] for text in run(case)]
    assert not wrong, "\n".join(wrong[:20])
