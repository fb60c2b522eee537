// The memory that a sequence of stages works on: a table of addresses (slots) and the buffers behind them.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "engine/instruction.h"
#include "engine/isa.h"

namespace neuron::engine {

// Planned while an instruction is prepared. Slots of windows come first; their addresses are set for every block. The
// others point into one of two buffers: `shared` holds numbers that are the same for the whole launch, `local` belongs
// to one thread.
class FrameLayout {
 public:
  explicit FrameLayout(int group) : group_(group) {}

  uint16_t add_window() { return static_cast<uint16_t>(windows_++); }  // before all others
  uint16_t add_constant(Kind kind, uint64_t bits);  // the number `bits` (8 bytes, in the register's format)
  uint16_t add_shared(size_t bytes) { return add(true, bytes); }
  uint16_t add_local(size_t bytes) { return add(false, bytes); }
  // A vector of one group, for a value that lives within it.
  uint16_t add_group(Kind kind);
  void release_group(Kind kind, uint16_t slot) { free_[kind == Kind::I64].push_back(slot); }

  int group() const { return group_; }
  // Elements of a buffer for n: whole groups, and one more, because kernels on rows inside the buffer read whole
  // vectors.
  size_t padded(int64_t n) const { return (static_cast<size_t>(n) / group_ + 2) * group_; }
  int windows() const { return windows_; }
  int slots() const { return windows_ + static_cast<int>(places_.size()); }
  size_t shared_bytes() const { return shared_; }
  size_t local_bytes() const { return local_; }

  // Copies the constants into a launch's shared buffer.
  void start(char* shared) const {
    if (!constants_.empty()) std::memcpy(shared, constants_.data(), constants_.size());
  }
  // Fills the slots that are not windows.
  void point(char** slots, char* shared, char* local) const {
    for (size_t i = 0; i < places_.size(); ++i)
      slots[windows_ + i] = (places_[i].shared ? shared : local) + places_[i].offset;
  }

 private:
  struct Place {
    bool shared;
    uint32_t offset;
  };
  uint16_t add(bool shared, size_t bytes);

  int group_;
  int windows_ = 0;
  std::vector<Place> places_;
  std::vector<char> constants_;  // image of the first bytes of `shared`: constants, and gaps where other numbers lie
  std::vector<uint32_t> constant_at_;  // offsets of the constants in it
  std::vector<uint16_t> free_[2];
  size_t shared_ = 0, local_ = 0;
};

// Bits of a CONST in the register's format, from the 8 bytes of a literal or a launch scalar (double for F32, else
// int64).
inline uint64_t register_bits(Kind kind, uint64_t imm) {
  if (kind == Kind::F32) {
    double wide;
    std::memcpy(&wide, &imm, sizeof wide);
    const float narrow = static_cast<float>(wide);
    uint32_t bits;
    std::memcpy(&bits, &narrow, sizeof bits);
    return bits;
  }
  return kind == Kind::I32 ? static_cast<uint32_t>(imm) : imm;
}

// The element at `p` in the register's format.
uint64_t load_number(Dtype dtype, const char* p);

}  // namespace neuron::engine
