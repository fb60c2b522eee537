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

// The dimensions of a nest along the columns of a block, visited in row-major order as one.
struct Axis {
  int first = 0, count = 0;
};

// A slot that moves from row to row of a block, by so many bytes.
struct RowStep {
  uint16_t slot;
  int64_t bytes;
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
  int bytes = 4;  // of an element
  uint32_t buffer = 0;
  int64_t base = 0;                           // bytes from the buffer's start to the window's first element
  int64_t row_stride = 0, column_stride = 0;  // elements
  bool broken = false;  // the columns do not follow one stride: `strides` has one per dimension of the axis
  std::array<int64_t, kMaxDims> strides{};
  uint16_t window = 0;     // slot of the window (READ, WRITE)
  uint16_t slot = 0;       // slot that the stages use
  uint16_t words[4] = {};  // NUMBER type: slot per Philox word, 0 if not used
  uint64_t key = 0;        // NUMBER type: position of the key among the launch's scalars
};

class Feeds {
 public:
  // For the accesses of nodes of one class. Windows get their slots here: nothing else may be in the layout yet.
  Feeds(const BoundInstruction& instruction, const Graph& graph, const Nest& nest, FrameLayout& layout, Class cls);
  // Decides the modes for blocks of at most `shape`. row: dimension of the nest along the block's rows, or -1.
  // whole_columns: a block has all columns of the axis.
  void plan(const Graph& graph, const Nest& nest, FrameLayout& layout, int row, Axis column, BlockShape shape,
            bool whole_columns);
  // Tells a builder where the elements of LOAD, IOTA and RANDOM nodes are.
  void announce(SegmentBuilder& builder, const Graph& graph, const Nest& nest) const;

  const Feed& of(int access) const { return feeds_[feed_of_[access]]; }
  bool all_direct() const;

  // For feeds that are direct and blocks of one row: how their slots move to the next row.
  void add_steps(std::vector<RowStep>& steps) const {
    for (const Feed& f : feeds_) steps.push_back({f.window, f.row_stride * f.bytes});
  }

  // What is read from the same place `rows` rows further on.
  void add_prefetches(SegmentBuilder& builder, int64_t rows) const {
    for (const Feed& f : feeds_) {
      if (f.type == Access::READ && f.bytes == 4 && f.row_stride > 0 && rows * f.row_stride * 4 < 64 * UINT16_MAX)
        builder.add_prefetch(f.window, rows * f.row_stride * 4);
    }
  }

  // Sets the slots of the windows' first elements: all there is to do when all feeds are direct.
  void point(const Launch& launch, char** slots) const {
    for (const Feed& f : feeds_) slots[f.window] = static_cast<char*>(launch.buffers[f.buffer]) + f.base;
  }
  // offsets: per access, element offset of the block's first row at column 0, from the window's first element. start:
  // the block's first column.
  void before(const Launch& launch, const Isa& isa, char** slots, const int64_t* offsets, int64_t start,
              BlockShape shape) const;
  void after(const Isa& isa, char** slots, int64_t start, BlockShape shape) const;

 private:
  // Calls body(position in the block, offset in the window, columns) for every run of columns of one row.
  template <class Body>
  void runs(const Feed& feed, int64_t start, int64_t columns, Body&& body) const;
  void stage(const Feed& feed, const Isa& isa, char** slots, char* window, int64_t start, BlockShape shape,
             bool store) const;

  std::vector<Feed> feeds_;
  std::vector<int> feed_of_;
  std::array<int64_t, kMaxDims> column_extents_{};
  int column_dimensions_ = 0;
};

}  // namespace neuron::engine
