"""What the device computes less exactly than a dtype promises."""

import warnings

from torch_neuronx.tracking import LIBRARIES


class NeuronPrecisionWarning(UserWarning):
    """Results have less accuracy than their dtype. Given once a process."""


_warned = False


def warn_float64() -> None:
    """Say, the first time that it is called, that float64 is stored as such and computed as float32."""
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            "neuron devices store float64 in 8 bytes and compute it as float32, so results have the accuracy of float32. Use "
            "float32 (model.float()), or keep what needs more on the CPU",
            NeuronPrecisionWarning,
            stacklevel=2,
            skip_file_prefixes=LIBRARIES,
        )
