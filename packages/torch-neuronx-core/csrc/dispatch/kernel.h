// The boxed kernel of every operator.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include <cstdint>

#include "dispatch/operator.h"

namespace torch_neuronx::dispatch {

// Replace op's arguments on the stack by its results: natively where a program can, else by the CPU kernel.
void answer(Operator& op, c10::Stack* stack);

// Register it for the operators of the device. Once a process.
void register_dispatch();

// Copy between two tensors of one device and of equal sizes, casting and re-striding, with a program of aten::copy_.
// False when there is none: the call is then counted as a fallback (or refused, where fallbacks are off), and the
// caller copies through the host.
bool copy_on_device(const at::Tensor& source, const at::Tensor& destination);

// Lookups of exact signatures that found nothing.
uint64_t cache_misses();
// Ask the op compiler again about everything.
void forget_everything();

}  // namespace torch_neuronx::dispatch
