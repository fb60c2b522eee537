"""Operators whose results depend on the elements in their size: masked_select, nonzero, equal."""

import pytest
import torch

LAYOUTS = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.transpose(0, -1),
    "strided": lambda x: x[..., ::2],
    "offset": lambda x: x[1:],
    "expanded": lambda x: x[:1].expand(3, *x.shape[1:]),
    "empty": lambda x: x[:0],
}
DTYPES = [torch.float32, torch.bfloat16, torch.int64, torch.uint8, torch.bool]


def values(dtype: torch.dtype) -> torch.Tensor:
    torch.manual_seed(0)
    return torch.randint(0, 3, (4, 3, 5)).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_nonzero_and_masked_select(layout, dtype):
    host = LAYOUTS[layout](values(dtype))
    device = LAYOUTS[layout](values(dtype).to("neuron"))
    found = device.nonzero()
    assert found.device.type == "neuron" and found.dtype == torch.int64
    assert torch.equal(found.cpu(), host.nonzero())
    assert torch.equal(device.masked_select(device != 0).cpu(), host.masked_select(host != 0))
    assert torch.equal(device[device != 0].cpu(), host[host != 0])
    assert [column.tolist() for column in device.nonzero(as_tuple=True)] == [
        column.tolist() for column in host.nonzero(as_tuple=True)
    ]


def test_sizes_without_elements_or_dimensions():
    for size in ((), (0,), (3, 0, 2)):
        host = torch.ones(size)
        device = host.to("neuron")
        assert torch.equal(device.nonzero().cpu(), host.nonzero())
        assert torch.equal(device.masked_select(device > 0).cpu(), host.masked_select(host > 0))
    assert torch.zeros((), device="neuron").nonzero().shape == (0, 0)


def test_masks_broadcast_both_ways():
    x, mask = torch.arange(12.0).view(3, 4), torch.tensor([True, False, True, False])
    assert torch.equal(x.to("neuron").masked_select(mask.to("neuron")).cpu(), x.masked_select(mask))
    row, columns = torch.arange(4.0), torch.tensor([[True], [False], [True]])
    assert torch.equal(row.to("neuron").masked_select(columns.to("neuron")).cpu(), row.masked_select(columns))


def test_nan_is_not_zero():
    x = torch.tensor([0.0, float("nan"), -0.0, float("inf")])
    assert torch.equal(x.to("neuron").nonzero().cpu(), x.nonzero())


def test_gradient_of_masked_select():
    x = torch.arange(6.0).view(2, 3).to("neuron").requires_grad_()
    (x[x > 1] * 2).sum().backward()
    assert x.grad.tolist() == [[0, 0, 2], [2, 2, 2]]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_equal(dtype):
    x = values(dtype)
    device = x.to("neuron")
    changed = device.clone()
    changed[3, 2, 4] = 1 - changed[3, 2, 4].to(torch.int64)
    assert torch.equal(device, device.clone()) and not torch.equal(device, changed)
    assert torch.equal(device.transpose(0, 1), x.transpose(0, 1).to("neuron"))
    assert not torch.equal(device, device[:2])
    assert torch.equal(device[:0], device[:0].clone())
    assert not torch.equal(torch.tensor([float("nan")], device="neuron"), torch.tensor([float("nan")], device="neuron"))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: torch.equal(x, x.cpu()), "different devices"),
        (lambda x: torch.equal(x, x.long()), "one dtype"),
        (lambda x: x.masked_select(x), "expected BoolTensor"),
        (lambda x: x.masked_select(torch.ones(7, device="neuron") > 0), "must match"),
        (lambda x: x.masked_select(x.cpu() > 0), "same device"),
    ],
)
def test_what_does_not_fit_is_refused(call, message):
    with pytest.raises(RuntimeError, match=message):
        call(torch.ones(2, 3, device="neuron"))


def test_tensors_print():
    assert repr(torch.tensor([[0.5, 2], [3, float("inf")]], device="neuron")) == (
        "tensor([[0.5000, 2.0000],\n        [3.0000,    inf]], device='neuron:0')"
    )
    assert repr(torch.arange(3, device="neuron")) == "tensor([0, 1, 2], device='neuron:0')"
