// Running an operator with ATen's CPU kernel on the device's tensors. Every such run is counted.
#pragma once

#include <ATen/core/stack.h>

#include <string>

#include "dispatch/operator.h"

namespace torch_neuronx::dispatch {

// Whether operators may run on the CPU: NEURON_FALLBACK_ENABLED is not 0.
bool fallback_enabled();
// Whether only operators without a lowering may, and not those whose compilation or run failed:
// TORCH_NEURONX_FALLBACK_ONLY_FOR_UNIMPLEMENTED_OPS is 1.
bool fallback_for_unimplemented_only();

// Count and announce that a call of op is computed by the host. Throws where the fallback is off.
void note_fallback(Operator& op, c10::ArrayRef<c10::IValue> arguments, c10::Device device, const std::string& why);

// Replace the arguments on the stack by the results of op's CPU kernel. Results are on the device; an argument that is
// written and returned stays the same tensor, and a view of an argument shares its memory. `why` ends the warning,
// given once an operator, and the error when the fallback is off: "no lowering is registered for it". Throws what the
// CPU kernel throws.
void run_on_cpu(Operator& op, c10::Stack* stack, const std::string& why);

}  // namespace torch_neuronx::dispatch
