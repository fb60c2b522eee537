#include "dispatch/kernel.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/resize.h>
#include <c10/util/TypeSafeSignMath.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <mutex>

#include "dispatch/arguments.h"
#include "dispatch/cache.h"
#include "dispatch/call.h"
#include "dispatch/counters.h"
#include "dispatch/fallback.h"
#include "dispatch/infer.h"
#include "dispatch/memory.h"
#include "dispatch/programs.h"
#include "dispatch/python.h"
#include "runtime/generator.h"
#include "runtime/stream.h"

namespace torch_neuronx::dispatch {

namespace {

std::atomic<uint64_t> misses{0};

using TensorPointer = c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;

at::Tensor tensor_of(c10::TensorImpl* impl) { return at::Tensor(TensorPointer::reclaim_copy(impl)); }

// ---- Running an entry
// -----------------------------------------------------------------------------------------------------------

template <typename Number>
bool fits(c10::ScalarType dtype, Number number) {
  switch (dtype) {
#define CASE(type, name)      \
  case c10::ScalarType::name: \
    return !c10::overflows<type, Number>(number);
    CASE(uint8_t, Byte)
    CASE(int8_t, Char)
    CASE(int16_t, Short)
    CASE(int32_t, Int)
    CASE(int64_t, Long)
    CASE(c10::Half, Half)
    CASE(c10::BFloat16, BFloat16)
    CASE(float, Float)
#undef CASE
    default:
      return true;
  }
}

bool operands_fit(const Entry& entry, const Call& call) {
  for (const Call::OperandScalar& operand : call.operands) {
    const uint64_t bits = call.scalars[operand.position];
    if (operand.is_double ? !fits(entry.scalar_dtype, std::bit_cast<double>(bits))
                          : !fits(entry.scalar_dtype, static_cast<int64_t>(bits))) {
      return false;
    }
  }
  return true;
}

const Call::Buffer& target_of(const Output& output, const Call& call) {
  return output.target == Output::Place::kInput ? call.inputs[output.target_position]
                                                : call.outs[output.target_position];
}

// A program stopped because of the data it was given.
bool is_data_error(NRT_STATUS status) { return status == NRT_EXEC_OOB || status == NRT_EXEC_BAD_INPUT; }

[[noreturn]] void throw_launch_error(const Operator& op, NRT_STATUS status) {
  const std::string explanation = nrtx_last_error();
  TORCH_CHECK_INDEX(status != NRT_EXEC_OOB, op.name, ": ", explanation);
  TORCH_CHECK(false, op.name, ": ", explanation, " (", nrt_get_status_as_str(status), ")");
}

void return_results(const Operator& op, const Entry& entry, c10::SmallVectorImpl<at::Tensor>& created,
                    c10::Stack* stack) {
  const size_t first = stack->size() - op.arguments;
  if (entry.results.size() == 1) [[likely]] {  // one return: put it where the first argument is
    const Result& result = entry.results.front();
    c10::IValue value;
    if (result.kind == Result::Kind::kCreated) {
      value = std::move(created[result.value]);
    } else if (result.kind == Result::Kind::kArgument) {
      value = std::move((*stack)[first + result.value]);
    } else if (result.kind == Result::Kind::kList) {
      value = c10::List<at::Tensor>(c10::ArrayRef<at::Tensor>(created.data() + result.first, result.value));
    } else {
      value = at::Tensor();
    }
    stack->erase(stack->begin() + static_cast<std::ptrdiff_t>(first), stack->end());
    stack->push_back(std::move(value));
    return;
  }
  c10::SmallVector<c10::IValue, 4> values;
  for (const Result& result : entry.results) {
    if (result.kind == Result::Kind::kCreated) {
      values.emplace_back(std::move(created[result.value]));
    } else if (result.kind == Result::Kind::kArgument) {
      values.push_back((*stack)[first + result.value]);
    } else if (result.kind == Result::Kind::kList) {
      values.emplace_back(
          c10::List<at::Tensor>(c10::ArrayRef<at::Tensor>(created.data() + result.first, result.value)));
    } else {
      values.emplace_back(at::Tensor());
    }
  }
  stack->erase(stack->begin() + static_cast<std::ptrdiff_t>(first), stack->end());
  std::move(values.begin(), values.end(), std::back_inserter(*stack));
}

// Run a call by its entry and put the results on the stack. False, with a reason, when the CPU kernel must stand in:
// the arguments are untouched then.
bool launch(const Operator& op, const Entry& entry, Call& call, c10::Stack* stack, std::string& reason) {
  c10::SmallVector<at::Tensor, 2> created;
  for (const TensorSpec& spec : entry.created) {
    created.push_back(create(spec, call.device));
  }
  if (entry.executable != nullptr) {
    if (!operands_fit(entry, call)) [[unlikely]] {
      TORCH_CHECK(fallback_enabled(), "value cannot be converted to type ", entry.scalar_dtype, " without overflow");
      reason = "a number does not fit the dtype";
      return false;
    }
    c10::SmallVector<void*, 12> buffers;
    for (const Call::Buffer& input : call.inputs) {
      buffers.push_back(address_of(input.tensor, input.written));
    }
    bool staged = false;
    for (const Output& output : entry.outputs) {
      switch (output.place) {
        case Output::Place::kStaged:
          staged = true;
          [[fallthrough]];
        case Output::Place::kCreated:
          buffers.push_back(address_of(created[output.position].unsafeGetTensorImpl(), true));
          break;
        case Output::Place::kInput:
          buffers.push_back(buffers[output.position]);
          break;
        case Output::Place::kOut:
          buffers.push_back(address_of(call.outs[output.position].tensor, true));
          break;
      }
    }
    if (op.takes_random_numbers) {
      std::optional<at::Generator> generator;
      if (op.generator >= 0) {
        const c10::IValue& given = (*stack)[stack->size() - op.arguments + static_cast<size_t>(op.generator)];
        generator = given.isNone() ? std::nullopt : std::optional(given.toGenerator());
      }
      const auto [seed, offset] = reserve_philox(generator, call.device, entry.random_numbers);
      call.scalars.push_back(seed);
      call.scalars.push_back(offset);
    }
    NRT_STATUS status;
    {
      const StreamLock lock(call.device);
      status = nrtx_execute(entry.executable->get(), call.device, buffers.data(), call.scalars.data());
    }
    if (status != NRT_SUCCESS) [[unlikely]] {
      // The CPU kernel reports bad data in torch's words, unless the program may have changed an argument already.
      if (is_data_error(status) && op.written == 0 && fallback_enabled() && !fallback_for_unimplemented_only()) {
        reason = std::string("its program stopped: ") + nrtx_last_error();
        return false;
      }
      throw_launch_error(op, status);
    }
    if (staged) [[unlikely]] {
      const std::vector<Output> outputs = entry.outputs;  // copying may replace the entry in the thread's front
      const std::shared_ptr<const Entry> kept = entry.shared_from_this();
      for (const Output& output : outputs) {
        if (output.place == Output::Place::kStaged) {
          tensor_of(target_of(output, call).tensor).copy_(created[output.position]);
        }
      }
      count(op.number, Outcome::kNative);
      return_results(op, *kept, created, stack);
      return true;
    }
  }
  count(op.number, Outcome::kNative);
  return_results(op, entry, created, stack);
  return true;
}

// ---- Making an entry
// ------------------------------------------------------------------------------------------------------------

nrtx_io_t io_of(const Executable& executable, size_t position) {
  nrtx_io_t io{};
  check(nrtx_executable_io(executable.get(), static_cast<uint32_t>(position), &io),
        "Cannot read a program's signature");
  return io;
}

void check_buffer(const Operator& op, const Executable& executable, size_t position, const TensorSpec& spec,
                  const char* role, size_t number) {
  const nrtx_io_t io = io_of(executable, position);
  TORCH_CHECK(io.nbytes <= spec.nbytes && io.dtype == program_dtype(spec.dtype), "The op compiler's program for ",
              op.name, " wants ", io.nbytes, " bytes of dtype ", io.dtype, " as ", role, ' ', number,
              ", but the tensor has ", spec.nbytes, " bytes of ", spec.dtype);
}

void add_slots(std::vector<int64_t>& slots, const TensorSpec& spec) {
  slots.insert(slots.end(), spec.sizes.begin(), spec.sizes.end());
  slots.insert(slots.end(), spec.strides.begin(), spec.strides.end());
}

// The input that an output shares its memory with, or -1.
int alias_of(const Output& output, const Call& call) {
  return output.place == Output::Place::kInput ? static_cast<int>(output.position)
         : output.place == Output::Place::kOut ? call.outs[output.position].alias
                                               : -1;
}

// An output whose memory the program must not share with an input is computed aside and copied.
void stage_output(Entry& entry, Output& output, const TensorSpec& spec) {
  output = {Output::Place::kStaged, static_cast<uint32_t>(entry.created.size()), output.place, output.position};
  entry.created.push_back(spec);
}

// Fill in the executable; or entry.reason, when the compiler does not support the call; or inferred.reason, when it
// failed.
void bind_entry(const Operator& op, c10::ArrayRef<c10::IValue> arguments, const Call& call, Inferred& inferred) {
  Entry& entry = *inferred.entry;
  Request request{op, arguments, {}, {}};
  Key key;
  add_class(key, op, arguments);
  std::vector<TensorSpec> inputs;
  for (const Call::Buffer& input : call.inputs) {
    inputs.push_back(spec_of(input.tensor));
    add_slots(request.slots, inputs.back());
  }
  for (size_t i = 0; i < entry.outputs.size(); ++i) {
    const TensorSpec& spec = inferred.specs[i];
    const int alias = alias_of(entry.outputs[i], call);
    request.outputs.push_back({&spec, alias});
    add_slots(request.slots, spec);
    add_class(key, spec.dtype, spec.sizes, spec.strides, spec.contiguous);
    key.add(static_cast<uint64_t>(alias + 1));
  }
  Bound bound = bind_program(key.words(), request);
  if (bound.executable == nullptr) {
    (bound.unsupported ? entry.reason : inferred.reason) = std::move(bound.reason);
    return;
  }
  entry.executable = std::move(bound.executable);
  for (size_t i = 0; i < inputs.size(); ++i) {
    check_buffer(op, *entry.executable, i, inputs[i], "input", i);
  }
  for (size_t i = 0; i < entry.outputs.size(); ++i) {
    check_buffer(op, *entry.executable, inputs.size() + i, inferred.specs[i], "output", i);
    const int alias = request.outputs[i].alias;
    if (alias >= 0 && io_of(*entry.executable, inputs.size() + i).alias != alias) {
      stage_output(entry, entry.outputs[i], inferred.specs[i]);
    }
  }
}

// Which operand scalars are in range: of the result's dtype, or of the first input's where the result is a truth value.
c10::ScalarType scalar_dtype(const Call& call, const Inferred& inferred) {
  const c10::ScalarType result = inferred.specs.front().dtype;
  return result == c10::ScalarType::Bool && !call.inputs.empty()
             ? c10::typeMetaToScalarType(call.inputs.front().tensor->dtype())
             : result;
}

// The entry for a call that has none yet; null, with a reason, when the call cannot run natively and that must not be
// remembered.
const Entry* make_entry(const Operator& op, c10::ArrayRef<c10::IValue> arguments, const Call& call, uint64_t hash,
                        std::string& reason) {
  misses.fetch_add(1, std::memory_order_relaxed);
  Inferred inferred = infer(op, arguments, call);
  if (!inferred.reason.empty()) {
    reason = inferred.reason;
    return nullptr;
  }
  Entry& entry = *inferred.entry;
  entry.key = call.key.words();
  if (!entry.resized.empty()) {
    return insert_entry(inferred.entry, hash);
  }
  bool nothing_to_do = true;
  for (const TensorSpec& spec : inferred.specs) {
    nothing_to_do = nothing_to_do && spec.nbytes == 0;
  }
  if (!nothing_to_do) {
    entry.random_numbers = static_cast<uint64_t>(c10::multiply_integers(inferred.specs.front().sizes));
    entry.scalar_dtype = scalar_dtype(call, inferred);
    bind_entry(op, arguments, call, inferred);
    if (!inferred.reason.empty()) {
      reason = inferred.reason;
      return nullptr;
    }
  }
  return insert_entry(inferred.entry, hash);
}

// ---- Answering a call
// -----------------------------------------------------------------------------------------------------------

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
    op.lowering.store(Operator::Lowering::kNative, std::memory_order_release);
  } else {
    op.no_lowering = std::move(description.reason);
    op.lowering.store(Operator::Lowering::kNone, std::memory_order_release);
  }
}

