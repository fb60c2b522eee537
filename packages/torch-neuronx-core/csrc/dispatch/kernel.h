// The boxed kernel of every operator.
#pragma once

namespace torch_neuronx::dispatch {

// Register it for the operators of the device. Once a process.
void register_dispatch();

}  // namespace torch_neuronx::dispatch
