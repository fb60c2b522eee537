"""Automatic mixed precision."""

import pytest
import torch
import torch.nn.functional as F


@pytest.fixture
def x():
    return torch.ones(2, 4).to("neuron")


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_lists(x, dtype):
    with torch.autocast("neuron", dtype=dtype):
        y = F.linear(x, torch.ones(3, 4).to("neuron"))
        assert y.dtype == dtype  # lower precision
        assert torch.softmax(y, -1).dtype == torch.float32  # single precision
        assert y.exp().dtype == torch.float32
        assert y.sum().dtype == torch.float32
        assert y.relu().dtype == dtype  # either
        assert torch.cat([y, torch.ones(2, 3).to("neuron")]).dtype == torch.float32  # the widest
        assert torch.zeros(2, device="neuron").dtype == torch.float32
        assert (torch.ones(2, dtype=torch.int64).to("neuron") + 1).dtype == torch.int64
    assert F.linear(x, x).dtype == torch.float32


def test_default_dtype_and_switches(x):
    with torch.autocast("neuron"):
        assert (x @ x.t()).dtype == torch.get_autocast_dtype("neuron") and torch.is_autocast_enabled("neuron")
        with torch.autocast("neuron", enabled=False):
            assert (x @ x.t()).dtype == torch.float32
    with torch.autocast("cpu"):
        assert (x @ x.t()).dtype == torch.float32


def test_backward_keeps_the_parameters_dtype(x):
    layer = torch.nn.Linear(4, 3).to("neuron")
    with torch.autocast("neuron", dtype=torch.bfloat16):
        loss = layer(x).float().sum()
    loss.backward()
    assert layer.weight.grad.dtype == torch.float32


def test_unsupported_dtype_is_refused(x):
    with pytest.warns(UserWarning, match="neuron"), torch.autocast("neuron", dtype=torch.float32):
        assert (x @ x.t()).dtype == torch.float32


def test_unsafe_loss_is_refused(x):
    with torch.autocast("neuron"), pytest.raises(RuntimeError, match="binary_cross_entropy_with_logits"):
        F.binary_cross_entropy(torch.sigmoid(x), x)


def test_recurrent_cells_run_in_lower_precision(x):
    cell = torch.nn.LSTMCell(4, 3).to("neuron")
    with torch.autocast("neuron", dtype=torch.bfloat16):
        h, c = cell(x)
    assert h.dtype == c.dtype == torch.bfloat16


def test_custom_function():
    class Double(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="neuron", cast_inputs=torch.bfloat16)
        def forward(ctx, t):
            return t * 2

        @staticmethod
        @torch.amp.custom_bwd(device_type="neuron")
        def backward(ctx, g):
            return g * 2

    with torch.autocast("neuron"):
        assert Double.apply(torch.ones(2).to("neuron")).dtype == torch.bfloat16


def test_grad_scaler():
    layer = torch.nn.Linear(2, 1, bias=False).to("neuron")
    optimizer = torch.optim.SGD(layer.parameters(), 1.0)
    scaler = torch.amp.GradScaler("neuron", init_scale=4.0)
    before = layer.weight.detach().cpu()

    def step(value):
        optimizer.zero_grad()
        scaler.scale(layer(torch.full((1, 2), value).to("neuron")).sum()).backward()
        scaler.step(optimizer)
        scaler.update()

    step(float("inf"))
    assert torch.equal(layer.weight.detach().cpu(), before) and scaler.get_scale() == 2.0
    step(1.0)
    torch.testing.assert_close(layer.weight.detach().cpu(), before - 1)
