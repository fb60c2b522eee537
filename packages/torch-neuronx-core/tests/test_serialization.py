"""torch.save, torch.load, pickle."""

import io
import pickle

import pytest
import torch


def round_trip(value, **options):
    buffer = io.BytesIO()
    torch.save(value, buffer)
    buffer.seek(0)
    return torch.load(buffer, **options)


@pytest.mark.parametrize("weights_only", [True, False])
def test_tensors_return_to_their_device(weights_only):
    x = torch.arange(6.0).view(2, 3).to("neuron").t()
    back = round_trip(x, weights_only=weights_only)
    assert back.device == torch.device("neuron:0") and back.stride() == x.stride()
    assert torch.equal(back.cpu(), x.cpu())


@pytest.mark.parametrize(
    "dtype",
    [torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.complex64, torch.float8_e4m3fn, torch.uint16],
)
def test_dtypes(dtype):
    x = torch.tensor([0, 1, 3]).to(dtype).to("neuron")
    back = round_trip(x)
    assert back.dtype == dtype and torch.equal(back.cpu().view(torch.uint8), x.cpu().view(torch.uint8))


def test_sharing_survives():
    base = torch.arange(6.0).to("neuron")
    back = round_trip({"base": base, "view": base[1:4]})
    assert back["view"].cpu().tolist() == [1, 2, 3]
    back["view"].zero_()
    assert back["base"].cpu().tolist() == [0, 0, 0, 0, 4, 5]


def test_map_location():
    x = torch.arange(3.0).to("neuron")
    assert round_trip(x, map_location="cpu").device.type == "cpu"
    assert round_trip(torch.ones(2), map_location="neuron").device == torch.device("neuron:0")
    assert round_trip(torch.ones(2), map_location=torch.device("neuron:0")).device == torch.device("neuron:0")
    assert round_trip(x, map_location={"neuron:0": "cpu"}).device.type == "cpu"
    assert round_trip(x, map_location=lambda storage, location: storage).device.type == "cpu"
    if torch.neuron.device_count() > 1:
        assert round_trip(x, map_location="neuron:1").device == torch.device("neuron:1")


def test_map_location_out_of_range():
    with pytest.raises(RuntimeError, match="99"):
        round_trip(torch.ones(2), map_location="neuron:99")


def test_parameters_and_conjugates():
    p = torch.nn.Parameter(torch.ones(2).to("neuron"))
    back = round_trip(p, weights_only=False)
    assert isinstance(back, torch.nn.Parameter) and back.requires_grad and back.device == p.device
    z = torch.tensor([1 + 2j]).to("neuron").conj()
    assert round_trip(z).cpu().tolist() == [1 - 2j]


def test_module_and_optimizer():
    model = torch.nn.Linear(2, 2).to("neuron")
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(1, 2).to("neuron")).sum().backward()
    optimizer.step()
    other = torch.nn.Linear(2, 2).to("neuron")
    other_optimizer = torch.optim.AdamW(other.parameters())
    other.load_state_dict(round_trip(model.state_dict()))
    other_optimizer.load_state_dict(round_trip(optimizer.state_dict()))
    assert torch.equal(other.weight.cpu(), model.weight.cpu())
    state = other_optimizer.state[other.weight]
    assert state["exp_avg"].device == torch.device("neuron:0")
    assert torch.equal(state["exp_avg"].cpu(), optimizer.state[model.weight]["exp_avg"].cpu())
    on_host = torch.nn.Linear(2, 2)
    on_host.load_state_dict(model.state_dict())
    assert on_host.weight.device.type == "cpu" and torch.equal(on_host.weight, model.weight.cpu())


def test_pickle():
    x = torch.arange(4.0).to("neuron")
    back = pickle.loads(pickle.dumps(x))
    assert back.device == x.device and torch.equal(back.cpu(), x.cpu())
    device = pickle.loads(pickle.dumps(torch.device("neuron:0")))
    assert device == torch.device("neuron:0")


def test_saved_on_the_device_loaded_without_one(python, tmp_path):
    path = tmp_path / "x.pt"
    torch.save(torch.arange(3.0).to("neuron"), path)
    code = f"import torch; print(torch.load({str(path)!r}, map_location='cpu').tolist())"
    assert python(code, NEURON_RT_NUM_CORES="0").stdout.strip() == "[0.0, 1.0, 2.0]"
    refused = python(f"import torch; torch.load({str(path)!r})", NEURON_RT_NUM_CORES="0")
    assert refused.returncode == 1 and "neuron" in refused.stderr.strip().splitlines()[-1].lower()
