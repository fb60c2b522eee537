#pragma once

#include "engine/instruction.h"

namespace neuron::engine {

// TILE in ROW or COLUMN mode.
std::unique_ptr<Kernel> prepare_reduction(const BoundInstruction& instruction);

// ROW when a row is small: blocks of whole rows.
std::unique_ptr<Kernel> prepare_rows(const BoundInstruction& instruction);
// ROW when a row is long, and COLUMN: reduced elements in chunks.
std::unique_ptr<Kernel> prepare_chunks(const BoundInstruction& instruction);

// Elements of a chunk: parts of the numerical contract (schema, tile_mode).
inline constexpr int64_t kRowChunk = 32768;
inline constexpr int64_t kColumnChunk = 1024;

}  // namespace neuron::engine
