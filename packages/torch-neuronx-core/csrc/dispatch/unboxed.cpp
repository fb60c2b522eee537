#include "dispatch/unboxed.h"

#include <array>
#include <string_view>

#include "dispatch/cache.h"
#include "dispatch/call.h"
#include "dispatch/kernel.h"
#include "dispatch/launch.h"

namespace torch_neuronx::dispatch {

namespace {

// Operators of which training and inference make millions of calls on small tensors, by signature.
constexpr std::array kTensor = {"aten::relu",    "aten::neg",  "aten::exp",  "aten::tanh",
                                "aten::sigmoid", "aten::silu", "aten::sqrt", "aten::rsqrt"};
constexpr std::array kTwoTensors = {"aten::mul.Tensor", "aten::div.Tensor", "aten::mm", "aten::bmm"};
constexpr std::array kTwoTensorsAndScalar = {"aten::add.Tensor", "aten::sub.Tensor"};

template <typename... Arguments>
class Kernel final : public c10::OperatorKernel {
 public:
  explicit Kernel(Operator& op) : op_(op) {}

  at::Tensor operator()(Arguments... arguments) {
    if (op_.lowering.load(std::memory_order_acquire) == Operator::Lowering::kNative) [[likely]] {
      Call call(op_, Call::Typed(), arguments...);
      if (call.kind == Call::Kind::kLaunch) [[likely]] {
        const Entry* entry = find_entry(call.key, call.key.hash());
        Created created;
        std::string reason;
        if (entry != nullptr && returns_one_tensor(*entry) && launch(op_, *entry, call, std::nullopt, created, reason))
            [[likely]] {
          return std::move(created.front());
        }
      }
    }
    c10::Stack stack{c10::IValue(arguments)...};
    answer(op_, &stack);
    return std::move(stack.front()).toTensor();
  }

 private:
  static bool returns_one_tensor(const Entry& entry) {
    return entry.results.size() == 1 && entry.results.front().kind == Result::Kind::kCreated && !entry.staged &&
           entry.reason.empty();
  }

  Operator& op_;
};

template <typename... Arguments>
TypedKernel make(Operator& op) {
  using Functor = Kernel<Arguments...>;
  return {c10::KernelFunction::makeFromUnboxedFunctor<false, Functor>(std::make_unique<Functor>(op)),
          c10::impl::CppSignature::make<at::Tensor(Arguments...)>()};
}

template <size_t N>
bool has(const std::array<const char*, N>& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

}  // namespace

std::optional<TypedKernel> make_unboxed_kernel(Operator& op) {
  if (has(kTensor, op.name)) {
    return make<const at::Tensor&>(op);
  }
  if (has(kTwoTensors, op.name)) {
    return make<const at::Tensor&, const at::Tensor&>(op);
  }
  if (has(kTwoTensorsAndScalar, op.name)) {
    return make<const at::Tensor&, const at::Tensor&, const at::Scalar&>(op);
  }
  return std::nullopt;
}

}  // namespace torch_neuronx::dispatch
