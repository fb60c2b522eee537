"""Programs of a class serve every size of it, with the bits of a program made for that size alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from libneuron_runtime import GuardError, Model
from torch_neuronx_compile.dim import ShapeEnv
from torch_neuronx_compile.eager import module_of
from torch_neuronx_compile.neff import compile_to_neff

from ..passes.programs import from_memory, memory_of, storage_of
from .requests import Call

SIZES = [(4, 6), (2, 2), (33, 129), (3, 1000), (130, 5), (64, 64)]


def tensors(*shapes: tuple[int, ...], dtype: torch.dtype = torch.float32) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(len(shapes) * 1000 + sum(map(sum, shapes)))
    return [torch.randn(shape, generator=generator).to(dtype) for shape in shapes]


def like(op: str, args: list, **kwargs) -> Call:
    """A call of a functional operator; torch says what it returns."""
    namespace, name = op.split("::")
    base, _, overload = name.partition(".")
    result = getattr(getattr(getattr(torch.ops, namespace), base), overload or "default")(*args, **kwargs)
    outputs = list(result) if isinstance(result, (tuple, list)) else [result]
    return Call(op, args, kwargs, outputs=[o.contiguous() for o in outputs])


CALLS: dict[str, Callable[[int, int], Call]] = {
    "add": lambda n, m: like("aten::add.Tensor", tensors((n, m), (n, m)), alpha=2.5),
    "add of a row": lambda n, m: like("aten::add.Tensor", tensors((n, m), (m,))),
    "add of a column": lambda n, m: like("aten::add.Tensor", tensors((n, m), (n, 1))),
    "add, transposed": lambda n, m: like("aten::add.Tensor", [tensors((m, n))[0].t(), tensors((n, m))[0]]),
    "tanh of a slice": lambda n, m: like("aten::tanh", [tensors((n + 3, m + 2))[0][1 : n + 1, 2:]]),
    "mul bf16": lambda n, m: like("aten::mul.Tensor", tensors((n, m), (n, m), dtype=torch.bfloat16)),
    "softmax": lambda n, m: like("aten::_softmax", [*tensors((n, m)), 1, False]),
    "softmax 0": lambda n, m: like("aten::_softmax", [*tensors((n, m)), 0, False]),
    "sum": lambda n, m: like("aten::sum.dim_IntList", [*tensors((n, m)), [1]]),
    "sum 0": lambda n, m: like("aten::sum.dim_IntList", [*tensors((n, m)), [0], True]),
    "sum all": lambda n, m: like("aten::sum", tensors((n, m))),
    "mean": lambda n, m: like("aten::mean.dim", [*tensors((n, m)), [-1]]),
    "argmax": lambda n, m: like("aten::argmax", [*tensors((n, m)), 1]),
    "mm": lambda n, m: like("aten::mm", tensors((n, m), (m, 7))),
    "mm, transposed": lambda n, m: like("aten::mm", [tensors((m, n))[0].t(), tensors((5, m))[0].t()]),
    "addmm": lambda n, m: like("aten::addmm", tensors((3,), (n, m), (m, 3))),
    "bmm": lambda n, m: like("aten::bmm", tensors((3, n, m), (3, m, n))),
    "cat": lambda n, m: like("aten::cat", [tensors((n, m), (3, m)), 0]),
    "layer norm": lambda n, m: like("aten::native_layer_norm", [tensors((n, m))[0], [m], *tensors((m,), (m,)), 1e-5]),
    "index_select": lambda n, m: like("aten::index_select", [*tensors((n, m)), 0, torch.tensor([1, 0, 1])]),
    "embedding": lambda n, m: like("aten::embedding", [*tensors((n, m)), torch.tensor([[1, 0], [0, 1]])]),
}


def run(neff: bytes, call: Call) -> list[torch.Tensor]:
    outputs = [memory_of(o) for o in call.outputs]
    executable = Model(neff).bind(list(call.request.slots))
    executable.run([storage_of(x) for x in call.inputs], outputs, call.scalars)
    return [from_memory(data, o.shape, o.dtype) for data, o in zip(outputs, call.outputs, strict=True)]


def compiled(call: Call) -> bytes:
    return compile_to_neff(module_of(call.request, ShapeEnv()))


@pytest.mark.parametrize("name", CALLS)
def test_a_program_serves_all_sizes_of_its_class(name: str):
    make = CALLS[name]
    first = compiled(make(*SIZES[0]))
    served = 0
    for size in SIZES:
        call = make(*size)
        own = run(compiled(call), call)
        for got, want in zip(own, call.outputs, strict=True):
            # The order of a sum differs from torch's: up to 1,000 terms of size 1 here.
            torch.testing.assert_close(got, want, rtol=1.6e-2 if want.dtype == torch.bfloat16 else 1e-5, atol=1e-4)
        try:
            shared = run(first, call)
        except GuardError:
            continue  # the lowering looked at a size; the op compiler then makes a second program
        served += 1
        assert all(torch.equal(a, b) for a, b in zip(shared, own, strict=True)), size
    if not name.startswith("layer norm"):  # its normalized shape is a number of the class
        assert served == len(SIZES), f"the program refused {len(SIZES) - served} of {len(SIZES)} sizes"


def test_sizes_that_do_not_fit_are_refused_by_a_guard():
    program = compiled(CALLS["add"](4, 6))
    wrong = list(CALLS["add"](4, 6).request.slots)
    wrong[4] = 5  # the second operand's first size
    with pytest.raises(GuardError):
        Model(program).bind(wrong)


def test_an_in_place_form_writes_into_its_input():
    x, y = tensors((4, 6), (6,))
    call = Call("aten::add_.Tensor", [x, y], {"alpha": 3}, outputs=[x], aliases=[0])
    program = compiled(call)
    memory = storage_of(x)
    Model(program).bind(list(call.request.slots)).run([memory, storage_of(y)], [memory], call.scalars)
    torch.testing.assert_close(from_memory(memory, x.shape, x.dtype), x + 3 * y)


def test_an_out_argument_of_another_dtype_and_layout():
    x, y = tensors((4, 6), (4, 6))
    out = torch.empty(6, 4, dtype=torch.bfloat16).t()
    call = Call("aten::add.out", [x, y], outputs=[out])
    program = compiled(call)
    data = memory_of(torch.zeros(24, dtype=torch.bfloat16))
    Model(program).bind(list(call.request.slots)).run([memory_of(x), memory_of(y)], [data], call.scalars)
    got = from_memory(data, (6, 4), torch.bfloat16).t()
    assert torch.equal(got, (x + y).to(torch.bfloat16))


def test_a_wrapped_number_is_given_at_launch():
    (x,) = tensors((4, 6))
    call = Call("aten::mul.Tensor", [x, 2.5], outputs=[x * 2.5])
    (got,) = run(compiled(call), call)
    assert torch.equal(got, x * 2.5)


def test_random_numbers_come_from_seed_and_offset():
    x = torch.empty(5, 7)
    call = Call("aten::uniform_", [x, 0.0, 1.0], outputs=[x], aliases=[0])
    program = compiled(call)

    def draw(seed: int, offset: int) -> torch.Tensor:
        memory = memory_of(x)
        Model(program).bind(list(call.request.slots)).run([memory], [memory], [*call.scalars[:-2], seed, offset])
        return from_memory(memory, x.shape, x.dtype)

    first = draw(1, 0)
    assert torch.equal(first, draw(1, 0)) and not torch.equal(first, draw(2, 0))
    assert (first >= 0).all() and (first < 1).all() and first.unique().numel() > 30
    assert torch.equal(first.flatten()[7:], draw(1, 7).flatten()[:-7]), "element i takes the numbers at offset + i"
