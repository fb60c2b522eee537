"""Loading the device: import orders, missing parts, wrong versions."""

import shutil
from pathlib import Path

import pytest
import torch

import torch_neuronx


@pytest.mark.parametrize("first", ["import torch", "import torch_neuronx, torch", "import torch, torch_neuronx"])
def test_import_orders(python, first):
    done = python(f"{first}; print(torch.empty(2, device='neuron').device)")
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "neuron:0", "")


def test_without_autoload(python):
    done = python(
        "import torch; assert not hasattr(torch, 'neuron'); import torch_neuronx; print(torch.neuron.is_available())",
        TORCH_DEVICE_BACKEND_AUTOLOAD="0",
    )
    assert (done.returncode, done.stdout.strip()) == (0, "True"), done.stderr


def test_autoload_is_idempotent():
    from torch_neuronx_autoload import autoload

    autoload()
    assert torch.neuron is torch_neuronx


def test_module_names():
    assert torch.neuron is torch_neuronx is torch.get_device_module("neuron")
    assert torch_neuronx.__version__.startswith("2.14.")
    assert torch._C._get_privateuse1_backend_name() == "neuron"
    assert torch.empty(1, device="neuron").is_neuron and not torch.empty(1).is_neuron
    assert torch.empty(1).neuron().device == torch.device("neuron:0")
    assert torch.nn.Linear(1, 1).neuron().weight.device == torch.device("neuron:0")


def test_raw_name_stays_an_alias():
    assert torch.empty(3, device="privateuseone").device == torch.device("neuron:0")
    assert torch.empty(2).to(0).device == torch.device("neuron:0")


def test_nothing_heavy_is_imported(python):
    code = "import sys, torch; print(*sorted(name for name in sys.modules))"
    without = set(python(code, TORCH_DEVICE_BACKEND_AUTOLOAD="0").stdout.split())
    added = set(python(code).stdout.split()) - without
    assert "torch_neuronx" in added
    heavy = ("torch._dynamo", "torch._inductor", "torch.distributed", "torch.fx", "numpy", "torch_neuronx_compile")
    assert [name for name in added if name.startswith(heavy)] == []


NO_DEVICE = [{"NEURON_RT_NUM_CORES": "0"}]


@pytest.mark.parametrize("environment", NO_DEVICE)
def test_no_device(python, environment):
    done = python(
        """
import torch, torch_neuronx
print(torch.neuron.is_available(), torch.neuron.device_count(), torch.neuron.is_initialized())
print(torch.accelerator.current_accelerator(check_available=True))
torch.manual_seed(3); torch.neuron.manual_seed_all(3); torch.neuron.empty_cache()
print(torch.neuron.memory_allocated(), torch.neuron.get_rng_state_all(), torch.ones(2).sum().item())
x = torch.ones(2, requires_grad=True); (x * x).sum().backward()
""",
        **environment,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "False 0 False"
    assert "neuron" not in done.stdout.splitlines()[1]
    assert done.stdout.splitlines()[2] == "0 [] 2.0"


@pytest.mark.parametrize("environment", NO_DEVICE)
@pytest.mark.parametrize(
    "use",
    [
        "torch.zeros(1, device='neuron')",
        "torch.ones(1).to('neuron')",
        "torch.neuron.init()",
        "torch.neuron.set_device(0)",
        "torch.neuron.get_rng_state()",
        "torch.neuron.memory_stats()",
        "torch.nn.Linear(1, 1).to('neuron')",
    ],
)
def test_no_device_says_so(python, environment, use):
    done = python(f"import torch; {use}", **environment)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("RuntimeError: ") and "neuron" in last and ("0 cores" in last or "0 neuron devices" in last)


def copy_of_package(tmp_path: Path) -> Path:
    """A copy of the installed package, found before it on PYTHONPATH, with the pieces that an editable install keeps apart."""
    source, copy = Path(torch_neuronx.__file__).parent, tmp_path / "torch_neuronx"
    shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for module in (torch_neuronx._C, torch_neuronx._build):
        shutil.copy(module.__file__, copy / Path(module.__file__).name)
    return copy


# An editable install finds the package before any path does.
NOT_EDITABLE = """
import sys
sys.meta_path[:] = [finder for finder in sys.meta_path if "ScikitBuild" not in type(finder).__name__]
"""

REPORT = """
import warnings
warnings.simplefilter("ignore")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import torch
print(*(str(w.message) for w in caught if "neuron" in str(w.message)), sep="\\n")
assert torch.ones(2).sum().item() == 2
"""


@pytest.mark.parametrize("damage", ["wrong torch", "broken library", "no library"])
def test_broken_installation_leaves_torch_usable(python, tmp_path, damage):
    copy = copy_of_package(tmp_path)
    library = next(copy.glob("_C*.so"))
    if damage == "wrong torch":
        build = copy / "_build.py"
        build.write_text(build.read_text().replace('TORCH_MINOR = "2.14"', 'TORCH_MINOR = "2.9"'))
    elif damage == "broken library":
        library.write_bytes(bytes(4096))
    else:
        library.unlink()
    done = python(NOT_EDITABLE + REPORT, PYTHONPATH=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert 'The device "neuron" is not available' in done.stdout
    named = {"wrong torch": (torch.__version__, "2.9"), "broken library": ("_C",), "no library": ("_C",)}[damage]
    assert all(name in done.stdout for name in named), done.stdout
    explicit = python(NOT_EDITABLE + "import torch_neuronx", PYTHONPATH=str(tmp_path))
    assert explicit.returncode == 1 and "ImportError" in explicit.stderr


@pytest.mark.parametrize(
    "module, package",
    [
        ("neuron_dynamo_backend", "torch-neuronx-compile"),
        ("distributed.backend", "torch-neuronx-dist"),
        ("profiling", "torch-neuronx-profiling"),
    ],
)
def test_sibling_modules_name_their_package(python, module, package):
    sibling = package.replace("-", "_")
    code = f"""
import sys
sys.modules["{sibling}"] = None  # as if it were not installed
import torch_neuronx
try:
    import torch_neuronx.{module}
except ImportError as error:
    print(error)
"""
    done = python(code)
    assert f"torch_neuronx.{module} needs the package {package}" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["nki", "nki_op", "wrap_nki"])
def test_kernel_names_name_their_package(python, name):
    code = f"""
import sys
sys.modules["nki"] = None
import torch_neuronx
try:
    torch_neuronx.{name}
except ImportError as error:
    print(error)
"""
    assert f"torch_neuronx.{name} needs the package nki" in python(code).stdout


def test_unknown_attribute():
    with pytest.raises(AttributeError, match="no attribute 'no_such_thing'"):
        torch_neuronx.no_such_thing  # noqa: B018
