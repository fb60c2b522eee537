"""Allocation, views, resizing, storages."""

import copy
import gc

import pytest
import torch


def test_empty_variants():
    assert torch.empty(2, 3, device="neuron").shape == (2, 3)
    assert torch.empty(2, 3, 4, 5, device="neuron", memory_format=torch.channels_last).stride() == (60, 1, 15, 3)
    assert torch.empty_strided((2, 3), (1, 2), device="neuron").stride() == (1, 2)
    assert torch.empty_like(torch.ones(2, 3).t(), device="neuron").stride() == (1, 3)
    assert torch.empty((), device="neuron").dim() == 0
    x = torch.empty(2, device="neuron", dtype=torch.bfloat16)
    assert (x.dtype, x.layout, x.requires_grad) == (torch.bfloat16, torch.strided, False)
    assert x.new_empty(3).device == x.device and x.new_empty(3).dtype == x.dtype


@pytest.mark.parametrize(
    "make",
    [
        lambda device: torch.zeros(2, 3, device=device),
        lambda device: torch.ones(2, device=device, dtype=torch.int64),
        lambda device: torch.full((2, 2), 1.5, device=device),
        lambda device: torch.arange(5, device=device),
        lambda device: torch.tensor([[1.0, 2], [3, 4]], device=device),
        lambda device: torch.tensor(3, device=device),
        lambda device: torch.as_tensor([True, False], device=device),
        lambda device: torch.eye(3, device=device),
        lambda device: torch.linspace(0, 1, 5, device=device),
        lambda device: torch.scalar_tensor(2.5, device=device),
        lambda device: torch.complex(torch.ones(2, device=device), torch.zeros(2, device=device)),
    ],
)
def test_factories(make):
    expected, got = make("cpu"), make("neuron")
    assert got.device == torch.device("neuron:0") and got.dtype == expected.dtype
    assert torch.equal(got.cpu(), expected)


def test_unsupported_layouts():
    with pytest.raises(RuntimeError):
        torch.empty(2, 2, layout=torch.sparse_coo, device="neuron").to_dense()


def test_views_share_memory():
    x = torch.arange(6.0).to("neuron")
    y = x.view(2, 3)
    y.t()[1].zero_()
    assert x.cpu().tolist() == [0, 0, 2, 3, 0, 5]
    assert x.data_ptr() == y.data_ptr() and y[1].data_ptr() == x.data_ptr() + 12
    assert x.untyped_storage()._cdata == y.untyped_storage()._cdata
    assert y.is_set_to(x.view(2, 3)) and not y.is_set_to(x)


VIEWS = {
    "view dtype": lambda t: t.view(torch.int32),
    "as_strided": lambda t: t.as_strided((2, 2), (3, 1), 1),
    "unfold": lambda t: t.unfold(1, 2, 1),
    "reshape": lambda t: t.reshape(3, 2),
    "movedim": lambda t: t.movedim(0, 1),
    "split": lambda t: t.split(2, 1)[1],
    "unbind": lambda t: t.unbind(0)[1],
    "expand": lambda t: t[:1].expand(4, 3),
    "flatten": lambda t: t.flatten(),
    "chunk": lambda t: t.chunk(2)[0],
    "narrow": lambda t: t.narrow(1, 1, 2),
    "swapaxes": lambda t: t.swapaxes(0, 1),
    "squeeze": lambda t: t[:1].squeeze(0),
    "detach": lambda t: t.detach(),
    "alias": lambda t: torch.ops.aten.alias(t),
    "diagonal": lambda t: t.diagonal(),
    "view_as": lambda t: t.view_as(torch.empty(3, 2, device=t.device)),
}


@pytest.mark.parametrize("name", VIEWS)
def test_view_operators(name):
    host = torch.arange(6.0).view(2, 3)
    device = host.to("neuron")
    expected, got = VIEWS[name](host), VIEWS[name](device)
    assert got.untyped_storage().data_ptr() == device.untyped_storage().data_ptr()  # no copy
    assert (got.shape, got.stride(), got.storage_offset()) == (
        expected.shape,
        expected.stride(),
        expected.storage_offset(),
    )
    assert torch.equal(got.cpu(), expected)


