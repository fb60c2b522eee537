// Brings the elements of a block to where the stages read them, and takes results from where the stages wrote them.
#pragma once

#include <vector>

#include "engine/tile/nest.h"
#include "engine/tile/segment.h"

namespace neuron::engine {

// A block: rows x columns elements of the index space, stored row by row.
struct BlockShape {
  int64_t rows = 1, columns = 1;
  int64_t size() const { return rows * columns; }
};

// How one access reaches the stages.
struct Feed {
  enum Mode : uint8_t {
    DIRECT,  // the stages read or write the window itself
    NUMBER,  // one number for the whole block
    STAGED,  // through a buffer of the block
  } mode = STAGED;
  int access = -1;
  Access::Type type = Access::READ;
  Dtype dtype = Dtype::FP32;
  int bytes = 4;            // of an element
  uint32_t buffer = 0;
  int64_t base = 0;         // bytes from the buffer's start to the window's first element
  int64_t row_stride = 0, column_stride = 0;  // elements
  uint16_t window = 0;      // slot of the window (READ, WRITE)
  uint16_t slot = 0;        // slot that the stages use
  uint16_t words[4] = {};   // NUMBER type: slot per Philox word, 0 if not used
  uint64_t key = 0;         // NUMBER type: position of the key among the launch's scalars
};

class Feeds {
 public:
  // row: dimension of the nest along the block's rows, or -1; column: along its columns, or -1 when the nest has no dimension.
  // Windows get their slots in the order of the nest's accesses; call before anything else is added to the layout.
  Feeds(const BoundInstruction& instruction, const Graph& graph, const Nest& nest, FrameLayout& layout);
  // Decides the modes for blocks of at most `shape`; whole_columns: a block's columns are the whole extent of their dimension.
  void plan(const Graph& graph, const Nest& nest, FrameLayout& layout, int row, int column, BlockShape shape, bool whole_columns);
  // Tells a builder where the elements of LOAD, IOTA and RANDOM nodes are.
  void announce(SegmentBuilder& builder, const Graph& graph, const Nest& nest) const;

  const Feed& of(int access) const { return feeds_[access]; }
  bool all_direct() const;

  // offsets: element offset of the block's first element per access, from the window's first element.
  void before(const Launch& launch, const Isa& isa, char** slots, const int64_t* offsets, BlockShape shape) const;
  void after(const Isa& isa, char** slots, BlockShape shape) const;

 private:
  std::vector<Feed> feeds_;
};

}  // namespace neuron::engine
