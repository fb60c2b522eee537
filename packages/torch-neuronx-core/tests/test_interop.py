"""The table of gaps in other libraries, and what each row makes possible."""

import pytest
import torch

from torch_neuronx import interop


def test_rows_say_why_and_name_their_test():
    for row in interop.ROWS:
        path, name = row.test.split("::")
        assert path == "tests/test_interop.py" and name in globals()
        assert row.why and row.link and row.symbol and row.versions[0]


def test_dlpack():
    x = torch.arange(6.0).view(2, 3).to("neuron")
    assert x.__dlpack_device__() == (torch.utils.dlpack.DLDeviceType.kDLExtDev, 0)
    y = torch.from_dlpack(x)
    assert y.device == x.device and y.data_ptr() == x.data_ptr() and y.stride() == x.stride()
    y.zero_()
    assert x.cpu().sum() == 0
    assert torch.ones(2).__dlpack_device__()[0] == torch.utils.dlpack.DLDeviceType.kDLCPU
    back = torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(x[1]))
    assert back.data_ptr() == x[1].data_ptr()


def test_safetensors(tmp_path):
    safetensors = pytest.importorskip("safetensors")
    from safetensors.torch import load_file, save_file

    path = tmp_path / "a.safetensors"
    host = {"a": torch.arange(6.0).view(2, 3), "b": torch.ones(2, dtype=torch.bfloat16)}
    save_file({name: tensor.to("neuron") for name, tensor in host.items()}, path, metadata={"k": "v"})
    for device in ("neuron", "neuron:0", torch.device("neuron:0"), 0):
        loaded = load_file(path, device=device)
        assert all(torch.equal(loaded[name].cpu(), tensor) for name, tensor in host.items())
        assert all(tensor.device == torch.device("neuron:0") for tensor in loaded.values())
    assert load_file(path)["a"].device.type == "cpu"
    with safetensors.safe_open(path, framework="pt", device="neuron") as file:
        assert sorted(file.keys()) == ["a", "b"] and file.metadata() == {"k": "v"}
        assert torch.equal(file.get_slice("a")[:, 1:].cpu(), host["a"][:, 1:])
        assert file.get_slice("a").get_shape() == [2, 3] and file.get_tensor("b").device.type == "neuron"
    with pytest.raises(Exception, match="no_such_device"):
        load_file(path, device="no_such_device")
    with pytest.raises(Exception, match="No such file"):
        load_file(tmp_path / "missing", device="neuron")


def test_rows_apply_when_the_library_is_imported(python):
    pytest.importorskip("safetensors")
    for order in ("import torch; import safetensors", "import safetensors.torch, torch"):
        done = python(f"{order}; import safetensors; print(safetensors.safe_open.__module__)")
        assert done.stdout.strip() == "torch_neuronx.interop.safetensors", done.stderr


def test_switched_off(python):
    code = """
import torch
try:
    torch.ones(1).to("neuron").__dlpack_device__()
except ValueError as error:
    print(error)
"""
    assert "Unknown device type neuron" in python(code, TORCH_NEURONX_INTEROP="0").stdout


def test_versions():
    import types

    row = interop.Row("m", "m", ("1.2", "1.10"), "", "", "", "", lambda module: None)
    expected = {"1.1.9": False, "1.2": True, "1.9.3": True, "1.10": False, "2.0rc1": False, "1.2.0+cu130": True}
    for version, wanted in expected.items():
        assert interop._wanted(row, types.SimpleNamespace(__version__=version)) is wanted


def test_a_row_that_fails_warns(monkeypatch):
    import types

    def fail(module):
        raise AttributeError("gone")

    module = types.ModuleType("changed_library")
    module.__version__ = "1.0"
    row = interop.Row("changed_library", "changed-library", ("1.0", ""), "changed_library.f", "why", "", "", fail)
    monkeypatch.setattr(interop, "ROWS", (row,))
    with pytest.warns(RuntimeWarning, match="could not adapt changed_library.f .why.: gone"):
        interop._apply(module)
