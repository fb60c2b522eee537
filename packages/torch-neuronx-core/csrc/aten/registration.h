// Operators that this directory registers for the device. Everything else is registered by csrc/dispatch.
#pragma once

namespace torch_neuronx {

// Kernels of the PrivateUse1 key. Only called when there is a device.
void register_tensor_operators();
void register_copy_operators();
void register_recurrent_operators();
void register_selection_operators();
void register_convolution_operators();

// Refusals of sparse, quantized and nested tensors, by their keys.
void register_layouts();

// Kernels and fall-throughs of the AutocastPrivateUse1 key.
void register_autocast();

}  // namespace torch_neuronx
