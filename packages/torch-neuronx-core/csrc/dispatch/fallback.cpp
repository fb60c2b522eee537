#include "dispatch/fallback.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/bernoulli.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones_like.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "dispatch/arguments.h"
#include "dispatch/mirror.h"
#include "dispatch/python.h"
#include "runtime/generator.h"
#include "runtime/stream.h"

namespace torch_neuronx::dispatch {

namespace {

bool variable_is(const char* name, const char* value) {
  const char* text = std::getenv(name);
  return text != nullptr && std::strcmp(text, value) == 0;
}

// A CPU generator whose numbers follow from the device generator's position, which moves on by the largest tensor's
// size.
at::Generator cpu_generator(const Operator& op, c10::ArrayRef<c10::IValue> arguments, c10::Device device) {
  std::optional<at::Generator> generator;
  if (op.generator >= 0 && !arguments[op.generator].isNone()) {
    generator = arguments[op.generator].toGenerator();
  }
  int64_t elements = 1;
  for (const c10::IValue& argument : arguments) {
    for_each_tensor(argument, [&](const at::Tensor& tensor) { elements = std::max(elements, tensor.numel()); });
  }
  const auto [seed, offset] = reserve_philox(generator, device.index(), static_cast<uint64_t>(elements));
  // The generator's seeding spreads nearby numbers; the odd factor keeps (seed, offset) pairs apart.
  return at::detail::createCPUGenerator(seed + offset * 0x9E3779B97F4A7C15u);
}

// aten::native_dropout takes no generator, so its CPU kernel would draw from the CPU's default one.
void dropout(c10::Stack& stack, const at::Generator& generator) {
  const at::Tensor input = stack[0].toTensor();
  const double p = stack[1].toDouble();
  const bool train = stack[2].isNone() || stack[2].toBool();
  TORCH_CHECK(p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got ", p);
  at::Tensor mask = at::ones_like(input, input.options().dtype(at::kBool), at::MemoryFormat::Contiguous);
  at::Tensor output = input.clone();
  if (train && input.numel() > 0) {
    mask.bernoulli_(1 - p, generator);
    output = at::mul(input, mask).mul_(p == 1 ? 0.0 : 1 / (1 - p));
  }
  stack.assign({std::move(output), std::move(mask)});
}

void run_cpu_kernel(const Operator& op, c10::Stack& stack, const std::optional<at::Generator>& generator) {
  // Gradients and casts were handled above this kernel; the operators that a CPU kernel calls must not see them again.
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const c10::impl::ExcludeDispatchKeyGuard below_autocast(c10::autocast_dispatch_keyset);
  if (generator && op.generator < 0 && op.name == "aten::native_dropout") {
    dropout(stack, *generator);
    return;
  }
  op.handle.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack);
}

void warn_once(Operator& op, const std::string& why) {
  if (!op.warned.exchange(true, std::memory_order_relaxed)) {
    warn_fallback(
        op.name + " ran on the CPU: " + why +
        ". torch_neuronx.get_fallback_ops() lists such operators; NEURON_FALLBACK_ENABLED=0 turns them into errors.");
  }
}

void require_fallback(const Operator& op, c10::ArrayRef<c10::IValue> arguments, c10::Device device,
                      const std::string& why) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      fallback_enabled(), describe(op, arguments), user_line(), ", does not run natively on ", device, ": ", why,
      ", and NEURON_FALLBACK_ENABLED=0 forbids the CPU kernel. Use operators that have a lowering, "
      "move this step to the CPU with .cpu(), or allow the fallback");
}

}  // namespace

bool fallback_enabled() {
  static const bool enabled = !variable_is("NEURON_FALLBACK_ENABLED", "0");
  return enabled;
}

bool fallback_for_unimplemented_only() {
  static const bool only = variable_is("TORCH_NEURONX_FALLBACK_ONLY_FOR_UNIMPLEMENTED_OPS", "1");
  return only;
}

void note_fallback(Operator& op, c10::ArrayRef<c10::IValue> arguments, c10::Device device, const std::string& why) {
  require_fallback(op, arguments, device, why);
  count(op.number, Outcome::kFallback);
  warn_once(op, why);
}

void run_on_cpu(Operator& op, c10::Stack* stack, const std::string& why) {
  const size_t first = stack->size() - op.arguments;
  const c10::ArrayRef<c10::IValue> arguments(stack->data() + first, op.arguments);
  const c10::Device device = common_device(op, arguments);
  require_fallback(op, arguments, device, why);
  ensure_ready();
  synchronize_stream(current_stream(device.index()));

  Mirror mirror(device);
  for (size_t i = 0; i < arguments.size(); ++i) {
    for_each_tensor(arguments[i], [&](const at::Tensor& tensor) { mirror.note(tensor, contains(op.written, i)); });
  }
  c10::Stack cpu_stack(arguments.begin(), arguments.end());
  for (c10::IValue& argument : cpu_stack) {
    if (argument.isDevice() && argument.toDevice().type() == kNeuron) {
      argument = c10::Device(c10::kCPU);
    } else {
      replace_tensors(argument, [&](const at::Tensor& tensor) { return mirror.mirror(tensor); });
    }
  }
  std::optional<at::Generator> generator;
  if (op.random) {
    generator = cpu_generator(op, arguments, device);
    if (op.generator >= 0) {
      cpu_stack[op.generator] = *generator;
    }
  }

  run_cpu_kernel(op, cpu_stack, generator);
  mirror.write_back();
  for (c10::IValue& result : cpu_stack) {
    replace_tensors(result, [&](const at::Tensor& tensor) { return mirror.restore(tensor); });
  }
  count(op.number, Outcome::kFallback);
  stack->erase(stack->begin() + static_cast<std::ptrdiff_t>(first), stack->end());
  std::move(cpu_stack.begin(), cpu_stack.end(), std::back_inserter(*stack));
  warn_once(op, why);
}

}  // namespace torch_neuronx::dispatch
