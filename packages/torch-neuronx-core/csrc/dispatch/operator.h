// The operators that the device answers with one boxed kernel, and what their schemas say about arguments and results.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dispatch/counters.h"

namespace torch_neuronx::dispatch {

// One bit per schema argument; ATen's longest schema has 23.
using ArgumentSet = uint64_t;
constexpr bool contains(ArgumentSet set, size_t argument) { return (set >> argument & 1) != 0; }

struct Operator {
  Operator(const c10::OperatorHandle& handle, uint32_t number);

  c10::OperatorHandle handle;
  std::string name;  // "aten::add.Tensor"
  uint32_t number;   // of its counters
  uint32_t arguments, returns;
  ArgumentSet written = 0;         // arguments that the operator writes, `outs` included
  ArgumentSet outs = 0;            // of these, the ones that are only results: `out=`
  ArgumentSet unreturned = 0;      // of `written`, those that no return stands for
  ArgumentSet host_allowed = 0;    // arguments whose tensors may live on the CPU whatever their size
  int generator = -1;              // argument that takes a torch.Generator
  bool random = false;             // draws random numbers
  bool tensors_only = true;        // every return is a Tensor or a list of Tensors
  std::vector<int> return_source;  // by return: the argument that it is, or -1

  // What the op compiler said of it. kUnknown until the first call; `operands` is valid once kNative.
  enum class Lowering : uint8_t { kUnknown, kNone, kNative };
  std::atomic<Lowering> lowering{Lowering::kUnknown};
  std::atomic<bool> warned{false};    // of a fallback
  ArgumentSet operands = 0;           // arguments whose scalars are given at launch
  bool sizing = false;                // and decide the results' sizes
  std::string no_lowering;            // kNone: why
  bool takes_random_numbers = false;  // seed and offset are the launch's last scalars

  const c10::FunctionSchema& schema() const { return handle.schema(); }
  const std::string& argument_name(size_t argument) const { return schema().arguments()[argument].name(); }
};

using BoxedKernel = void (*)(Operator& op, c10::Stack* stack);

// A kernel that torch may call without boxing the arguments.
struct TypedKernel {
  c10::KernelFunction function;
  c10::impl::CppSignature signature;
};
using MakeTypedKernel = std::optional<TypedKernel> (*)(Operator& op);

// Register a kernel for PrivateUse1 and every operator that has a CPU kernel and no CompositeImplicitAutograd one, for
// those of the explicit list, and for none that the device already answers by hand: `typed`'s where it gives one, else
// `boxed`. Once a process.
void register_operators(BoxedKernel boxed, MakeTypedKernel typed);

// Describe an operator that the dispatcher reaches in another way, so that it is counted.
Operator& add_operator(const c10::OperatorHandle& handle);

// All of these by number. Never destroyed.
std::deque<Operator>& operators();

}  // namespace torch_neuronx::dispatch
