// The index vectors of GATHER and SCATTER: read, checked and turned into element offsets.
#pragma once

#include <vector>

#include "engine/instruction.h"

namespace neuron::engine {

class Indices {
 public:
  explicit Indices(const BoundInstruction& instruction);

  int64_t count() const { return count_; }

  // One index vector and what belongs to it.
  struct Entry {
    int64_t start;  // offset in the indexed operand, elements
    int64_t first;  // component 0
    int64_t
        position[2];  // offsets of the operand and of the other window (output or updates) along the batch dimensions
    bool skip;        // out of range and to be left out (SCATTER, CLAMP)
  };
  // Calls body(entry) for the index vectors begin to end, in row-major order. Throws NRT_EXEC_OOB (CHECK).
  template <class Body>
  void each(const Launch& launch, int64_t begin, int64_t end, bool scatter, Body&& body) const {
    std::array<int64_t, kMaxDims> at{};
    int64_t rest = begin;
    for (int d = batch_ - 1; d >= 0; --d) {
      at[d] = rest % extents_[d];
      rest /= extents_[d];
    }
    const char* memory = static_cast<const char*>(launch.buffers[window_.buffer]);
    for (int64_t i = begin; i < end; ++i) {
      Entry e{0, 0, {0, 0}, false};
      int64_t where = window_.offset;
      for (int d = 0; d < batch_; ++d) {
        where += at[d] * window_.strides[d];
        e.position[0] += at[d] * operand_strides_[d];
        e.position[1] += at[d] * other_strides_[d];
      }
      for (int j = 0; j < components_; ++j) {
        int64_t index = read(memory, where + j * component_stride_);
        if (index < 0 || index > limits_[j]) {
          if (!clamp_) refuse(index, j, i);
          e.skip = scatter || limits_[j] < 0;
          index = index < 0 || limits_[j] < 0 ? 0 : limits_[j];
        }
        if (j == 0) e.first = index;
        e.start += index * strides_[j];
      }
      body(e);
      for (int d = batch_ - 1; d >= 0; --d) {
        if (++at[d] < extents_[d]) break;
        at[d] = 0;
      }
    }
  }

  int components() const { return components_; }
  int64_t stride(int component) const { return strides_[component]; }
  int64_t limit(int component) const { return limits_[component]; }

 private:
  int64_t read(const char* memory, int64_t element) const {
    switch (window_.dtype) {
      case Dtype::INT64:
        return reinterpret_cast<const int64_t*>(memory)[element];
      case Dtype::INT32:
        return reinterpret_cast<const int32_t*>(memory)[element];
      default:
        return read_any(memory, element);
    }
  }
  int64_t read_any(const char* memory, int64_t element) const;
  [[noreturn]] void refuse(int64_t index, int component, int64_t position) const;

  std::string debug_;
  const char* name_;
  Window window_;
  int batch_, components_;
  bool clamp_;
  int64_t component_stride_, count_ = 1;
  std::array<int64_t, kMaxDims> extents_{}, strides_{}, limits_{}, operand_strides_{}, other_strides_{};
};

}  // namespace neuron::engine
