// Instructions that hand rows on to each other, such as product, softmax, product: they run together, some rows at a
// time, so that what one leaves for the next stays in the cache of a thread. Results are those of the instructions one
// after the other: a row's numbers never depend on which rows are computed with it.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "engine/instruction.h"

namespace neuron::engine {

// A part of a program's instructions, cut into tasks of `length` rows or less. A row is an index of the batch
// dimensions and M of the first instruction, which is a MATMUL.
class Chain {
 public:
  // The chain that begins with instruction `first`; members() has only that one if there is nothing to gain.
  Chain(std::span<const BoundInstruction> program, std::span<const BufferPlace> buffers, size_t first);

  const std::vector<size_t>& members() const { return members_; }
  std::unique_ptr<Kernel> prepare() const;

 private:
  struct Use {  // a window of a member
    size_t instruction, window;
    bool write;
  };
  // Where a window lies in each task, and what a row of it looks like: what must agree between the member that writes
  // and the one that reads.
  struct Rows {
    Dtype dtype;
    int64_t step;                                      // elements from row to row
    std::vector<int64_t> starts;                       // by task
    std::vector<std::pair<int64_t, int64_t>> columns;  // extent, stride
    int64_t span;                                      // from a row's first to its last element
    bool operator==(const Rows&) const = default;
  };

  const BoundInstruction& at(size_t i) const { return program_[i]; }
  int row_dimensions(const BoundInstruction& instruction) const;  // 0: has no such rows
  int64_t position(const BoundInstruction& instruction, int64_t row, int dimension) const;
  Rows rows_of(const Use& use) const;
  bool separate(const Rows& rows) const;
  bool overlap(uint32_t a, uint32_t b) const;
  bool conflict(size_t a, size_t b) const;
  bool joins(size_t i) const;
  bool is_private(uint32_t buffer) const;
  std::vector<Use> uses(size_t i) const;
  void cut(int64_t row_bytes);
  int64_t first_row(int64_t task) const { return task / parts_ * run_ + task % parts_ * length_; }
  int64_t task_rows(int64_t task) const { return std::min(length_, run_ - task % parts_ * length_); }

  std::span<const BoundInstruction> program_;
  std::span<const BufferPlace> buffers_;
  std::vector<size_t> members_, skipped_;
  int64_t rows_ = 0, run_ = 0;                  // all rows; rows of M, which lie one after the other in every member
  int64_t length_ = 0, parts_ = 0, tasks_ = 0;  // rows of a task; tasks of a run; tasks
};

}  // namespace neuron::engine
