// The micro-program of a MATMUL: applied to rows of the accumulated result while they are in the cache.
#pragma once

#include "engine/scratch.h"
#include "engine/tile/feed.h"
#include "engine/tile/uniform.h"

namespace neuron::engine {

class Epilogue {
 public:
  // instruction: a MATMUL without its K dimension; windows 0 and 1 are not used. columns: most columns of a call of
  // run().
  Epilogue(const BoundInstruction& instruction, const Isa& isa, int64_t columns);

  size_t shared_bytes() const { return layout_.shared_bytes(); }
  bool streams() const { return stream_; }

  // One thread's slots and buffers.
  struct Frame {
    Context context;
    std::vector<int64_t> offsets;
  };
  void open(Frame& frame, Scratch& scratch, char* shared) const;
  // Once per launch, on any frame.
  void start(const Launch& launch, Frame& frame, char* shared) const;
  // Elements `column` to column + columns of the row at `index` (batch dimensions and M). accumulated: F32 or I64, with
  // room for a whole group behind the last one.
  void run(const Launch& launch, Frame& frame, const int64_t* index, int64_t column, int64_t columns,
           char* accumulated) const;

 private:
  const Isa& isa_;
  Graph graph_;
  Nest nest_;
  FrameLayout layout_;
  Feeds feeds_;
  Uniforms uniforms_;
  uint16_t accumulated_ = 0;  // slot
  Segment body_;
  bool stream_ = false;
};

}  // namespace neuron::engine
