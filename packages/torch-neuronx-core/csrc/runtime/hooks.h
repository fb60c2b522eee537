#pragma once

namespace torch_neuronx {

// Makes neuron torch's accelerator. A registered hooks object always wins over CUDA and the like, so call this only
// when there is a device.
void register_hooks();

}  // namespace torch_neuronx
