// Instructions that move elements without computing much.
#pragma once

#include "engine/instruction.h"

namespace neuron::engine {

std::unique_ptr<Kernel> prepare_dma(const BoundInstruction& instruction);
std::unique_ptr<Kernel> prepare_gather(const BoundInstruction& instruction);
std::unique_ptr<Kernel> prepare_scatter(const BoundInstruction& instruction);
std::unique_ptr<Kernel> prepare_scan(const BoundInstruction& instruction);

}  // namespace neuron::engine
