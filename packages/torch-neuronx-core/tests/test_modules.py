"""torch.nn on the device: parameters, lazy modules, recurrent cells, convolutions."""

import copy

import pytest
import torch
from torch import nn


def test_parameters_stay_the_same_objects():
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    parameters, buffers = list(model.parameters()), list(model.buffers())
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    model.to("neuron")
    assert all(a is b for a, b in zip(parameters, model.parameters(), strict=True))
    assert all(p.device == torch.device("neuron:0") for p in model.parameters())
    assert all(b.device == torch.device("neuron:0") for b in model.buffers()) and len(buffers) == 3
    before = model[0].weight.detach().cpu()
    model(torch.randn(5, 3).to("neuron")).square().sum().backward()
    optimizer.step()  # made before the move, and still bound to these parameters
    assert not torch.equal(before, model[0].weight.detach().cpu())
    model.cpu()
    assert all(a is b for a, b in zip(parameters, model.parameters(), strict=True))
    assert all(p.device.type == "cpu" and p.grad.device.type == "cpu" for p in model.parameters())


def test_tied_weights():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(7, 4)
            self.head = nn.Linear(4, 7, bias=False)
            self.head.weight = self.embedding.weight

    model = Tied().to("neuron")
    assert model.head.weight is model.embedding.weight
    model.head(model.embedding(torch.tensor([1, 2]).to("neuron"))).sum().backward()
    assert model.embedding.weight.grad is model.head.weight.grad
    clone = copy.deepcopy(model)
    assert clone.head.weight is clone.embedding.weight


def test_lazy_modules():
    model = nn.Sequential(nn.LazyLinear(4), nn.LazyBatchNorm1d()).to("neuron")
    assert model(torch.ones(2, 3).to("neuron")).shape == (2, 4)
    assert model[0].weight.shape == (4, 3) and model[0].weight.device == torch.device("neuron:0")
    late = nn.LazyConv2d(2, 3)
    late(torch.ones(1, 1, 5, 5))
    assert late.to("neuron")(torch.ones(1, 1, 5, 5).to("neuron")).shape == (1, 2, 3, 3)


def test_meta_to_device():
    with torch.device("meta"):
        model = nn.Linear(2, 3)
    model.to_empty(device="neuron")
    assert model.weight.device == torch.device("neuron:0")
    model.load_state_dict({"weight": torch.ones(3, 2), "bias": torch.zeros(3)})
    assert model(torch.ones(1, 2).to("neuron")).cpu().tolist() == [[2, 2, 2]]


def test_device_context_creates_on_the_device():
    with torch.device("neuron"):
        model = nn.Linear(2, 2)
        x = torch.randn(1, 2)
    assert model.weight.device == x.device == torch.device("neuron:0")
    assert model(x).shape == (1, 2)


