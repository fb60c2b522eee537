#include "dispatch/operator.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <array>
#include <unordered_set>

#include "runtime/device.h"

namespace torch_neuronx::dispatch {

namespace {

// Registered although they have no CPU kernel, or have a composite kernel beside it. Each must keep its gradient.
constexpr std::array kListed = {
    "aten::convolution",           // one operator instead of a choice between vendor libraries; backward: the next one
    "aten::convolution_backward",  // differentiable itself, by its own formula
    "aten::silu_backward",         // called only where no graph is recorded; silu's formula is used otherwise
    "aten::mish_backward",         // the same
};

// Not registered although they have a CPU kernel.
constexpr std::array kExcluded = {
    "aten::_fused_sdp_choice",  // would choose a kernel of the CPU
};

// Arguments that the schema does not call written, but that are: running statistics.
struct HiddenWrite {
  const char* op;
  ArgumentSet arguments;
};
constexpr std::array kHiddenWrites = {
    HiddenWrite{"aten::native_batch_norm", 0b11000},
    HiddenWrite{"aten::native_batch_norm.out", 0b11000},
    HiddenWrite{"aten::batch_norm_update_stats", 0b110},
    HiddenWrite{"aten::batch_norm_update_stats.out", 0b110},
};

// Lists of index tensors may live on the CPU: aten::index and its relatives by argument name.
constexpr std::array kIndexing = {"aten::index.Tensor", "aten::index.Tensor_out", "aten::_index_put_impl_",
                                  "aten::_unsafe_index.Tensor", "aten::_unsafe_index_put"};

template <size_t N>
bool listed(const std::array<const char*, N>& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

bool is_tensor_result(const c10::TypePtr& type) {
  const c10::TypePtr element =
      type->kind() == c10::TypeKind::ListType ? type->castRaw<c10::ListType>()->getElementType() : type;
  return element->kind() == c10::TypeKind::TensorType ||
         (element->kind() == c10::TypeKind::OptionalType &&
          element->castRaw<c10::OptionalType>()->getElementType()->kind() == c10::TypeKind::TensorType);
}

bool is_generator(const c10::TypePtr& type) { return type->str().find("Generator") != std::string::npos; }

bool wanted(const c10::OperatorHandle& op, const std::string& name) {
  using c10::DispatchKey;
  if (op.hasKernelForDispatchKey(DispatchKey::PrivateUse1) || listed(kExcluded, name)) {
    return false;
  }
  if (listed(kListed, name)) {
    return true;
  }
  return op.hasKernelForDispatchKey(DispatchKey::CPU) &&
         !op.hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd);
}

class Kernel final : public c10::OperatorKernel {
 public:
  Kernel(Operator& op, BoxedKernel kernel) : op_(op), kernel_(kernel) {}
  void operator()(const c10::OperatorHandle& /*op*/, c10::DispatchKeySet /*keys*/, c10::Stack* stack) {
    kernel_(op_, stack);
  }

 private:
  Operator& op_;
  BoxedKernel kernel_;
};

}  // namespace

Operator::Operator(const c10::OperatorHandle& handle, uint32_t number)
    : handle(handle),
      name(c10::toString(handle.operator_name())),
      number(number),
      arguments(static_cast<uint32_t>(handle.schema().arguments().size())),
      returns(static_cast<uint32_t>(handle.schema().returns().size())) {
  TORCH_INTERNAL_ASSERT(arguments <= 64, name, " has ", arguments, " arguments");
  for (uint32_t i = 0; i < arguments; ++i) {
    const c10::Argument& argument = schema().arguments()[i];
    const ArgumentSet bit = ArgumentSet{1} << i;
    if (argument.alias_info() != nullptr && argument.alias_info()->isWrite()) {
      written |= bit;
      outs |= argument.is_out() ? bit : 0;
    }
    if (is_generator(argument.type())) {
      generator = static_cast<int>(i);
    }
    if (argument.name() == "indices" && listed(kIndexing, name)) {
      host_allowed |= bit;
    }
  }
  unreturned = written;
  for (const c10::Argument& result : schema().returns()) {
    int source = -1;
    if (result.alias_info() != nullptr && result.alias_info()->isWrite()) {
      for (uint32_t i = 0; i < arguments; ++i) {
        const c10::AliasInfo* alias = schema().arguments()[i].alias_info();
        if (alias != nullptr && alias->beforeSets() == result.alias_info()->beforeSets()) {
          source = static_cast<int>(i);
          unreturned &= ~(ArgumentSet{1} << i);
        }
      }
    }
    return_source.push_back(source);
    tensors_only = tensors_only && is_tensor_result(result.type());
  }
  for (const HiddenWrite& hidden : kHiddenWrites) {
    if (name == hidden.op) {
      written |= hidden.arguments;
      unreturned |= hidden.arguments;
    }
  }
  random = generator >= 0 || handle.hasTag(at::Tag::nondeterministic_seeded);
}

std::deque<Operator>& operators() {
  static auto* all = new std::deque<Operator>();
  return *all;
}

Operator& add_operator(const c10::OperatorHandle& handle) {
  const auto number = static_cast<uint32_t>(operators().size());
  TORCH_INTERNAL_ASSERT(number < kMaxOperators, "more operators than counters");
  return operators().emplace_back(handle, number);
}

void register_operators(BoxedKernel boxed, MakeTypedKernel typed) {
  // Kept for the life of the process: taking kernels out of a dispatcher that other threads use is not safe.
  static auto* handles = new std::vector<c10::RegistrationHandleRAII>();
  TORCH_CHECK(handles->empty(), "The operators of the neuron device are registered already");
  c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    if (!name.name.starts_with("aten::")) {
      continue;
    }
    const std::optional<c10::OperatorHandle> handle = dispatcher.findSchema(name);
    if (!handle || !wanted(*handle, c10::toString(name))) {
      continue;
    }
    Operator& op = add_operator(*handle);
    std::optional<TypedKernel> kernel = typed(op);
    if (!kernel) {
      handles->push_back(
          dispatcher.registerImpl(name, c10::DispatchKey::PrivateUse1,
                                  c10::KernelFunction::makeFromBoxedFunctor(std::make_unique<Kernel>(op, boxed)),
                                  std::nullopt, nullptr, "neuron"));
    } else {
      handles->push_back(dispatcher.registerImpl(name, c10::DispatchKey::PrivateUse1, std::move(kernel->function),
                                                 kernel->signature, nullptr, "neuron"));
    }
  }
}

}  // namespace torch_neuronx::dispatch
