// What an operator will produce, said in C++. Torch registers meta kernels written in Python over its own C++ ones;
// those of element-wise operators import torch._dynamo when they first run, which takes longer than a whole program.
#pragma once

#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <string>
#include <string_view>
#include <vector>

namespace torch_neuronx::dispatch {

// The operator's kernel for tensors without memory.
struct ShapeRule {
  const char* name;      // "aten::add"
  const char* overload;  // "Tensor"
  c10::KernelFunction kernel;
};

template <typename Function>
c10::KernelFunction box(Function* function) {
  return c10::KernelFunction::makeFromUnboxedRuntimeFunction<false>(function);
}

// Torch's own C++ kernels, of operators that torch calls structured.
std::vector<ShapeRule> structured_rules();
// Ours, of operators that torch does not define in that way.
std::vector<ShapeRule> composed_rules();
// Ours, of factories that fill a given tensor.
std::vector<ShapeRule> creation_rules();

// Replace the arguments on the stack, whose tensors are on the meta device, by the results. False, with the stack
// untouched, when the operator has no rule. Throws what the operator throws for its arguments.
bool run_shape_rule(const c10::OperatorHandle& op, const std::string& name, c10::Stack* stack);

// Names of the operators that have one, e.g. "aten::add.Tensor".
std::vector<std::string> shape_rule_names();

}  // namespace torch_neuronx::dispatch