def compare(module: nn.Module, *inputs: torch.Tensor, tolerance: float = 1e-5) -> None:
    """Forward, and the gradients of all parameters and inputs, equal the CPU's."""

    def run(model, tensors):
        tensors = [t.detach().clone().requires_grad_(t.is_floating_point()) for t in tensors]
        out = model(*tensors)
        parts = [t for t in torch.utils._pytree.tree_leaves(out) if isinstance(t, torch.Tensor)]
        weights = [torch.linspace(-1, 1, t.numel()).view(t.shape).to(t.device) for t in parts]
        sum((t * w).sum() for t, w in zip(parts, weights, strict=True)).backward()
        gradients = [p.grad for p in model.parameters()] + [t.grad for t in tensors if t.requires_grad]
        return [t.detach().cpu() for t in parts + gradients]

    expected = run(copy.deepcopy(module), inputs)
    got = run(copy.deepcopy(module).to("neuron"), [t.to("neuron") for t in inputs])
    assert len(expected) == len(got)
    for a, b in zip(expected, got, strict=True):
        torch.testing.assert_close(b, a, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("cell", [nn.LSTMCell, nn.GRUCell, nn.RNNCell])
def test_recurrent_cells(cell, bias):
    torch.manual_seed(0)
    compare(cell(3, 4, bias=bias), torch.randn(5, 3))
    compare(cell(3, 4, bias=bias), torch.randn(3))


@pytest.mark.parametrize("network", [nn.LSTM, nn.GRU, nn.RNN])
@pytest.mark.parametrize(
    "options", [{}, {"num_layers": 2, "bidirectional": True}, {"batch_first": True, "bias": False}], ids=str
)
def test_recurrent_networks(network, options):
    torch.manual_seed(0)
    compare(network(3, 4, **options), torch.randn(2, 5, 3))


def test_packed_sequences():
    torch.manual_seed(0)
    network = nn.GRU(2, 3)
    sequences = [torch.randn(4, 2), torch.randn(2, 2)]
    host = nn.utils.rnn.pack_sequence(sequences)
    expected, got = network(host)[0], copy.deepcopy(network).to("neuron")(host.to("neuron"))[0]
    torch.testing.assert_close(got.data.cpu(), expected.data)
    assert host.neuron().data.device == torch.device("neuron:0")


def test_second_derivative_of_a_cell():
    torch.manual_seed(0)
    for cell in (nn.LSTMCell(2, 3), nn.GRUCell(2, 3)):

        def second(model, x):
            x = x.detach().requires_grad_()
            out = model(x)
            out = out[0] if isinstance(out, tuple) else out
            (first,) = torch.autograd.grad(out.sum(), x, create_graph=True)
            return torch.autograd.grad(first.square().sum(), x)[0].cpu()

        x = torch.randn(2, 2)
        expected = second(copy.deepcopy(cell), x)
        torch.testing.assert_close(second(copy.deepcopy(cell).to("neuron"), x.to("neuron")), expected)


@pytest.mark.parametrize(
    "module, shape",
    [
        (nn.Conv1d(2, 3, 3, padding=1), (2, 2, 8)),
        (nn.Conv2d(2, 4, 3, stride=2, groups=2), (1, 2, 7, 7)),
        (nn.Conv3d(1, 2, 2), (1, 1, 3, 4, 5)),
        (nn.Conv2d(2, 2, 3, padding="same", dilation=2, bias=False), (1, 2, 6, 6)),
        (nn.ConvTranspose2d(2, 3, 3, stride=2, output_padding=1), (1, 2, 4, 4)),
    ],
    ids=["1d", "2d", "3d", "dilated", "transposed"],
)
def test_convolutions(module, shape):
    torch.manual_seed(0)
    compare(module, torch.randn(shape))


def test_channels_last_convolution():
    torch.manual_seed(0)
    module = nn.Conv2d(2, 3, 3)
    x = torch.randn(1, 2, 5, 5).contiguous(memory_format=torch.channels_last)
    expected = module(x)
    got = copy.deepcopy(module).to("neuron")(x.to("neuron"))
    torch.testing.assert_close(got.cpu(), expected, rtol=1e-5, atol=1e-5)


def test_convolution_overrideable_by_name():
    x, w = torch.randn(1, 1, 4, 4), torch.randn(1, 1, 3, 3)
    args = (None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1)
    got = torch.ops.aten.convolution_overrideable(x.to("neuron"), w.to("neuron"), *args)
    torch.testing.assert_close(got.cpu(), torch.convolution(x, w, *args), rtol=1e-5, atol=1e-5)


def test_convolution_errors():
    with pytest.raises(RuntimeError, match="channels"):
        nn.Conv2d(2, 3, 3).to("neuron")(torch.ones(1, 4, 5, 5).to("neuron"))


@pytest.mark.parametrize("causal", [True, False])
def test_attention(causal):
    torch.manual_seed(0)

    class Attention(nn.Module):
        def forward(self, q, k, v):
            return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

    compare(Attention(), *(torch.randn(1, 2, 6, 4) for _ in range(3)))


def test_transformer_layer():
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    compare(layer, torch.randn(2, 5, 8), tolerance=1e-4)


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.AdamW, torch.optim.Adam, torch.optim.RMSprop])
def test_optimizers(optimizer):
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    twin = copy.deepcopy(model).to("neuron")
    for network in (model, twin):
        steps = optimizer(network.parameters(), lr=0.1)
        for i in range(3):
            steps.zero_grad()
            x = torch.full((4, 3), float(i + 1)).to(network.weight.device)
            network(x).square().mean().backward()
            steps.step()
    torch.testing.assert_close(twin.weight.detach().cpu(), model.weight.detach(), rtol=1e-4, atol=1e-5)
