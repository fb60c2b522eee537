// The tensors among an operator's boxed arguments.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <string>

#include "dispatch/operator.h"
#include "runtime/device.h"

namespace torch_neuronx::dispatch {

// Call visit(tensor) for each defined tensor of an argument: itself, or the entries of a list. The tensor is borrowed.
template <typename Visit>
void for_each_tensor(const c10::IValue& argument, Visit&& visit) {
  if (argument.isTensor()) {
    if (argument.toTensor().defined()) {
      visit(argument.toTensor());
    }
  } else if (argument.isList()) {
    for (const c10::IValue& entry : argument.toListRef()) {
      if (entry.isTensor() && entry.toTensor().defined()) {
        visit(entry.toTensor());
      }
    }
  }
}

// Replace each defined tensor of an argument by change(tensor). Lists are replaced, never changed in place.
template <typename Change>
void replace_tensors(c10::IValue& argument, Change&& change) {
  if (argument.isTensor()) {
    if (argument.toTensor().defined()) {
      argument = change(argument.toTensor());
    }
  } else if (argument.isList() && (argument.isTensorList() || argument.isOptionalTensorList())) {
    c10::impl::GenericList list = argument.toList().copy();
    for (size_t i = 0; i < list.size(); ++i) {
      c10::IValue entry = list.get(i);
      if (entry.isTensor() && entry.toTensor().defined()) {
        list.set(i, change(entry.toTensor()));
      }
    }
    argument = std::move(list);
  }
}

// A CPU tensor that an operator on the device takes by value, as on other accelerators.
inline bool is_host_scalar(const at::Tensor& tensor) { return tensor.is_cpu() && tensor.dim() == 0; }

// The one device of a call: that of its neuron tensors, else that of a Device argument, else the current one. Throws
// torch's error when tensors lie on different devices; CPU tensors may take part as scalars that are read, and as index
// lists.
c10::Device common_device(const Operator& op, c10::ArrayRef<c10::IValue> arguments);

// "aten::add.Tensor(self: float32[2, 3], other: float32[3], alpha: 1)"
std::string describe(const Operator& op, c10::ArrayRef<c10::IValue> arguments);

}  // namespace torch_neuronx::dispatch
