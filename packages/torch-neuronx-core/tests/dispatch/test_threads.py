"""The cache and the compiler under several threads, with and without the GIL."""

import ctypes
import sys
import threading
import time

import pytest
import torch

import torch_neuronx
from torch_neuronx import _C


@torch.jit.script
def many_adds(a: torch.Tensor, b: torch.Tensor, calls: int):
    total = a
    for _ in range(calls):
        total = torch.add(total, b)
    return total


def test_a_hit_needs_no_gil(compiler):
    """A thread that runs outside Python makes 10,000 cached calls while this thread holds the GIL in C code."""
    a, b = torch.zeros(16, 16).to("neuron"), torch.ones(16, 16).to("neuron")
    for _ in range(3):  # TorchScript profiles the first runs
        many_adds(a, b, 10)
    assert torch_neuronx.get_fallback_ops() == []
    result = []
    thread = threading.Thread(target=lambda: result.append(many_adds(a, b, 10_000)))
    torch_neuronx.clear_op_tracking()
    interval = sys.getswitchinterval()
    hold = ctypes.PyDLL(None).usleep  # keeps the GIL
    try:
        thread.start()
        while torch_neuronx.op_counters() == {}:
            time.sleep(0)
        sys.setswitchinterval(1000)  # from here this thread gives the GIL up by itself only
        held = time.monotonic()
        while _C.operator_counts()["aten::add.Tensor"][0] < 10_000 and time.monotonic() - held < 60:
            hold(1000)
        native = _C.operator_counts()["aten::add.Tensor"][0]
    finally:
        sys.setswitchinterval(interval)
        thread.join()
    assert native == 10_000
    assert torch.equal(result[0].cpu(), torch.full((16, 16), 10_000.0))


def test_one_thread_compiles_a_class(compiler):
    started = threading.Barrier(8)
    original = compiler.compile

    def slow(request):
        time.sleep(0.05)  # releases the GIL: the others arrive
        return original(request)

    compiler.compile = slow
    a = torch.ones(8, 8).to("neuron")
    results = []

    def work():
        started.wait()
        results.append(a.relu().cpu())

    threads = [threading.Thread(target=work) for _ in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert len(results) == 8 and all(torch.equal(r, a.cpu()) for r in results)
    assert len(compiler.requests) == 1
    assert torch_neuronx.op_counters()["aten::relu"].native == 8


def test_counters_of_threads_that_ended_are_kept(compiler):
    a = torch.ones(4).to("neuron")
    threads = [threading.Thread(target=lambda: [a.relu() for _ in range(50)]) for _ in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert torch_neuronx.op_counters()["aten::relu"].native == 200
    assert torch_neuronx.get_executed_ops().count("aten::relu") == 200


def test_repeats_in_the_list_are_bounded(compiler):
    a = torch.ones(4).to("neuron")
    for _ in range(1500):
        a.relu()
    assert torch_neuronx.get_executed_ops().count("aten::relu") == torch_neuronx.tracking.MAX_REPEATS
    assert torch_neuronx.op_counters()["aten::relu"].native == 1500


def test_a_failed_compilation_fails_every_waiter_and_is_not_remembered(compiler):
    compiler.error = ValueError("no such shape")
    a = torch.ones(4).to("neuron")
    for calls in (1, 2):  # falls back, and asks again
        assert torch.equal(a.relu().cpu(), torch.ones(4))
        assert len(compiler.requests) == calls
    assert torch_neuronx.get_fallback_ops() == ["aten::relu"]
    compiler.error = None
    torch_neuronx.clear_op_tracking()
    assert torch.equal(a.relu().cpu(), torch.ones(4))
    assert torch_neuronx.get_fallback_ops() == [] and len(compiler.requests) == 3


def test_an_interrupt_is_passed_on(compiler):
    compiler.error = KeyboardInterrupt()
    a = torch.ones(4).to("neuron")
    with pytest.raises(KeyboardInterrupt):
        a.relu()
    compiler.error = None
    assert torch.equal(a.relu().cpu(), torch.ones(4))


@pytest.mark.parametrize(
    "environment", [{"NEURON_FALLBACK_ENABLED": "0"}, {"TORCH_NEURONX_FALLBACK_ONLY_FOR_UNIMPLEMENTED_OPS": "1"}]
)
def test_a_failed_compilation_is_an_error_when_asked(python, environment):
    code = """
import torch
from torch_neuronx import _op_compiler
class Failing:
    def describe(self, op):
        return _op_compiler.OpTraits() if op == "aten::relu" else None
    def compile(self, request):
        raise ValueError("no such shape")
_op_compiler.install(Failing())
a = torch.empty(4, device="neuron")
for _ in range(2):
    try:
        a.relu()
    except ValueError as error:
        assert str(error) == "no such shape"
    else:
        raise AssertionError("no error")
assert a.device.type == "neuron" and torch.empty(3, device="neuron").shape == (3,)
"""
    done = python(code, **environment)
    assert done.returncode == 0, done.stderr


def test_backward_runs_on_autograds_thread(compiler):
    a = torch.ones(4, 4).to("neuron").requires_grad_()
    (a * a).sum().backward()
    assert torch.equal(a.grad.cpu(), torch.full((4, 4), 2.0))
    assert torch_neuronx.op_counters()["aten::mul.Tensor"].native >= 2
