// Running a call by its entry.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include <optional>
#include <string>

#include "dispatch/call.h"
#include "dispatch/entry.h"

namespace torch_neuronx::dispatch {

using Created = c10::SmallVector<at::Tensor, 2>;

// Allocate the new tensors, run the program and count the call as native. `generator` is the operator's argument, if it
// has one. False, with a reason, when the CPU kernel must stand in; the arguments are untouched then. Throws the
// runtime's explanation when the program failed after it may have written an argument.
bool launch(const Operator& op, const Entry& entry, Call& call, const std::optional<at::Generator>& generator,
            Created& created, std::string& reason);

// Replace the arguments on the stack by the results.
void return_results(const Operator& op, const Entry& entry, Created& created, c10::Stack* stack);

}  // namespace torch_neuronx::dispatch
