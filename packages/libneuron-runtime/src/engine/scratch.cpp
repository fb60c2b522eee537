#include "engine/scratch.h"

#include <algorithm>
#include <cstdlib>
#include <new>

namespace neuron::engine {
namespace {

struct Block {
  char* memory = nullptr;
  size_t size = 0, used = 0, wanted = 0;
  ~Block() { std::free(memory); }
};
thread_local Block block;

char* allocate(size_t bytes) {
  void* p = std::aligned_alloc(64, bytes);
  if (!p) throw std::bad_alloc();
  return static_cast<char*>(p);
}

}  // namespace

Scratch::Scratch() : mark_(block.used) {}

Scratch::~Scratch() {
  block.used = mark_;
  while (extra_) {
    void* following = *static_cast<void**>(extra_);
    std::free(extra_);
    extra_ = following;
  }
}

char* Scratch::take(size_t bytes) {
  bytes = (bytes + 63) & ~size_t{63};
  block.wanted = std::max(block.wanted, block.used + bytes);
  if (block.used + bytes > block.size && block.used == 0) {  // nobody holds a part of it: grow
    std::free(block.memory);
    block.memory = nullptr;
    block.size = 0;
    const size_t size = std::max<size_t>((block.wanted + 65535) & ~size_t{65535}, 65536);
    block.memory = allocate(size);
    block.size = size;
  }
  const size_t at = block.used;
  block.used += bytes;  // counted even when it does not fit, so that the block is large enough the next time
  if (block.used <= block.size) return block.memory + at;
  char* p = allocate(bytes + 64);
  *reinterpret_cast<void**>(p) = extra_;
  extra_ = p;
  return p + 64;
}

}  // namespace neuron::engine
