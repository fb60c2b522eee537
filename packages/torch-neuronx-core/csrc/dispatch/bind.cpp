#include "dispatch/bind.h"

#include "dispatch/cache.h"
#include "dispatch/infer.h"
#include "dispatch/programs.h"

namespace torch_neuronx::dispatch {

namespace {

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
  entry.staged = true;
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

}  // namespace

const Entry* make_entry(const Operator& op, c10::ArrayRef<c10::IValue> arguments, const Call& call, uint64_t hash,
                        std::string& reason) {
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

}  // namespace torch_neuronx::dispatch
