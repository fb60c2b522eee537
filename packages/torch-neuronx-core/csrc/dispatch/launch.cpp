#include "dispatch/launch.h"

#include <ATen/ops/copy.h>
#include <c10/util/TypeSafeSignMath.h>

#include <bit>

#include "dispatch/counters.h"
#include "dispatch/fallback.h"
#include "dispatch/memory.h"
#include "runtime/generator.h"
#include "runtime/stream.h"

namespace torch_neuronx::dispatch {

namespace {

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

// Addresses of the launch: inputs, then outputs.
c10::SmallVector<void*, 12> addresses(const Entry& entry, const Call& call, c10::ArrayRef<at::Tensor> created) {
  c10::SmallVector<void*, 12> buffers;
  for (const Call::Buffer& input : call.inputs) {
    buffers.push_back(address_of(input.tensor, input.written));
  }
  for (const Output& output : entry.outputs) {
    switch (output.place) {
      case Output::Place::kCreated:
      case Output::Place::kStaged:
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
  return buffers;
}

}  // namespace

bool launch(const Operator& op, const Entry& entry, Call& call, const std::optional<at::Generator>& generator,
            Created& created, std::string& reason) {
  for (const TensorSpec& spec : entry.created) {
    created.push_back(create(spec, call.device));
  }
  if (entry.executable != nullptr) {
    if (!operands_fit(entry, call)) [[unlikely]] {
      TORCH_CHECK(fallback_enabled(), "value cannot be converted to type ", entry.scalar_dtype, " without overflow");
      reason = "a number does not fit the dtype";
      return false;
    }
    const auto buffers = addresses(entry, call, created);
    if (op.takes_random_numbers) {
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
  }
  count(op.number, Outcome::kNative);
  if (entry.staged) [[unlikely]] {
    for (const Output& output : entry.outputs) {
      if (output.place == Output::Place::kStaged) {
        tensor_of(target_of(output, call).tensor).copy_(created[output.position]);
      }
    }
  }
  return true;
}

void return_results(const Operator& op, const Entry& entry, Created& created, c10::Stack* stack) {
  const size_t first = stack->size() - op.arguments;
  if (entry.results.size() == 1) [[likely]] {
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

}  // namespace torch_neuronx::dispatch
