#pragma once

#include "engine/instruction.h"

namespace neuron::engine {

std::unique_ptr<Kernel> prepare_matmul(const BoundInstruction& instruction);

}  // namespace neuron::engine