// Replace arguments that are only read, and share memory with one that is written, by copies. False when that does not
// make the call one that a program can run; the arguments are untouched then.
bool copy_overlapping(const Operator& op, const Call& call, c10::IValue* arguments) {
  c10::SmallVector<c10::TensorImpl*, 4> read, written;
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
  return true;
}

// Give the `out` arguments the sizes of their results, with torch's warning unless the meta kernel has just given it.
void resize_outs(const Entry& entry, const Call& call, bool warn) {
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

bool run_natively(Operator& op, c10::Stack* stack, std::string& reason);
void answer(Operator& op, c10::Stack* stack);

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
        entry = make_entry(op, arguments, call, hash, reason);
      }
      if (entry == nullptr || !entry->reason.empty()) [[unlikely]] {
        reason = entry == nullptr ? reason : entry->reason;
        return false;
      }
      if (!entry->resized.empty()) [[unlikely]] {
        resize_outs(*entry, call, known);
        continue;
      }
      return launch(op, *entry, call, stack, reason);
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

void answer(Operator& op, c10::Stack* stack) {
  std::string reason;
  if (!run_natively(op, stack, reason)) [[unlikely]] {
    run_on_cpu(op, stack, reason);
  }
}

// aten::copy_ itself is torch's; the device gets its copies by aten::_copy_from. Counted and compiled under its own
// name.
Operator* copy_operator = nullptr;

}  // namespace

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
  register_operators(&answer);
  copy_operator = &add_operator(c10::Dispatcher::singleton().findSchemaOrThrow("aten::copy_", ""));
}

uint64_t cache_misses() { return misses.load(std::memory_order_relaxed); }

}  // namespace torch_neuronx::dispatch
