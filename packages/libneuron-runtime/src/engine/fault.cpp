#include "engine/fault.h"

#include "base/error.h"

namespace neuron::engine {

void throw_division_by_zero(const std::string& debug) {
  throw Error(NRT_EXEC_BAD_INPUT,
              format("integer division or remainder by zero%s%s", debug.empty() ? "" : " in ", debug.c_str()));
}

}  // namespace neuron::engine
