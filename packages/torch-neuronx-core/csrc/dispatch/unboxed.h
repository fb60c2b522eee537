// Kernels that torch calls with C++ arguments, for operators so small that putting arguments on a stack shows.
#pragma once

#include <optional>

#include "dispatch/operator.h"

namespace torch_neuronx::dispatch {

// A kernel for `op`, if it is one of the listed operators: the same cache and the same launch, without the stack.
// Whatever is not a plain hit goes to answer(). Boxed callers may use it too.
std::optional<TypedKernel> make_unboxed_kernel(Operator& op);

}  // namespace torch_neuronx::dispatch
