"""DLPack's name for this device: an extension device."""

import functools


def apply(torch) -> None:
    """Let ``Tensor.__dlpack_device__`` of this device's tensors return (kDLExtDev, index), as for a device not renamed."""
    original = torch.Tensor.__dlpack_device__

    @functools.wraps(original)
    def __dlpack_device__(self):
        if self.device.type != "neuron" or type(self) is not torch.Tensor and type(self) is not torch.nn.Parameter:
            return original(self)
        from torch.utils.dlpack import DLDeviceType

        return DLDeviceType.kDLExtDev, self.device.index

    torch.Tensor.__dlpack_device__ = __dlpack_device__
