"""Launches of eager mode joined into one program give the same bits."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import torch_neuronx
from libneuron_runtime.concatenate import Part, Region, concatenate
from libneuron_runtime.neff import pack, unpack
from torch_neuronx import _op_compiler
from torch_neuronx._op_compiler import LaunchScalar, TensorSpec
from torch_neuronx_compile.op_compiler import OpCompiler


class Recorder(TorchDispatchMode):
    """Notes each launch of the ops under it: the program that serves it, and where its tensors lie.

    The memory of earlier programs is dropped before each op, so that every launch asks the op compiler, which this listens to.
    """

    def __init__(self) -> None:
        super().__init__()
        self.compiler, self.request, self.neff = OpCompiler(), None, b""
        self.describe = self.compiler.describe
        self.parts: list[Part] = []
        self.scalars: list[int | float] = []
        self.tensors: list[torch.Tensor] = []  # alive, so that no address is used twice

    def compile(self, request: _op_compiler.OpRequest) -> bytes | None:
        self.request, self.neff = request, self.compiler.compile(request)
        return self.neff

    def region(self, tensor: torch.Tensor) -> Region:
        self.tensors.append(tensor)
        return Region(tensor.untyped_storage().data_ptr(), tensor.storage_offset() * tensor.element_size())

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        torch_neuronx._C._clear_compilation_cache()
        self.request = None
        result = func(*args, **(kwargs or {}))
        if self.request is not None:
            inputs = [
                x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor) and x.device.type == "neuron"
            ]
            outputs = [x for x in tree_leaves(result) if isinstance(x, torch.Tensor)]
            program = unpack(self.neff).program
            assert program is not None
            regions = list(map(self.region, inputs)), list(map(self.region, outputs))
            self.parts.append(Part(program, *regions, slots=self.request.slots))
            self.scalars += self.launch_scalars(func._schema.arguments, args, kwargs or {})
        return result

    def launch_scalars(self, arguments, args, kwargs) -> list[int | float]:
        """Numbers that the op compiler left to the launch, in the program's order."""
        values = [*args, *(kwargs.get(a.name, a.default_value) for a in arguments[len(args) :])]
        numbers = {}
        for spec, value in zip(self.request.args, values, strict=True):
            if isinstance(spec, LaunchScalar):
                numbers[spec.scalar] = spec.type(value)
            elif isinstance(spec, TensorSpec) and spec.scalar is not None:
                number = value.item() if isinstance(value, torch.Tensor) else value
                numbers[spec.scalar] = float(number) if spec.dtype.is_floating_point else int(number)
        return [numbers[position] for position in sorted(numbers)]


def bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    """The whole storage of a tensor as bytes."""
    storage = tensor.untyped_storage()
    return torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(storage, 0, (storage.nbytes(),), (1,))


def feed_forward(x: torch.Tensor, w1: torch.Tensor, w2: torch.Tensor) -> torch.Tensor:
    """Chains, a view, a reduction, a matmul, and writes in place."""
    h = F.layer_norm(x, (32,))
    h = F.gelu(h @ w1)
    left, right = h[:, :32], h[:, 32:]
    h = left * torch.sigmoid(right)
    h.add_(x, alpha=0.5)
    h.clamp_(-2, 2)
    h = h @ w2
    y = torch.softmax(h, -1) + x.t().sum(1) / 7
    y[1:3].mul_(2)
    y = (y - y.mean(0)).exp()
    y = y / y.amax(1, keepdim=True)
    return torch.where(y > 0.5, y, -y) + y.transpose(0, 1).reshape(32, 8).sum(0).unsqueeze(1)


@pytest.fixture
def recorder():
    recorder = Recorder()
    _op_compiler.install(recorder)
    yield recorder
    _op_compiler.install(None)


def run_joined(recorder: Recorder, inputs: list[torch.Tensor], result: torch.Tensor) -> torch.Tensor:
    """What the recorded launches made of `inputs`, as one launch."""
    names = [x.untyped_storage().data_ptr() for x in inputs]
    joined = concatenate(recorder.parts, inputs=names, outputs=[result.untyped_storage().data_ptr()])
    size = result.untyped_storage().nbytes()
    graph = torch_neuronx._C.load(pack(joined, name="window")).graph([((size,), (1,), torch.uint8)])
    (out,) = graph([bytes_of(x) for x in inputs], recorder.scalars)
    return out.view(result.dtype).as_strided(result.shape, result.stride(), result.storage_offset())


def test_twenty_launches_as_one(recorder):
    torch.manual_seed(0)
    x, w1, w2 = (torch.randn(size).to("neuron") for size in ((8, 32), (32, 64), (32, 32)))
    with recorder, torch.no_grad():
        eager = feed_forward(x, w1, w2)
    assert len(recorder.parts) >= 20
    joined = run_joined(recorder, [x, w1, w2], eager)
    assert torch.equal(joined.cpu(), eager.cpu())
    torch.testing.assert_close(joined.cpu(), feed_forward(x.cpu(), w1.cpu(), w2.cpu()))
