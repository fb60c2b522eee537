#pragma once

#include "engine/instruction.h"

namespace neuron::engine {

// threads: how many share the work, 0 for all that a launch has.
std::unique_ptr<Kernel> prepare_matmul(const BoundInstruction& instruction, int threads = 0);

}  // namespace neuron::engine