def test_complex_views():
    host = torch.tensor([[1 + 2j, 3 - 4j]])
    device = host.to("neuron")
    real = torch.view_as_real(device)
    assert real.data_ptr() == device.data_ptr() and torch.equal(real.cpu(), torch.view_as_real(host))
    assert torch.equal(torch.view_as_complex(real).cpu(), host)
    assert torch.equal(device.imag.cpu(), host.imag)


@pytest.mark.parametrize(
    "bad",
    [
        lambda t: t.view(5),
        lambda t: t.t().view(6),
        lambda t: t.as_strided((100,), (1,)),
        lambda t: t.as_strided((2,), (-1,)),
        lambda t: t.view(torch.int64),
        lambda t: t[5],
        lambda t: t.expand(4, 3),
        lambda t: t.unfold(0, 9, 1),
        lambda t: torch.view_as_complex(t),
        lambda t: t.transpose(0, 5),
    ],
)
def test_bad_views_raise_what_the_cpu_raises(bad):
    host = torch.arange(6.0).view(2, 3)
    with pytest.raises((RuntimeError, IndexError)) as theirs:
        bad(host)
    with pytest.raises(type(theirs.value)) as ours:
        bad(host.to("neuron"))
    assert str(ours.value) == str(theirs.value)


def test_resize():
    x = torch.arange(6.0).to("neuron")
    x.resize_(2, 2)
    assert x.cpu().tolist() == [[0, 1], [2, 3]]
    before = x.data_ptr()
    x.resize_(3)
    assert x.data_ptr() == before
    x.resize_(1000)
    assert x.shape == (1000,) and x[:6].cpu().tolist() == [0, 1, 2, 3, 4, 5]  # grown storages keep their bytes
    assert x.untyped_storage().nbytes() == 4000
    x.resize_as_(torch.empty(2, 3))
    assert x.shape == (2, 3)
    with pytest.raises(RuntimeError, match="negative|overflow"):
        x.resize_(-1)


def test_out_is_resized():
    out = torch.empty(0, device="neuron")
    torch.add(torch.ones(3).to("neuron"), 1, out=out)
    assert out.cpu().tolist() == [2, 2, 2]


def test_storage_resize():
    x = torch.arange(4.0).to("neuron")
    storage = x.untyped_storage()
    storage.resize_(32)
    assert storage.nbytes() == 32 and x.cpu().tolist() == [0, 1, 2, 3]
    gc.collect()
    before = torch.neuron.memory_allocated()
    storage.resize_(0)
    assert storage.nbytes() == 0 and torch.neuron.memory_allocated() == before - 32
    storage.resize_(16)
    x.copy_(torch.ones(4))
    assert x.cpu().tolist() == [1, 1, 1, 1]


def test_set():
    x, y = torch.arange(4.0).to("neuron"), torch.zeros(2).to("neuron")
    y.set_(x)
    assert y.data_ptr() == x.data_ptr() and y.shape == (4,)
    y.set_(x.untyped_storage(), 1, (2,), (2,))
    assert y.cpu().tolist() == [1, 3]
    assert torch.empty(0, device="neuron").set_(x.untyped_storage()).cpu().tolist() == [0, 1, 2, 3]
    y.set_()
    assert y.numel() == 0 and y.device == torch.device("neuron:0")


def test_set_from_another_device():
    with pytest.raises(RuntimeError, match="device"):
        torch.zeros(2).to("neuron").set_(torch.zeros(2).untyped_storage())


def test_data_exchange():
    p = torch.nn.Parameter(torch.ones(3))
    p.data = torch.zeros(3).to("neuron")
    assert p.device == torch.device("neuron:0") and p.cpu().tolist() == [0, 0, 0]
    p.data = torch.ones(2)
    assert p.device.type == "cpu"
    with pytest.raises(RuntimeError, match="incompatible tensor type"):
        p.data = torch.eye(2).to_sparse()


def test_deepcopy_and_clone():
    x = torch.arange(6.0).view(2, 3).to("neuron").t().requires_grad_()
    y = copy.deepcopy(x)
    assert y.device == x.device and y.stride() == x.stride() and y.requires_grad and y.data_ptr() != x.data_ptr()
    assert torch.equal(y.cpu(), x.cpu())
    memo = copy.deepcopy({"a": x.detach(), "b": x.detach()[1:]})
    assert memo["a"].untyped_storage().data_ptr() == memo["b"].untyped_storage().data_ptr()


