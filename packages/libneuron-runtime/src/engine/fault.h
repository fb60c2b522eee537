#pragma once

#include <string>

#include "engine/isa.h"

namespace neuron::engine {

[[noreturn]] void throw_division_by_zero(const std::string& debug);

// Throws NRT_EXEC_BAD_INPUT when a stage met an integer division by zero.
inline void check_fault(const Context& context, const std::string& debug) {
  if (context.fault) throw_division_by_zero(debug);
}

}  // namespace neuron::engine
