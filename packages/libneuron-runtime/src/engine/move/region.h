// A copy between two windows of the same element size: loop dimensions simplified, cut into blocks.
#pragma once

#include <array>
#include <cstdint>

#include "engine/instruction.h"
#include "engine/isa.h"

namespace neuron::engine {

class Region {
 public:
  Region() = default;
  // Dimensions [first, first + count) of the instruction's extents, and the two windows' strides along them.
  Region(const BoundInstruction& instruction, const Isa& isa, int first, int count, const Window& from,
         const Window& to);

  int64_t elements() const { return elements_; }
  int64_t blocks() const { return blocks_; }
  int64_t block_bytes() const { return block_bytes_; }
  bool one_element() const { return elements_ == 1; }
  // Addresses are those of the windows' first elements. stream: non-temporal stores where possible.
  void copy(const char* from, char* to, int64_t first_block, int64_t last_block, bool stream = false) const;
  void copy(const char* from, char* to) const {
    if (contiguous_) {  // nobody has checked that a program's windows do not overlap
      __builtin_memmove(to, from, static_cast<size_t>(elements_ * bytes_));
    } else {
      copy(from, to, 0, blocks_);
    }
  }

 private:
  const Isa* isa_ = nullptr;
  int bytes_ = 1, rank_ = 0, row_ = -1;
  bool contiguous_ = false;
  int64_t elements_ = 1, blocks_ = 1, block_bytes_ = 0;
  std::array<int64_t, kMaxDims> extents_{}, tile_{}, counts_{}, from_{}, to_{};
};

}  // namespace neuron::engine
