// The bind phase: from records and slots to instructions with known numbers.
#pragma once

#include <span>
#include <vector>

#include "base/error.h"
#include "engine/instruction.h"
#include "program/program.h"

namespace neuron {

// Bytes of scratch memory or of one buffer at most, so that no address inside overflows.
inline constexpr int64_t kMaxBytes = int64_t{1} << 46;
inline constexpr int64_t kPartitions = 128;  // of SBUF and PSUM

// A guard does not hold for the slots.
class GuardError : public Error {
 public:
  GuardError(int guard, const std::string& message) : Error(NRT_INVALID, message), guard_(guard) {}
  int guard() const { return guard_; }

 private:
  int guard_;
};

// VALUES in order; then GUARDS. Throws Error, GuardError.
std::vector<int64_t> evaluate(const Program& program, std::span<const int64_t> slots);

// Sizes of the buffers, checked against scratch, CONSTANTS and the on-chip limits. In order of BUFFERS.
std::vector<int64_t> buffer_sizes(const Program& program, std::span<const int64_t> values);

// Instruction `number` with all numbers filled in and every rule of the bind phase checked. Adds what it visits to
// `visited`.
void bind_instruction(const Program& program, size_t number, std::span<const int64_t> values,
                      std::span<const int64_t> sizes, uint64_t& visited, BoundInstruction& bound);

// Largest sum of visited elements that a bind accepts: NEURON_RT_MAX_ELEMENTS or 2^40.
uint64_t element_budget();

}  // namespace neuron
