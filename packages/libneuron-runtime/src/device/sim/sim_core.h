// A simulated NeuronCore: an arena, scratch memory, and a lock that gives the core to one launch at a time.
#pragma once

#include "base/mutex.h"
#include "device/device.h"
#include "device/sim/arena.h"

namespace neuron::sim {

class SimCore final : public Core {
 public:
  SimCore(Visibility& visibility, uint64_t limit) : visibility_(visibility), arena_(visibility, limit) {}
  ~SimCore() override;

  void* allocate(size_t size) override { return arena_.allocate(size); }
  bool free(void* address) override { return arena_.free(address); }
  bool owns(const void* address) const override { return arena_.owns(address); }
  void empty_cache() override;
  nrtx_memory_stats_t memory_stats() const override { return arena_.stats(); }
  void reset_peak() override { arena_.reset_peak(); }
  void execute(const Executable& executable, void* const* buffers, const uint64_t* scalars) override;

  void set_limit(uint64_t limit) { arena_.set_limit(limit); }

 private:
  // Memory of the launches, kept between them and grown on demand.
  void grow_temp(int64_t bytes);
  static void grow_on_chip(std::byte*& memory, int64_t& have, int64_t bytes);

  Visibility& visibility_;
  Arena arena_;
  Mutex running_;  // guards all below, and is held during a launch
  Scratch scratch_;
  int64_t temp_bytes_ = 0, sbuf_bytes_ = 0, psum_bytes_ = 0;
};

}  // namespace neuron::sim
