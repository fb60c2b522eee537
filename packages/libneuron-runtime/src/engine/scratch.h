// Memory for one task of one thread, given back when the object goes. Takes come from a block that the thread keeps.
#pragma once

#include <cstddef>

namespace neuron::engine {

class Scratch {
 public:
  Scratch();
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  // 64-byte aligned, not initialised.
  char* take(size_t bytes);

 private:
  size_t mark_;
  void* extra_ = nullptr;  // list of blocks that did not fit
};

}  // namespace neuron::engine
