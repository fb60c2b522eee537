#pragma once

#include "engine/instruction.h"

namespace neuron::engine {

// TILE in MAP mode, and TENSOR_TENSOR.
std::unique_ptr<Kernel> prepare_map(const BoundInstruction& instruction);

}  // namespace neuron::engine
