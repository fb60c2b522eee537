// A reduction TILE cut at its reductions: element-wise segments that end in reductions, and between them segments on
// the kept values.
#pragma once

#include "engine/tile/feed.h"
#include "engine/tile/uniform.h"

namespace neuron::engine {

struct Reduction {
  int node;
  Micro op;
  Kind kind;         // of the operand
  uint16_t lanes;    // accumulators (not used when the reduction is done on a buffer)
  uint16_t indices;  // ARG: 32-bit indices beside them
  uint16_t totals;   // ARG: values that belong to the indices in `result`
  uint16_t buffer;   // operand values of a block, when the reduction is done on a buffer
  uint16_t result;   // the kept value: what the reduction gives
  int64_t stride;    // elements from one row of `buffer` to the next
};

// A kept value repeated for every element of a block.
struct Expansion {
  uint16_t from, to;
  int bytes;
};

struct PhaseOptions {
  bool shared_kept;    // kept values lie in the shared buffer, else in the thread's
  int64_t kept_room;   // kept values of a block
  bool kept_numbers;   // a block has one kept value: elements see a number
  bool expand;         // elements see kept values repeated in a block buffer
  bool on_buffers;     // reductions run on block buffers, not as stages
  bool whole_vectors;  // rows (COLUMN: columns) of a block are whole vectors: kernels on buffers read nothing past them
  bool keep_elements;  // a value that a later phase needs is kept for the block, not computed again
  bool one_by_one;     // element segments run on one row at a time, on numbers; `element_room` is that of a row
  bool separate_phases;  // a phase does not find the block buffers of the one before
  int64_t element_room;  // elements of a block buffer
  bool column;           // accumulators: one per kept value, else kLanes
  int64_t stream_bytes;  // outputs from this size on are written around the caches
};

class Phases {
 public:
  Phases(const BoundInstruction& instruction, const Graph& graph, const Nest& nest, FrameLayout& layout, const Isa& isa,
         const Uniforms& uniforms, const Feeds& elements, const Feeds& kept, const PhaseOptions& options);

  // element[p] feeds reductions[p], whose results kept[p + 1] uses; kept[0] comes first. element[depth] does the
  // stores.
  int depth;
  std::vector<Segment> element, kept;
  std::vector<std::vector<Reduction>> reductions;
  std::vector<std::vector<Expansion>> expansions;  // before element[p]
  std::vector<RowStep> row_steps;                  // one_by_one: from one row to the next
  Segment kept_stores;                             // at the very end: an output may lie on an input
  bool streams = false;

 private:
  void find_needed(const Graph& graph, int node, const std::vector<char>& done, std::vector<char>& seen) const;
};

}  // namespace neuron::engine
