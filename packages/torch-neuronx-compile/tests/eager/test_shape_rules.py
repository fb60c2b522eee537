"""Sizes, strides and dtypes of results that follow from the device's shape rules are those that torch's CPU kernels give."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import pytest
import torch

import torch_neuronx
from torch_neuronx_compile.lowering import functional

from ..conformance.case import Case, Number, flatten
from ..conformance.tables import ALL

RULES = torch_neuronx._C.shape_rules()

# Results that torch's own kernels give differently on the CPU and on accelerators: statistics of a half type instead of
# float32; for an empty input a mask that is not of bool.
OF_THE_CPU = {
    "aten::native_layer_norm": (1, 2),
    "aten::native_batch_norm": (1, 2),
    "aten::native_dropout": (1,),
}

BY_OP: dict[str, list[Case]] = defaultdict(list)
for _case in ALL:
    if _case.op in RULES:
        BY_OP[_case.op].append(_case)


def permuted(x: torch.Tensor) -> torch.Tensor:
    """The same elements in another order of memory."""
    return x.movedim(0, -1).contiguous().movedim(-1, 0) if x.dim() > 1 else x


def spaced(x: torch.Tensor) -> torch.Tensor:
    """The same elements with gaps between them."""
    return torch.stack([x, x], -1).select(-1, 0) if x.dim() else x


def repeated(x: torch.Tensor) -> torch.Tensor:
    """The first row in place of every row, in one memory."""
    return x.select(0, 0).unsqueeze(0).expand_as(x) if x.dim() > 1 and x.shape[0] > 1 else x


LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "contiguous": lambda x: x, "permuted": permuted, "spaced": spaced, "repeated": repeated,
}  # fmt: skip


def change(value: Any, layout: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    if isinstance(value, torch.Tensor):
        return layout(value)
    if isinstance(value, (list, tuple)):
        return type(value)(change(item, layout) for item in value)
    return value.value if isinstance(value, Number) else value


def on_device(value: Any) -> Any:
    return change(value, lambda x: x.to("neuron"))


def signatures(results: Any) -> list[tuple]:
    """Sizes, strides and dtypes; a stride over which no step is made is None."""
    return [
        (
            tuple(x.shape),
            [s if n > 1 and x.numel() else None for n, s in zip(x.shape, x.stride(), strict=True)],
            x.dtype,
        )
        for x in flatten(results if isinstance(results, (tuple, list)) else (results,))
    ]


def compared(op: str, results: list[tuple]) -> list[tuple]:
    return [result for number, result in enumerate(results) if number not in OF_THE_CPU.get(op, ())]


def call(case: Case, args: Iterable, kwargs: dict[str, Any]) -> list[tuple]:
    function = case.overload.overloadpacket if any(isinstance(a, Number) for a in case.args) else case.overload
    return signatures(function(*args, **kwargs))


def out_form(case: Case) -> torch._ops.OpOverload | None:
    """The overload that takes the same arguments and `out` ones, if it has a rule."""
    arguments = len(case.overload._schema.arguments)
    for name in case.overload.overloadpacket.overloads():
        form = getattr(case.overload.overloadpacket, name)
        outs = [a for a in form._schema.arguments if a.is_out]
        same = [str(a.type) for a in form._schema.arguments if not a.is_out] == [
            str(a.type) for a in case.overload._schema.arguments
        ]
        if outs and same and len(form._schema.arguments) == arguments + len(outs) and form.name() in RULES:
            return form
    return None


def test_every_rule_is_of_an_operator_with_a_lowering():
    assert [name for name in RULES if functional(name) is None] == []


@pytest.mark.parametrize("op", sorted(op for op, cases in BY_OP.items() if out_form(cases[0])))
def test_a_result_argument_gets_the_sizes_that_torch_gives_it(op: str):
    for case in BY_OP[op]:
        if any(isinstance(a, Number) for a in case.args):
            continue
        form = out_form(case)
        args, options = case.make()
        expected = case.expected(args, options)
        names = [a.name for a in form._schema.arguments if a.is_out]
        outs = {n: torch.empty(0, dtype=e.dtype, device="neuron") for n, e in zip(names, expected, strict=True)}
        form(*map(on_device, args), **{k: on_device(v) for k, v in options.items()}, **outs)
        assert signatures(list(outs.values())) == signatures(expected), case.id


@pytest.mark.filterwarnings("error:.*its compilation failed")  # where the rule and the lowering disagree
@pytest.mark.parametrize("op", sorted(BY_OP))
def test_results_are_laid_out_as_by_torch(op: str):
    wrong = []
    for case in BY_OP[op]:
        made, options = case.make()
        for name, layout in LAYOUTS.items():
            args = [change(a, layout) for a in made]
            try:
                expected = call(case, args, options)
            except (RuntimeError, NotImplementedError):
                continue  # torch's own kernel refuses this layout
            before = torch_neuronx.tracking.op_counters().get(op)
            got = call(
                case, [change(on_device(a), layout) for a in made], {k: on_device(v) for k, v in options.items()}
            )
            after = torch_neuronx.tracking.op_counters().get(op)
            if after is None or before is not None and after.native == before.native:
                continue  # not by the rule: the CPU kernel stood in
            if compared(op, got) != compared(op, expected):
                wrong.append(f"{case.id} {name}: {got}, torch gives {expected}")
    assert not wrong, "\n".join(wrong)
