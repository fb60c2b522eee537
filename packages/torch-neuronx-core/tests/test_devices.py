"""Choosing and describing devices."""

import pytest
import torch

several = pytest.mark.skipif(torch.neuron.device_count() < 2, reason="needs two visible cores")


def test_accelerator():
    assert torch.accelerator.is_available()
    assert torch.accelerator.current_accelerator() == torch.device("neuron")
    assert torch.accelerator.device_count() == torch.neuron.device_count() >= 1
    assert torch._utils._get_available_device_type() == "neuron"
    supported = torch.accelerator.get_device_capability()["supported_dtypes"]
    assert {torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.float8_e4m3fn} <= set(supported)
    assert torch.quint8 not in supported


def test_current_device_is_an_index():
    assert torch.neuron.current_device() == 0 and type(torch.neuron.current_device()) is int
    torch.neuron.set_device("neuron:0")
    torch.neuron.set_device(torch.device("neuron", 0))
    torch.neuron.set_device(-1)
    assert torch.accelerator.current_device_index() == 0


@several
def test_device_context():
    with torch.neuron.device(1):
        assert torch.neuron.current_device() == 1
        assert torch.empty(1, device="neuron").device == torch.device("neuron:1")
        with torch.neuron.device(None), torch.neuron.device("neuron:0"), torch.neuron.device(-1):
            assert torch.neuron.current_device() == 0
    assert torch.neuron.current_device() == 0
    with torch.neuron.device_of(torch.empty(1, device="neuron:1")):
        assert torch.neuron.current_device() == 1
    with torch.neuron.device_of(torch.empty(1)):
        assert torch.neuron.current_device() == 0
    with torch.device("neuron:1"):
        assert torch.empty(1).device == torch.device("neuron:1")


@several
def test_device_is_of_a_thread():
    import threading

    seen = []
    torch.neuron.set_device(1)
    thread = threading.Thread(target=lambda: seen.append(torch.neuron.current_device()))
    thread.start()
    thread.join()
    assert seen == [0] and torch.neuron.current_device() == 1


@pytest.mark.parametrize(
    "use",
    [
        lambda bad: torch.empty(1, device=bad),
        lambda bad: torch.zeros(1, device=bad),
        lambda bad: torch.empty_strided((2,), (1,), device=bad),
        lambda bad: torch.ones(1).to(bad),
        lambda bad: torch.neuron.set_device(bad),
        lambda bad: torch.accelerator.set_device_index(torch.device(bad).index),
        lambda bad: torch.neuron.get_rng_state(bad),
        lambda bad: torch.Generator(bad),
        lambda bad: torch.neuron.synchronize(bad),
        lambda bad: torch.neuron.memory_stats(bad),
        lambda bad: torch.neuron.mem_get_info(bad),
        lambda bad: torch.neuron.Stream(bad),
        lambda bad: torch.Stream(bad),
        lambda bad: torch.neuron.device(bad).__enter__(),
    ],
)
def test_index_out_of_range(use):
    with pytest.raises(RuntimeError, match="99"):
        use("neuron:99")
    assert torch.neuron.current_device() == 0
    assert torch.empty(1, device="neuron").device == torch.device("neuron:0")


@pytest.mark.parametrize("bad", ["cuda:0", "cpu", torch.device("meta")])
def test_other_devices_are_refused(bad):
    with pytest.raises(ValueError, match="Expected a neuron device"):
        torch.neuron.set_device(bad)
    with pytest.raises(ValueError, match="Expected a neuron device"):
        torch.neuron.current_stream(bad)


def test_not_a_device():
    with pytest.raises(ValueError, match="Expected a torch.device, a string, an index or None"):
        torch.neuron.set_device(1.5)


def test_properties():
    properties = torch.neuron.get_device_properties()
    assert properties.name in ("trn1", "trn2", "trn3") and properties.total_memory > 0
    assert properties == torch.neuron.get_device_properties("neuron:0")
    assert "neuron" in torch.neuron.get_device_name()
    assert torch.neuron.get_device_capability() == (properties.generation, 0)
    assert torch.neuron.is_bf16_supported()
    assert torch.neuron.get_amp_supported_dtype() == [torch.bfloat16, torch.float16]


@pytest.mark.parametrize("override, name", [("trn1", "trn1"), ("gen3", "trn2"), ("trn3", "trn3")])
def test_platform_override(python, override, name):
    code = """
import torch, torch_neuronx.utils
print(torch.neuron.get_device_properties().name, torch_neuronx.utils.get_platform_target())
"""
    done = python(code, NEURON_PLATFORM_TARGET_OVERRIDE=override)
    assert done.stdout.split() == [name, name], done.stderr


def test_unknown_platform(python):
    done = python("import torch; torch.neuron.get_device_name()", NEURON_PLATFORM_TARGET_OVERRIDE="trn9")
    assert "NEURON_PLATFORM_TARGET_OVERRIDE='trn9' names no target: use one of" in done.stderr


def test_asking_does_not_start_the_runtime(python):
    code = """
import torch
assert torch.neuron.is_available() and torch.neuron.device_count() and not torch.neuron._is_in_bad_fork()
torch.manual_seed(1); torch.neuron.get_rng_state(); torch.Generator("neuron").manual_seed(2)
torch.neuron.current_stream(); torch.neuron.memory_allocated(); torch.neuron.empty_cache()
print(torch.neuron.is_initialized(), torch.neuron._initialized)
torch.neuron.init()
print(torch.neuron.is_initialized(), torch.neuron._initialized)
"""
    done = python(code)
    assert done.stdout.split() == ["False", "False", "True", "True"], done.stderr


def test_visible_cores(python):
    done = python("import torch; print(torch.neuron.device_count())", NEURON_RT_NUM_CORES="1")
    assert done.stdout.strip() == "1", done.stderr