def test_storage_methods():
    x = torch.arange(4, dtype=torch.uint8).to("neuron")
    storage = x.untyped_storage()
    assert storage.device == torch.device("neuron:0") and storage.is_neuron
    assert storage.cpu().tolist() == [0, 1, 2, 3]
    assert torch.UntypedStorage(8, device="neuron").device == torch.device("neuron:0")
    assert torch.arange(4, dtype=torch.uint8).untyped_storage().neuron().device == torch.device("neuron:0")
    clone = storage.clone()
    clone.fill_(7)
    assert x.cpu().tolist() == [0, 1, 2, 3]


def test_storage_by_index():
    storage = torch.zeros(2, dtype=torch.uint8).to("neuron").untyped_storage()
    storage[1] = 3
    assert storage[1] == 3 and storage.cpu().tolist() == [0, 3]
    with pytest.raises((RuntimeError, IndexError)):
        storage[2]


def test_repr():
    text = repr(torch.tensor([1.5, -2.0, float("inf")]).to("neuron"))
    assert "1.5000" in text and "device='neuron:0'" in text
    for tensor in (
        torch.ones(100, 100),
        torch.ones(100, 100).nonzero(),
        torch.tensor([True]),
        torch.empty(0),
        torch.arange(5).expand(3, 5).t(),
        torch.tensor([1 + 2j]).conj(),
        torch.ones(2, dtype=torch.bfloat16),
        torch.tensor(2**40),
    ):
        host, device = repr(tensor), repr(tensor.to("neuron"))
        assert device.replace(", device='neuron:0'", "").replace(" ", "").replace("\n", "") == host.replace(
            " ", ""
        ).replace("\n", "")


def test_autograd_hands_gradients_over():
    w = torch.ones(3, requires_grad=True)
    (w.to("neuron") * torch.tensor([1.0, 2, 3]).to("neuron")).sum().backward()
    assert w.grad.device.type == "cpu" and w.grad.tolist() == [1, 2, 3]
    v = torch.ones(3).to("neuron").requires_grad_()
    v.cpu().sum().backward()
    assert v.grad.device == torch.device("neuron:0") and v.grad.cpu().tolist() == [1, 1, 1]


def test_share_memory_is_a_no_op():
    x = torch.ones(2).to("neuron")
    assert x.share_memory_() is x
    assert x.is_shared() == torch.ones(2).to("neuron").is_shared()


def test_mixed_devices_are_an_error():
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        torch.ones(2).to("neuron") + torch.ones(2)
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        torch.ones(2, 2) @ torch.ones(2, 2).to("neuron")
    assert (torch.ones(2).to("neuron") + torch.tensor(1.0)).cpu().tolist() == [2, 2]  # a CPU scalar is read


@pytest.mark.skipif(torch.neuron.device_count() < 2, reason="needs two visible cores")
def test_two_neuron_devices_are_an_error():
    with pytest.raises(RuntimeError, match="same device.* neuron:1.* neuron:0"):
        torch.ones(2).to("neuron:0") + torch.ones(2).to("neuron:1")


@pytest.mark.parametrize(
    ("kind", "make"),
    [
        ("quantized", lambda: torch.quantize_per_tensor(torch.ones(3), 1.0, 0, torch.qint8).to("neuron")),
        ("quantized", lambda: torch.empty(3, dtype=torch.quint8, device="neuron")),
        ("sparse", lambda: torch.eye(3).to_sparse().to("neuron")),
        ("sparse", lambda: torch.sparse_coo_tensor([[0], [1]], [1.0], (2, 2), device="neuron")),
        ("sparse", lambda: torch.eye(3).to_sparse_csr().to("neuron").sum()),
        ("nested", lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]).to("neuron")),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore")  # torch's own, of layouts in beta
def test_other_layouts_are_refused(kind: str, make):
    message = (
        f"the neuron device holds strided tensors of plain dtypes, not {kind} ones. Keep the tensor on the CPU, or "
    )
    with pytest.raises(NotImplementedError, match=message):
        make()
