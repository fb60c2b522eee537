"""Process groups of this device: see :mod:`torch_neuronx.distributed.backend`."""
