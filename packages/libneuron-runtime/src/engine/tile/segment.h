// A straight run of stages over a vector of elements, and the code generator that makes one from a part of a graph.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/isa.h"
#include "engine/tile/frame.h"
#include "engine/tile/graph.h"

namespace neuron::engine {

// A window that a segment reads or writes in place: memory that ends at its last element.
struct External {
  uint16_t slot;
  uint16_t tail;  // slot of a buffer of one group
  uint8_t bytes;  // of an element
  bool is_store;
};

struct Segment {
  std::vector<Step> steps;      // empty: nothing to do
  std::vector<Step> streaming;  // with non-temporal stores; empty where there are none
  std::vector<External> externals;
  std::vector<uint16_t> streamed;  // slots that must be aligned for `streaming`

  bool empty() const { return steps.empty(); }
  // Runs over n elements. The last, partial group of the externals goes through buffers; all other memory has room for
  // whole groups.
  void run(const Isa& isa, Context& context, int64_t n, bool stream = false) const;
};

// Where a value can be read.
struct Place {
  enum Type : uint8_t { NONE, NUMBER, VECTOR } type = NONE;
  uint16_t slot = 0;
  uint8_t step = 0;
};

class SegmentBuilder {
 public:
  SegmentBuilder(const Graph& graph, const BoundInstruction& instruction, FrameLayout& layout, const Isa& isa)
      : graph_(graph),
        instruction_(instruction),
        layout_(layout),
        isa_(isa),
        place_(graph.nodes.size()),
        uses_(graph.nodes.size()),
        keep_(graph.nodes.size()),
        computed_(graph.nodes.size()) {}

  // The value is in memory already. VECTOR: raw elements of a LOAD's dtype when `node` is a LOAD.
  void set_number(int node, uint16_t slot) { place_[node] = {Place::NUMBER, slot, 0}; }
  void set_vector(int node, uint16_t slot, int step) {
    place_[node] = {Place::VECTOR, slot, static_cast<uint8_t>(step)};
  }
  // Vector of raw elements for a LOAD; external: see Segment.
  void set_load(int node, uint16_t slot, bool external);
  // When the value is computed, it is also written to this vector.
  void keep(int node, uint16_t slot, int step) { keep_[node] = {Place::VECTOR, slot, static_cast<uint8_t>(step)}; }

  // While the segment runs, fetches what lies `bytes` behind a window of native elements.
  void add_prefetch(uint16_t slot, int64_t bytes) { prefetches_.push_back({slot, bytes}); }

  // What the segment must do; in program order.
  void add_value(int node);  // compute and keep
  void add_store(int node, uint16_t slot, bool external, bool stream);
  void add_reduction(int node, uint16_t accumulators, uint16_t indices, bool column);

  Segment build();
  // Nodes whose value was computed by the last build().
  const std::vector<bool>& computed() const { return computed_; }

 private:
  struct Root {
    enum Type { VALUE, STORE, REDUCTION } type;
    int node;
    uint16_t slot = 0;
    bool column = false, stream = false;
    uint16_t indices = 0;
  };

  void count_uses(int node, std::vector<bool>& seen);
  Place operand(int node);        // makes it readable in memory
  void to_accumulator(int node);  // makes it the accumulator
  void evaluate(int node);        // computes it: I64 into memory, others into the accumulator
  void evaluate_binary(int node);
  void evaluate_select(int node);
  void finish(int node);  // after evaluate: spill, keep
  void consume(int node);
  void secure(int node);
  uint16_t result_slot(int node, uint8_t& step);
  void emit(Stage stage, Place dst = {}, Place a = {}, Place b = {}, Place c = {}, uint16_t aux = 0);
  void emit_root(const Root& root);
  Place raw(int node) const { return {Place::VECTOR, load_slot_[node].slot, load_slot_[node].step}; }

  const Graph& graph_;
  const BoundInstruction& instruction_;
  FrameLayout& layout_;
  const Isa& isa_;
  std::vector<Place> place_;
  std::vector<int> uses_;
  std::vector<Place> keep_;
  std::vector<bool> computed_;
  std::vector<bool> in_group_ = std::vector<bool>(place_.size());
  std::vector<Place> load_slot_ = std::vector<Place>(place_.size());
  std::vector<bool> load_external_ = std::vector<bool>(place_.size());
  std::vector<Root> roots_;
  std::vector<std::pair<uint16_t, int64_t>> prefetches_;
  int accumulator_ = -1;
  Segment segment_;
};

}  // namespace neuron::engine
