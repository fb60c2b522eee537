"""Each row: lower, print, let jaxlib parse and verify, run on XLA's CPU backend, compare with torch on the CPU."""

from __future__ import annotations

from collections import defaultdict

import pytest

from torch_neuronx_compile.lowering import ROWS, functional
from torch_neuronx_compile.stablehlo import print_module

from . import oracle
from .case import Case
from .closeness import difference
from .lowered import lower
from .tables import ALL

BY_ROW: dict[str, list[Case]] = defaultdict(list)
for _case in ALL:
    _mapped = functional(_case.op)
    BY_ROW[_mapped.row.name if _mapped else _case.op].append(_case)


@pytest.mark.parametrize("row", sorted(BY_ROW))
def test_row_agrees_with_torch(row: str):
    """All cases of a row in one module, so that XLA compiles once."""
    parameters, inputs, results, spans = [], [], [], []
    for case in BY_ROW[row]:
        args, kwargs = case.make()
        expected = case.expected(args, kwargs)
        lowered = lower(case, args, kwargs, expected, len(parameters))
        assert len(lowered.results) == len(expected), (
            f"{case.id}: {len(lowered.results)} results, torch has {len(expected)}"
        )
        parameters += lowered.parameters
        inputs += lowered.inputs
        results += lowered.results
        spans.append((case, expected))
    got = iter(oracle.run(print_module(results, parameters), inputs))
    wrong = []
    for case, expected in spans:
        for number, (reference, result) in enumerate(zip(expected, (next(got) for _ in expected), strict=True)):
            if case.compare is None or number in case.compare:
                text = difference(result, reference, case.tolerance, xla=True)
                if text:
                    wrong.append(f"{case.id} result {number}: {text}")
    assert not wrong, "\n".join(wrong)


def test_every_row_has_a_case():
    ours = {
        name for name in ROWS if name.startswith(("aten::", "prims::"))
    }  # an installed plugin tests the rows it brings
    assert ours == set(BY_ROW)


def test_every_case_has_its_own_id():
    ids = [case.id for case in ALL]
    assert len(ids) == len(set(ids)), {i for i in ids if ids.count(i) > 1}
