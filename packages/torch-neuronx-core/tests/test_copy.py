"""Copies: every dtype and layout, between the host and the device, on the device, and into views."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

DTYPES = [
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.uint8,
    torch.uint16,
    torch.uint32,
    torch.uint64,
    torch.bool,
    torch.complex64,
    torch.complex128,
    torch.complex32,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
]
CASTS = [torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.int32, torch.uint8, torch.int8, torch.bool]

# Each makes a view from a tensor of 4 x 6 elements.
LAYOUTS = {
    "contiguous": lambda t: t,
    "transposed": lambda t: t.t(),
    "column": lambda t: t[:, 2],
    "row": lambda t: t[1],
    "inner": lambda t: t[1:3, 2:5],
    "strided": lambda t: t[::2, 1::2],
    "expanded": lambda t: t[:, :1].expand(4, 6),
    "expanded scalar": lambda t: t[0, 0].expand(3, 2),
    "0-d": lambda t: t[2, 3],
    "empty": lambda t: t[:, :0],
    "unsqueezed": lambda t: t[None, :, None, 3:],
    "permuted": lambda t: t.view(2, 2, 3, 2).permute(3, 1, 0, 2),
    "overlapping": lambda t: t.view(-1).unfold(0, 5, 3),
    "diagonal": lambda t: t.diagonal(1),
}


def values(dtype: torch.dtype) -> torch.Tensor:
    """4 x 6 distinct numbers, as far as the dtype has them."""
    base = torch.arange(24, dtype=torch.float64).view(4, 6)
    if dtype == torch.bool:
        return base % 3 == 0
    if dtype.is_complex:
        return torch.complex(base, 100 - base).to(dtype)
    return base.to(dtype)


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """The elements in order as bytes, NaNs as one pattern."""
    # A clone, as contiguous() leaves any stride where a size is 1, and such a tensor has no view as bytes.
    flat = tensor.resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format).view(-1)
    if flat.dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        flat = torch.where(flat.isnan(), torch.tensor(float("nan"), dtype=flat.dtype), flat)
    return flat.view(torch.uint8)


def same(device: torch.Tensor, host: torch.Tensor) -> None:
    """Equal in every bit, but for the payload of NaNs, and in shape and dtype."""
    assert device.device.type == "neuron"
    back = device.cpu()
    assert (device.dtype, device.shape, back.dtype, back.shape) == (host.dtype, host.shape, host.dtype, host.shape)
    if host.numel() > 0:
        assert torch.equal(bits(back), bits(host))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_host_to_device_and_back(dtype, layout):
    host = LAYOUTS[layout](values(dtype))
    device = host.to("neuron")
    same(device, host)
    assert device.stride() == torch.empty_like(host).stride()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_views_on_the_device(dtype, layout):
    host, device = LAYOUTS[layout](values(dtype)), LAYOUTS[layout](values(dtype).to("neuron"))
    assert device.stride() == host.stride() and device.storage_offset() == host.storage_offset()
    same(device, host)
    same(device.clone(), host)
    same(device.contiguous(), host.contiguous())
    assert device.contiguous().is_contiguous()


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if not name.startswith(("expanded", "overlapping"))])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_writing_into_views(dtype, layout):
    for source_on_device in (False, True):
        host, device = torch.zeros(4, 6, dtype=dtype), torch.zeros(4, 6, dtype=dtype).to("neuron")
        source = LAYOUTS[layout](values(dtype))
        LAYOUTS[layout](host).copy_(source)
        LAYOUTS[layout](device).copy_(source.to("neuron") if source_on_device else source)
        same(device, host)  # nothing beside the view has changed


@pytest.mark.parametrize("target", CASTS, ids=str)
@pytest.mark.parametrize("source", CASTS, ids=str)
def test_casts(source, target):
    host = values(source)
    device = host.to("neuron")
    same(device.to(target), host.to(target))
    same(host.to("neuron", target), host.to(target))
    assert torch.equal(device.to("cpu", target), host.to(target))
    same(device.t()[1:].to(target), host.t()[1:].to(target))
    destination = torch.zeros(6, 4, dtype=target).to("neuron")
    destination.t().copy_(device)
    same(destination, host.t().to(target))


SPECIAL = torch.tensor(
    [float("nan"), float("inf"), -float("inf"), -0.0, 0.0, 1e-45, 3.4e38, 65504.0, 70000.0, 1 + 2**-9]
)


@pytest.mark.parametrize("target", [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.bool], ids=str)
def test_casts_of_special_values(target):
    same(SPECIAL.to("neuron").to(target), SPECIAL.to(target))
    back = SPECIAL.to(target)
    same(back.to("neuron").to(torch.float32), back.to(torch.float32))


def test_casts_of_large_integers():
    host = torch.tensor([2**53 + 1, -(2**40) - 1, 2**31, -1, 255, 256])
    device = host.to("neuron")
    for dtype in (torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool):
        same(device.to(dtype), host.to(dtype))


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=str)
def test_conjugate_views(dtype):
    host = values(dtype)
    device = host.to("neuron")
    assert device.conj().is_conj()
    same(device.conj(), host.conj())
    same(device.conj().clone(), host.conj())
    same(device.conj().t().contiguous(), host.conj().t())
    same(host.conj().to("neuron"), host.conj())
    same(device.conj().resolve_conj(), host.conj())
    assert torch.equal(torch.empty_like(host).copy_(device.conj()), host.conj())
    for source in (host, device, host.conj(), device.conj()):
        into = torch.zeros(4, 6, dtype=dtype).to("neuron")
        into.conj().copy_(source)
        same(into, source.cpu().conj())


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=str)
def test_negative_views(dtype):
    host = values(dtype)
    device = host.to("neuron")
    assert device.conj().imag.is_neg()
    same(device.conj().imag, host.conj().imag)
    same(device.conj().imag.clone(), host.conj().imag)
    same(host.conj().imag.to("neuron"), host.conj().imag)
    assert torch.equal(torch.empty(4, 6, dtype=host.real.dtype).copy_(device.conj().imag), host.conj().imag)
    into_host, into = torch.zeros(4, 6, dtype=dtype), torch.zeros(4, 6, dtype=dtype).to("neuron")
    into.conj().imag.copy_(device.real)
    into_host.conj().imag.copy_(host.real)
    same(into, into_host)


def test_zero_tensors():
    zero = torch._efficientzerotensor((2, 3), device="neuron")
    assert zero._is_zerotensor() and zero.device == torch.device("neuron:0")
    same(zero.clone(), torch.zeros(2, 3))
    assert torch.equal(zero.cpu(), torch.zeros(2, 3))
    x = torch.ones(2, 3).to("neuron")
    x.copy_(zero)
    same(x, torch.zeros(2, 3))
    with pytest.raises(RuntimeError, match="ZeroTensors are immutable"):
        zero.copy_(x)


def test_forward_mode_gradient():
    import torch.autograd.forward_ad as forward

    with forward.dual_level():
        x = forward.make_dual(torch.ones(3).to("neuron"), torch.full((3,), 2.0).to("neuron"))
        y = torch.cat([x, torch.ones(3).to("neuron")])
        assert forward.unpack_dual(y).tangent.cpu().tolist() == [2, 2, 2, 0, 0, 0]


def test_broadcasting():
    host = torch.zeros(2, 3)
    device = host.to("neuron")
    for source in (torch.tensor([1.0, 2, 3]), torch.tensor(5.0), torch.tensor([[1.0], [2.0]])):
        device.copy_(source)
        same(device, host.copy_(source))
        device.copy_(source.to("neuron"))
        same(device, host)
        assert torch.equal(torch.zeros(2, 3).copy_(source.to("neuron")), host)


@pytest.mark.parametrize("make", [lambda t: t, lambda t: t.to("neuron")], ids=["host", "device"])
def test_shapes_that_do_not_broadcast(make):
    device = torch.zeros(2, 3).to("neuron")
    for shape in ((2,), (4, 3), (1, 2, 3, 1)):
        with pytest.raises(RuntimeError) as ours:
            device.copy_(make(torch.zeros(shape)))
        with pytest.raises(RuntimeError) as theirs:
            torch.zeros(2, 3).copy_(torch.zeros(shape))
        assert str(ours.value) == str(theirs.value)


def test_overlap_is_refused_as_on_the_cpu():
    def messages(device):
        for write in (
            lambda t: t[:1].expand(4).copy_(t),
            lambda t: t[:3].copy_(t[1:]),
            lambda t: t[:2].view(torch.int32).copy_(t[1:3]),
        ):
            with pytest.raises(RuntimeError) as raised:
                write(torch.zeros(4).to(device))
            yield str(raised.value)

    assert list(messages("neuron")) == list(messages("cpu"))


def test_overlap_that_the_cpu_does_not_see_reads_before_it_writes():
    for read, write in ((slice(1, 3), slice(0, 4, 2)), (slice(0, 4, 2), slice(1, 3)), (slice(0, 6, 2), slice(2, 5))):
        x = torch.arange(6.0)
        expected = x.clone()
        expected[write] = x[read]
        device = x.to("neuron")
        device[write].copy_(device[read])
        assert device.cpu().tolist() == expected.tolist()


def test_copy_to_itself():
    x = torch.arange(4.0).to("neuron")
    x.copy_(x)
    x.copy_(x.view(2, 2).view(4))
    same(x, torch.arange(4.0))


def test_meta_and_undefined():
    x = torch.ones(2).to("neuron")
    assert x.to("meta").device.type == "meta"
    with pytest.raises(NotImplementedError, match="meta"):
        x.copy_(torch.empty(2, device="meta"))


def test_large():
    host = torch.randn(1 << 20)
    device = host.to("neuron")
    same(device, host)
    same(device.view(1024, 1024).t().contiguous(), host.view(1024, 1024).t().contiguous())
    same(device.view(1024, 1024)[:, 5], host.view(1024, 1024)[:, 5])  # mostly holes: gathered on the device


def test_item():
    for dtype in DTYPES:
        host = values(dtype)
        device = host.to("neuron")
        assert device[2, 3].item() == host[2, 3].item() and type(device[1, 1].item()) is type(host[1, 1].item())
    assert torch.tensor([5]).to("neuron").item() == 5
    assert int(torch.tensor(7).to("neuron")) == 7 and float(torch.tensor(0.5).to("neuron")) == 0.5
    assert bool(torch.tensor(True).to("neuron")) and torch.tensor(1 + 2j).to("neuron").conj().item() == 1 - 2j
    assert torch.tensor([1, 2]).to("neuron").tolist() == [1, 2]
    with pytest.raises(RuntimeError, match="a Tensor with 2 elements cannot be converted to Scalar"):
        torch.tensor([1, 2]).to("neuron").item()


def test_numpy_refuses_as_other_devices_do():
    with pytest.raises(TypeError, match="can't convert neuron:0 device type tensor to numpy"):
        torch.ones(2).to("neuron").numpy()


@pytest.mark.skipif(torch.neuron.device_count() < 2, reason="needs two visible cores")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_between_devices(layout):
    for dtype in (torch.float32, torch.int64, torch.bool):
        host = LAYOUTS[layout](values(dtype))
        device = LAYOUTS[layout](values(dtype).to("neuron:0"))
        moved = device.to("neuron:1")
        assert moved.device == torch.device("neuron:1")
        same(moved, host)
        if not layout.startswith(("expanded", "overlapping")):
            target = LAYOUTS[layout](torch.zeros(4, 6, dtype=torch.float32).to("neuron:1"))
            target.copy_(device)
            same(target, host.float())


@st.composite
def strided_views(draw):
    """(sizes, steps): a view of a tensor of up to four dimensions, taken by slices and a permutation."""
    rank = draw(st.integers(0, 4))
    sizes = draw(st.lists(st.integers(0, 5), min_size=rank, max_size=rank))
    slices = [slice(draw(st.integers(0, size)), draw(st.integers(0, size)), draw(st.integers(1, 3))) for size in sizes]
    return sizes, tuple(slices), draw(st.permutations(range(rank)))


@settings(max_examples=150, deadline=None)
@given(strided_views(), st.sampled_from([torch.float32, torch.int64, torch.bool, torch.bfloat16]))
def test_any_strided_view(view, dtype):
    sizes, slices, order = view
    host = torch.arange(max(1, torch.Size(sizes).numel()))[: torch.Size(sizes).numel()].view(sizes).to(dtype)
    device = host.to("neuron")
    same(device[slices].permute(order), host[slices].permute(order))
    written = torch.zeros(sizes, dtype=dtype)
    on_device = written.to("neuron")
    written[slices].permute(order).copy_(host[slices].permute(order))
    on_device[slices].permute(order).copy_(device[slices].permute(order))
    same(on_device, written)
