#include "device/sim/sim_core.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>

namespace neuron::sim {

namespace {

constexpr std::align_val_t kAlignment{64};

}  // namespace

SimCore::~SimCore() {
  ::operator delete(scratch_.sbuf, kAlignment);
  ::operator delete(scratch_.psum, kAlignment);
}

void SimCore::grow_temp(int64_t bytes) {
  if (scratch_.temp) arena_.free(scratch_.temp);
  scratch_.temp = nullptr;
  temp_bytes_ = 0;
  scratch_.temp = static_cast<std::byte*>(arena_.allocate(static_cast<size_t>(bytes)));
  temp_bytes_ = bytes;
}

// On-chip memory is not part of HBM.
void SimCore::grow_on_chip(std::byte*& memory, int64_t& have, int64_t bytes) {
  ::operator delete(memory, kAlignment);
  memory = nullptr;
  have = 0;
  memory = static_cast<std::byte*>(::operator new(static_cast<size_t>(bytes), kAlignment));
  std::memset(memory, 0, static_cast<size_t>(bytes));
  have = bytes;
}

void SimCore::empty_cache() {
  {
    std::lock_guard lock(running_);
    if (scratch_.temp) arena_.free(scratch_.temp);
    scratch_.temp = nullptr;
    temp_bytes_ = 0;
  }
  arena_.empty_cache();
}

void SimCore::execute(const Executable& executable, void* const* buffers, const uint64_t* scalars) {
  std::lock_guard lock(running_);
  if (executable.temp_bytes() > temp_bytes_) grow_temp(executable.temp_bytes());
  if (executable.sbuf_bytes() > sbuf_bytes_) grow_on_chip(scratch_.sbuf, sbuf_bytes_, executable.sbuf_bytes());
  if (executable.psum_bytes() > psum_bytes_) grow_on_chip(scratch_.psum, psum_bytes_, executable.psum_bytes());
  const Visibility::Scope scope(visibility_);
  executable.run(buffers, scalars, scratch_);
}

}  // namespace neuron::sim
