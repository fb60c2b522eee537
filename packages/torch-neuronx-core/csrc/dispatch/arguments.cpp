#include "dispatch/arguments.h"

#include <ATen/core/op_registration/adaption.h>

#include <sstream>

namespace torch_neuronx::dispatch {

namespace {

void print(std::ostream& out, const c10::IValue& value) {
  if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    if (!tensor.defined()) {
      out << "None";
    } else {
      out << c10::getDtypeNames(tensor.scalar_type()).first << tensor.sizes();
      if (tensor.is_cpu()) {
        out << " on cpu";
      }
    }
  } else if (value.isList()) {
    out << '[';
    const char* separator = "";
    for (const c10::IValue& entry : value.toListRef()) {
      out << separator;
      print(out, entry);
      separator = ", ";
    }
    out << ']';
  } else if (value.isString()) {
    out << '\'' << value.toStringRef() << '\'';
  } else if (value.isGenerator()) {
    out << "a generator";
  } else if (value.isBool()) {
    out << (value.toBool() ? "True" : "False");
  } else if (value.isInt()) {
    out << value.toInt();
  } else if (value.isDouble()) {
    out << value.toDouble();
  } else if (value.isNone()) {
    out << "None";
  } else if (value.isDevice()) {
    out << value.toDevice();
  } else {
    out << "a " << value.tagKind();
  }
}

}  // namespace

c10::Device common_device(const Operator& op, c10::ArrayRef<c10::IValue> arguments) {
  std::optional<c10::Device> device;
  for (const c10::IValue& argument : arguments) {
    for_each_tensor(argument, [&](const at::Tensor& tensor) {
      if (!device && tensor.device().type() == kNeuron) {
        device = tensor.device();
      }
    });
  }
  if (!device) {
    if (op.generator >= 0 && !arguments[static_cast<size_t>(op.generator)].isNone()) {
      // Only the generator brought the call here. Factories have no tensor.
      for (const c10::IValue& argument : arguments) {
        for_each_tensor(argument, [&](const at::Tensor& tensor) {
          TORCH_CHECK(false, "Expected a '", tensor.device().type(), "' device type for generator but found 'neuron'");
        });
      }
    }
    for (const c10::IValue& argument : arguments) {
      if (argument.isDevice() && argument.toDevice().type() == kNeuron) {
        return c10::Device(kNeuron, resolve(argument.toDevice()));
      }
    }
    return c10::Device(kNeuron, current_device());
  }
  if (op.host_allowed != 0 && arguments[0].isTensor()) {
    TORCH_CHECK(!arguments[0].toTensor().is_cpu(),
                "indices should be either on cpu or on the same device as the indexed tensor (cpu)");
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    for_each_tensor(arguments[i], [&](const at::Tensor& tensor) {
      const bool by_value = is_host_scalar(tensor) && !contains(op.written, i);
      if (tensor.device() != *device && !by_value && !(tensor.is_cpu() && contains(op.host_allowed, i))) {
        c10::impl::common_device_check_failure(*device, tensor, op.name.c_str(), op.argument_name(i).c_str());
      }
    });
  }
  return *device;
}

std::string describe(const Operator& op, c10::ArrayRef<c10::IValue> arguments) {
  std::ostringstream text;
  text << op.name << '(';
  for (size_t i = 0; i < arguments.size(); ++i) {
    text << (i == 0 ? "" : ", ") << op.argument_name(i) << ": ";
    print(text, arguments[i]);
  }
  text << ')';
  return text.str();
}

}  // namespace torch_neuronx::dispatch
