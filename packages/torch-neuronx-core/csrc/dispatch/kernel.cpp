#include "dispatch/kernel.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/resize.h>

#include <algorithm>
#include <atomic>
#include <mutex>

#include "dispatch/arguments.h"
#include "dispatch/bind.h"
#include "dispatch/cache.h"
#include "dispatch/call.h"
#include "dispatch/fallback.h"
#include "dispatch/launch.h"
#include "dispatch/memory.h"
#include "dispatch/programs.h"
#include "dispatch/python.h"
#include "dispatch/unboxed.h"

namespace torch_neuronx::dispatch {

namespace {

std::atomic<uint64_t> misses{0};

std::mutex lowering_mutex;  // a leaf

void ask_for_lowering(Operator& op) {
  Description description = describe(op);
  std::lock_guard<std::mutex> lock(lowering_mutex);
  if (op.lowering.load(std::memory_order_relaxed) != Operator::Lowering::kUnknown) {
    return;
  }
  if (description.traits) {
    op.operands = description.traits->operands;
    op.takes_random_numbers = description.traits->random;
    op.sizing = description.traits->sizing;
    op.lowering.store(Operator::Lowering::kNative, std::memory_order_release);
  } else {
    op.no_lowering = std::move(description.reason);
    op.lowering.store(Operator::Lowering::kNone, std::memory_order_release);
  }
}

using Tensors = c10::SmallVector<c10::TensorImpl*, 4>;

// Replace arguments that are only read, and share memory with one of those that are written, by copies.
void copy_shared(const Operator& op, const Tensors& written, c10::IValue* arguments) {
  for (size_t i = 0; i < op.arguments; ++i) {
    if (contains(op.written, i)) {
      continue;
    }
    replace_tensors(arguments[i], [&](const at::Tensor& tensor) {
      const bool shares =
          !tensor.is_cpu() && std::any_of(written.begin(), written.end(), [&](const c10::TensorImpl* other) {
            return sharing_of(tensor.unsafeGetTensorImpl(), other) != Sharing::kNone;
          });
      return shares ? at::clone(tensor) : tensor;
    });
  }
}

// The same where a program could not know of the sharing. False when that does not
// make the call one that a program can run; the arguments are untouched then.
bool copy_overlapping(const Operator& op, const Call& call, c10::IValue* arguments) {
  Tensors read, written;
  for (const Call::Buffer& input : call.inputs) {
    (input.written ? written : read).push_back(input.tensor);
  }
  for (const Call::Buffer& out : call.outs) {
    written.push_back(out.tensor);
  }
  for (size_t i = 0; i < written.size(); ++i) {
    for (size_t j = i + 1; j < written.size(); ++j) {
      if (sharing_of(written[i], written[j]) != Sharing::kNone) {
        return false;
      }
    }
    for (c10::TensorImpl* other : read) {
      if (at::get_overlap_status(written[i], other) == at::MemOverlapStatus::Partial) {
        if (!fallback_enabled()) {
          at::assert_no_partial_overlap(tensor_of(written[i]), tensor_of(other));
        }
        return false;  // the CPU kernel raises that, or defines the result
      }
    }
  }
  copy_shared(op, written, arguments);
  return true;
}

// Give the `out` arguments the sizes of their results, with torch's warning unless the meta kernel has just given it.
// An argument that is one of them too keeps its numbers in a copy.
void resize_outs(const Operator& op, const Entry& entry, const Call& call, bool warn, c10::IValue* arguments) {
  Tensors outs;
  for (const Call::Buffer& out : call.outs) {
    outs.push_back(out.tensor);
  }
  copy_shared(op, outs, arguments);
  for (size_t i = 0; i < call.outs.size(); ++i) {
    const TensorSpec& spec = entry.resized[i];
    const at::Tensor out = tensor_of(call.outs[i].tensor);
    if (out.sizes().equals(spec.sizes) || (warn && !at::native::resize_output_check(out, spec.sizes))) {
      continue;
    }
    out.resize_(spec.sizes);
    if (!spec.contiguous) {
      call.outs[i].tensor->set_sizes_and_strides(spec.sizes, spec.strides);
    }
  }
}

void move_indices(const Operator& op, c10::DeviceIndex device, c10::IValue* arguments) {
  for (size_t i = 0; i < op.arguments; ++i) {
    if (contains(op.host_allowed, i)) {
      replace_tensors(arguments[i], [&](const at::Tensor& tensor) { return tensor.to(c10::Device(kNeuron, device)); });
    }
  }
}

// An operator on lists (a fused optimizer step) one of which names a tensor twice: what the first entry writes the
// second must see, so run it with lists of one. False when its arguments are not lists of one length.
bool run_entry_by_entry(Operator& op, c10::Stack* stack) {
  const size_t first = stack->size() - op.arguments;
  size_t length = 0;
  for (size_t i = first; i < stack->size(); ++i) {
    const size_t entries = (*stack)[i].isTensorList() ? (*stack)[i].toListRef().size() : 0;
    if (entries != 0 && length != 0 && entries != length) {
      return false;
    }
    length = std::max(length, entries);
  }
  if (length < 2 || op.returns != 0) {
    return false;
  }
  for (size_t entry = 0; entry < length; ++entry) {
    c10::Stack single(stack->begin() + static_cast<std::ptrdiff_t>(first), stack->end());
    for (c10::IValue& argument : single) {
      if (argument.isTensorList() && !argument.toListRef().empty()) {
        argument = c10::List<at::Tensor>({argument.toListRef()[entry].toTensor()});
      }
    }
    answer(op, &single);
  }
  stack->erase(stack->begin() + static_cast<std::ptrdiff_t>(first), stack->end());
  return true;
}

std::optional<at::Generator> generator_of(const Operator& op, c10::ArrayRef<c10::IValue> arguments) {
  return op.generator < 0 || arguments[op.generator].isNone() ? std::nullopt
                                                              : std::optional(arguments[op.generator].toGenerator());
}

// Run natively. False, with a reason, when that is not possible; the arguments have the same values then.
bool run_natively(Operator& op, c10::Stack* stack, std::string& reason) {
  Operator::Lowering lowering = op.lowering.load(std::memory_order_acquire);
  if (lowering == Operator::Lowering::kUnknown) [[unlikely]] {
    ask_for_lowering(op);
    lowering = op.lowering.load(std::memory_order_acquire);
  }
  if (lowering == Operator::Lowering::kNone) [[unlikely]] {
    reason = op.no_lowering;
    return false;
  }
  while (true) {
    c10::IValue* first = stack->data() + (stack->size() - op.arguments);
    const c10::ArrayRef<c10::IValue> arguments(first, op.arguments);
    Call call(op, arguments);
    if (call.kind == Call::Kind::kLaunch) [[likely]] {
      const uint64_t hash = call.key.hash();
      const Entry* entry = find_entry(call.key, hash);
      const bool known = entry != nullptr;
      if (!known) [[unlikely]] {
        misses.fetch_add(1, std::memory_order_relaxed);
        entry = make_entry(op, arguments, call, hash, reason);
      }
      if (entry == nullptr || !entry->reason.empty()) [[unlikely]] {
        reason = entry == nullptr ? reason : entry->reason;
        return false;
      }
      if (!entry->resized.empty()) [[unlikely]] {
        resize_outs(op, *entry, call, known, first);
        continue;
      }
      const std::shared_ptr<const Entry> kept = entry->staged ? entry->shared_from_this() : nullptr;
      Created created;
      if (!launch(op, *entry, call, generator_of(op, arguments), created, reason)) {
        return false;
      }
      return_results(op, *entry, created, stack);
      return true;
    }
    if (call.kind == Call::Kind::kHostIndices) {
      move_indices(op, call.device, first);
    } else if (call.kind == Call::Kind::kForeign) {
      reason = call.reason;
      return false;
    } else if (!copy_overlapping(op, call, first)) {
      reason = call.reason;
      return run_entry_by_entry(op, stack);
    }
  }
}

// aten::copy_ itself is torch's; the device gets its copies by aten::_copy_from. Counted and compiled under its own
// name.
Operator* copy_operator = nullptr;

}  // namespace

void answer(Operator& op, c10::Stack* stack) {
  std::string reason;
  if (!run_natively(op, stack, reason)) [[unlikely]] {
    run_on_cpu(op, stack, reason);
  }
}

bool copy_on_device(const at::Tensor& source, const at::Tensor& destination) {
  Operator& op = *copy_operator;
  c10::Stack stack{destination, source, /*non_blocking=*/false};
  std::string reason;
  const bool done = run_natively(op, &stack, reason);
  if (!done) {
    note_fallback(op, c10::ArrayRef<c10::IValue>(stack), c10::Device(kNeuron, destination.device().index()), reason);
  }
  return done;
}

void forget_everything() {
  {
    std::lock_guard<std::mutex> lock(lowering_mutex);
    for (Operator& op : operators()) {
      op.lowering.store(Operator::Lowering::kUnknown, std::memory_order_release);
    }
  }
  clear_entries();
  clear_programs();
}

void register_dispatch() {
  register_operators(&answer, &make_unboxed_kernel);
  copy_operator = &add_operator(c10::Dispatcher::singleton().findSchemaOrThrow("aten::copy_", ""));
}

uint64_t cache_misses() { return misses.load(std::memory_order_relaxed); }

}  // namespace torch_neuronx::dispatch
