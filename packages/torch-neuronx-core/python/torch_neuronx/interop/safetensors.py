"""Reading safetensors files straight onto this device: the file is mapped on the host and its tensors are copied."""


def apply(safetensors) -> None:
    """Let ``safetensors.safe_open(..., device="neuron")``, and ``load_file`` which calls it, return tensors on the device."""
    original = safetensors.safe_open

    class safe_open:
        __doc__ = original.__doc__

        def __new__(cls, filename, framework, device="cpu", **options):
            wanted = _neuron_device(device) if framework in ("pt", "torch", "pytorch") else None
            if wanted is None:
                return original(filename, framework, device, **options)
            return _File(original(filename, framework, "cpu", **options), wanted)

    safetensors.safe_open = safe_open


def _neuron_device(device):
    """The torch.device when ``device`` names this one (a string, a torch.device, or an index: the accelerator's), else None."""
    import torch

    try:
        device = torch.device(device)
    except (RuntimeError, TypeError):
        return None  # safetensors says what is wrong with it
    return device if device.type == "neuron" else None


class _File:
    """An open file whose tensors arrive on a device."""

    def __init__(self, file, device):
        self._file = file
        self._device = device

    def __enter__(self):
        self._file.__enter__()
        return self

    def __exit__(self, *error):
        return self._file.__exit__(*error)

    def __getattr__(self, name):  # keys, offset_keys, metadata
        return getattr(self._file, name)

    def get_tensor(self, name):
        return self._file.get_tensor(name).to(self._device)

    def get_tensors(self):
        return {name: tensor.to(self._device) for name, tensor in self._file.get_tensors().items()}

    def get_slice(self, name):
        return _Slice(self._file.get_slice(name), self._device)


class _Slice:
    """A tensor of a file, of which an index reads a part."""

    def __init__(self, slice, device):
        self._slice = slice
        self._device = device

    def __getitem__(self, index):
        return self._slice[index].to(self._device)

    def __getattr__(self, name):  # get_shape, get_dtype
        return getattr(self._slice, name)
