"""Compiled functions against the same functions on the CPU: results, strides, side effects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils._pytree import tree_leaves

F = torch.nn.functional


def both(
    function: Callable[..., Any], *arguments: Any, **options: Any
) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
    """Results and arguments afterwards, compiled on the device and eager on the CPU."""
    host = [a.clone() if isinstance(a, torch.Tensor) else a for a in arguments]
    device = [a.to("neuron") if isinstance(a, torch.Tensor) else a for a in arguments]
    want = tree_leaves(function(*host))
    got = tree_leaves(torch.compile(function, backend="neuron", fullgraph=True, **options)(*device))
    return got, want, device, host


def check(function: Callable[..., Any], *arguments: Any, **options: Any) -> None:
    got, want, device, host = both(function, *arguments, **options)
    assert len(got) == len(want)
    for a, b in (*zip(got, want, strict=True), *zip(device, host, strict=True)):
        if isinstance(b, torch.Tensor):
            assert a.stride() == b.stride() and a.dtype == b.dtype
            torch.testing.assert_close(a.cpu(), b, rtol=1.3e-5, atol=1e-5)
        else:
            assert type(a) is type(b) and a == b


def add_in_place(x, y):
    x.mul_(y)
    return x.sum()


def write_through_a_view(x, y):
    x[1:3, ::2] = y[:2, :4]
    return x * 2


def swap(x, y):
    old = x.clone()
    x.copy_(y)
    y.copy_(old)
    return x - y


def several(x, y):
    x.add_(1)
    y.copy_(x.t().contiguous().view(y.shape))
    x.mul_(y)
    return y + x


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "chain": lambda x, y: torch.tanh(x * 2 + y) - y,
    "views": lambda x, y: (x.t() + 1, x[1:, ::2] * 2, y.reshape(2, 2, 8).transpose(0, 2) * 3),
    "softmax": lambda x, y: torch.softmax(x, -1) + torch.softmax(y, 0),
    "layer norm": lambda x, y: F.layer_norm(x, [8]) * y,
    "linear": lambda x, y: F.gelu(F.linear(x, y)),
    "matmul of views": lambda x, y: x.t() @ y[:, 2:5],
    "reductions": lambda x, y: (x.sum(), x.mean(0), y.amax(1, keepdim=True), x.argmax(1), (x > 0).any()),
    "factories": lambda x, y: (
        x + torch.arange(8, device=x.device) + torch.zeros(8, device=x.device) + torch.ones_like(y)
    ),
    "a constant of the code": lambda x, y: x + torch.tensor([1.0, 2, 3, 4, 5, 6, 7, 8], device=x.device) + y,
    "an expanded result": lambda x, y: x.sum(0).expand(3, 8),
    "the same result twice": lambda x, y: (lambda z: (z, z))(x + y),
    "an argument as a result": lambda x, y: (x, x + y),
    "a view of an argument as a result": lambda x, y: (x.t(), x[1] + y[1]),
    "a view of a result": lambda x, y: (lambda z: (z, z.t(), z[1:]))(x * y),
    "no tensor at all": lambda x, y: (3, None, "text"),
    "integers and booleans": lambda x, y: ((x > y).to(torch.int64).cumsum(0), (x * 10).to(torch.int32) // 3),
    "select and where": lambda x, y: torch.where(x > 0, x, y).masked_fill(y > 1, float("-inf")),
    "concatenation": lambda x, y: torch.cat([x, y * 2, x[:1]]).split(3),
    "indexing": lambda x, y: x[torch.tensor([2, 0, 1], device=x.device)] + y[:3],
    "casts": lambda x, y: (x.to(torch.bfloat16) @ y.to(torch.bfloat16).t()).float().round(),
    "in place": add_in_place,
    "in place through a view": write_through_a_view,
    "two arguments exchanged": swap,
    "several writes": several,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function(name: str):
    check(FUNCTIONS[name], torch.randn(4, 8), torch.randn(4, 8))


def test_python_scalars_among_arguments_and_results():
    check(lambda x, n, s: (x * n, n + 1, None, s), torch.randn(3), 3, 0.5)


def test_changing_numbers_and_sizes_do_not_break_a_function():
    """Dynamo makes sizes and numbers symbolic after a change; each set of them gets a program of its own."""
    compiled = torch.compile(lambda x, n: (x * n + x.shape[0]).sum(-1), backend="neuron")
    for n, size in ((1, 3), (2, 4), (3, 5), (4, 9), (3, 5)):
        x = torch.randn(size, 6)
        torch.testing.assert_close(compiled(x.to("neuron"), n).cpu(), (x * n + size).sum(-1))


def test_empty_tensors():
    check(lambda x, y: (torch.cat([x, y]), x.sum(), x + 1), torch.randn(0, 4), torch.randn(2, 4))


def test_non_contiguous_arguments():
    got, want, *_ = both(lambda x, y: x * 2 + y, torch.randn(4, 8), torch.randn(4, 8))
    x, y = torch.randn(8, 4).t(), torch.randn(4, 16)[:, ::2]
    compiled = torch.compile(lambda x, y: x * 2 + y, backend="neuron")
    device = [x.to("neuron"), torch.randn(4, 16).to("neuron")[:, ::2]]
    device[1].copy_(y)
    torch.testing.assert_close(compiled(*device).cpu(), x * 2 + y)


def test_cpu_arguments_are_copied_and_results_come_back():
    x = torch.randn(4)
    got = torch.compile(lambda x: x * 2, backend="neuron")(x)
    assert got.device.type == "cpu" and torch.equal(got, x * 2)


def test_cpu_arguments_can_be_forbidden(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TORCH_NEURONX_DYNAMO_DISABLE_CPU_AUTOCOPY", "1")
    with pytest.raises(Exception, match="is on the CPU; move it"):
        torch.compile(lambda x: x * 2, backend="neuron")(torch.randn(4))


def test_random_operators_follow_the_generator():
    compiled = torch.compile(lambda x: (F.dropout(x, 0.5), torch.rand_like(x)), backend="neuron")
    x = torch.ones(64, 64, device="neuron")
    torch.neuron.manual_seed(7)
    first = [t.cpu() for t in compiled(x)]
    second = [t.cpu() for t in compiled(x)]
    torch.neuron.manual_seed(7)
    again = [t.cpu() for t in compiled(x)]
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not any(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    torch.neuron.manual_seed(7)
    eager = [F.dropout(x, 0.5).cpu(), torch.rand_like(x).cpu()]
    assert all(torch.equal(a, b) for a, b in zip(first, eager, strict=True)), "the same numbers as in eager execution"


@pytest.mark.parametrize("name", ["chain", "softmax", "layer norm", "linear", "reductions", "casts"])
def test_compiled_is_bit_equal_to_eager(name: str):
    x, y = torch.randn(37, 8).to("neuron"), torch.randn(37, 8).to("neuron")
    eager = tree_leaves(FUNCTIONS[name](x, y))
    compiled = tree_leaves(torch.compile(FUNCTIONS[name], backend="neuron", fullgraph=True)(x, y))
    for a, b in zip(compiled, eager, strict=True):
        assert torch.equal(a.cpu(), b.cpu())


STORAGE_VIEWS: dict[str, tuple[Callable[..., Any], Callable[[torch.Tensor], tuple[torch.Tensor, ...]]]] = {
    "of a strided argument": (lambda x: x.as_strided((3, 2), (2, 3)) + 0, lambda x: (x[::2],)),
    "of a transposed result": (lambda x: (x + 0).t().as_strided((2, 3), (3, 1)), lambda x: (x[:6].view(2, 3),)),
    "of more than the argument": (lambda x: x.as_strided((3,), (1,), 0) + 1, lambda x: (x[4:8],)),
    "of what a view is of": (lambda x: x[:2].as_strided((8,), (1,), 0) * 1, lambda x: (x[:16].view(4, 4),)),
    "two of one tensor": (lambda x: (x.as_strided((8,), (1,), 0) + 0, x.as_strided((8,), (1,), 4) + 0), lambda x: (x,)),
    "written": (lambda x: (x * 1).as_strided((3,), (2,), 1).add_(5), lambda x: (x,)),
    "written in an argument": (lambda x: (x.as_strided((3,), (2,)).add_(5), x + 1), lambda x: (x[:12].view(3, 4),)),
    "overlapping arguments": (lambda x, y: (x.add_(1), y.mul_(2)), lambda x: (x[:8], x[4:12])),
    "overlapping arguments, one written": (lambda x, y: (x.add_(1), y * 2), lambda x: (x[:8], x[4:12])),
}


@pytest.mark.parametrize("name", STORAGE_VIEWS)
def test_operators_that_see_storage(name: str):
    function, arguments = STORAGE_VIEWS[name]
    host, device = torch.arange(32.0), torch.arange(32.0).to("neuron")
    want = tree_leaves(function(*arguments(host)))
    got = tree_leaves(torch.compile(function, backend="neuron", fullgraph=True)(*arguments(device)))
    for a, b in zip((*got, device), (*want, host), strict=True):
        assert torch.equal(a.cpu(), b)
        assert (a.stride(), a.storage_offset()) == (b.stride(), b.storage_offset())


def test_a_view_of_storage_with_symbolic_sizes():
    compiled = torch.compile(
        lambda x: x.as_strided((x.shape[0] - 1, 2), (1, 1), x.storage_offset()) * 2, backend="neuron", dynamic=True
    )
    for size in (4, 7, 12):
        x = torch.arange(float(size))
        torch.testing.assert_close(compiled(x.to("neuron")).cpu(), x.unfold(0, 2, 1) * 2)


REDUCED_AGAIN: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], tuple[int, ...]]] = {
    "mean of one mean": (lambda x: x.square().mean(1).mean(), (1, 8)),
    "mean of one norm": (lambda x: x.norm(dim=1).mean(), (1, 8)),
    "sum of one sum": (lambda x: x.sum((1, 2)).sum(), (1, 8, 3)),
    "product of one sum": (lambda x: x.sum(1).prod(), (1, 8)),
    "softmax of one sum": (lambda x: x.sum().softmax(0), (8,)),
    "log-softmax of one sum": (lambda x: x.sum().reshape(1, 1).log_softmax(1), (8,)),
    "variance of one mean": (lambda x: x.mean(-1, keepdim=True).var(correction=0), (8,)),
    "norm of one mean": (lambda x: F.layer_norm(x.mean(-1, keepdim=True), (1,)), (8,)),
    "column of one": (lambda x: x.sum(0).sum(0), (8, 1)),
    "kept sum and the sum of it": (lambda x: x.sum(0, keepdim=True).sum(0) + x.sum(0), (8, 5)),
}


@pytest.mark.parametrize("name", REDUCED_AGAIN)
def test_a_reduction_of_one_element_is_not_one_of_what_made_it(name: str):
    function, shape = REDUCED_AGAIN[name]
    check(function, torch.rand(shape))


def test_batch_norm_in_evaluation():
    module = torch.nn.BatchNorm2d(4).eval()
    module.running_mean.add_(1)
    x = torch.randn(3, 4, 5, 5)
    want = module(x)
    got = torch.compile(module.to("neuron"), backend="neuron")(x.to("neuron"))
    torch.testing.assert_close(got.cpu(), want)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * x.sum().item(),
        lambda x: torch.zeros(x.sum().item()),
        lambda x: x.as_strided((x.sum().item(),), (1,)),
    ],
)
def test_a_size_that_depends_on_data_names_operator_and_remedy(function: Callable[..., Any]):
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        with pytest.raises(
            Exception, match=r"(?s)_local_scalar_dense.*depends on the data.*torch.compiler.disable.*test_graphs.py"
        ):
            torch.compile(function, backend="neuron", fullgraph=True)(torch.tensor([1, 0, 2]).to("neuron"))


@pytest.mark.parametrize(
    ("function", "x", "message"),
    [
        (lambda x: x + 1, torch.ones([2] * 9), "input 0 has 9 dimensions, and programs take 8"),
        (lambda x: x.max(0), torch.zeros(0, 3), r"maximum of tensor<0x3xf32> over an empty dimension has no identity"),
        (lambda x: x.argmax(), torch.tensor([False, True]), r"argmax\(\): does not support bool input"),
    ],
)
def test_what_no_program_can_do_is_said(function: Callable[..., Any], x: torch.Tensor, message: str):
    with pytest.raises(Exception, match=message):
        torch.compile(function, backend="neuron")(x.to("neuron"))
