// The values of a micro-program that are the same for the whole launch: constants, launch scalars and what is computed
// from them.
#pragma once

#include "engine/tile/segment.h"

namespace neuron::engine {

class Uniforms {
 public:
  Uniforms() = default;
  // Gives every UNIFORM node a slot. Windows must have been added to the layout before.
  Uniforms(const Graph& graph, const BoundInstruction& instruction, FrameLayout& layout, const Isa& isa);

  // Tells a builder where the values are.
  void announce(SegmentBuilder& builder) const;
  // Computes them, once per launch.
  void start(const Launch& launch, const Isa& isa, Context& context) const;

 private:
  struct Scalar {
    uint16_t slot;
    Kind kind;
    uint64_t position;
  };
  struct Loaded {
    uint16_t slot;
    Dtype dtype;
    uint32_t buffer;
    int64_t offset;  // bytes
  };
  std::vector<int> slot_of_;  // node -> slot, or -1
  std::vector<Scalar> scalars_;
  std::vector<Loaded> loaded_;
  Segment segment_;
};

}  // namespace neuron::engine
