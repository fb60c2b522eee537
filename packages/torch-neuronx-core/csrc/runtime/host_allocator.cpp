#include "runtime/host_allocator.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "runtime/device.h"

namespace torch_neuronx {

namespace {

constexpr size_t kAlignment = 64;  // a cache line

struct PinnedBlocks {
  std::mutex mutex;
  std::map<const char*, size_t> sizes;  // by first address
  at::HostStats stats;
};

PinnedBlocks& pinned() {
  static auto* blocks = new PinnedBlocks();  // never destroyed: tensors may outlive static destruction
  return *blocks;
}

void release(void* address) {
  if (address == nullptr) {
    return;
  }
  PinnedBlocks& blocks = pinned();
  {
    std::lock_guard<std::mutex> lock(blocks.mutex);
    const auto found = blocks.sizes.find(static_cast<const char*>(address));
    const size_t nbytes = found->second;
    blocks.sizes.erase(found);
    blocks.stats.allocations.decrease(1);
    blocks.stats.active_requests.decrease(1);
    blocks.stats.allocated_bytes.decrease(nbytes);
    blocks.stats.active_bytes.decrease(nbytes);
  }
  std::free(address);
}

struct PinnedAllocator final : at::HostAllocator {
  c10::DataPtr allocate(size_t nbytes) override {
    if (nbytes == 0) {
      return {nullptr, nullptr, &release, c10::Device(c10::DeviceType::CPU)};
    }
    void* address = nullptr;
    TORCH_CHECK_WITH(OutOfMemoryError, posix_memalign(&address, kAlignment, nbytes) == 0, "Cannot allocate ", nbytes,
                     " bytes of pinned host memory");
    PinnedBlocks& blocks = pinned();
    std::lock_guard<std::mutex> lock(blocks.mutex);
    blocks.sizes.emplace(static_cast<const char*>(address), nbytes);
    blocks.stats.allocations.increase(1);
    blocks.stats.active_requests.increase(1);
    blocks.stats.allocated_bytes.increase(nbytes);
    blocks.stats.active_bytes.increase(nbytes);
    ++blocks.stats.num_host_alloc;
    return {address, address, &release, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* destination, const void* source, std::size_t nbytes) const override {
    std::memcpy(destination, source, nbytes);
  }
  // Copies have read the block when they return, so it may be freed at any time.
  bool record_event(void* address, void* /*context*/, c10::Stream /*stream*/) override { return is_pinned(address); }
  void empty_cache() override {}  // nothing is kept
  at::HostStats get_stats() override {
    std::lock_guard<std::mutex> lock(pinned().mutex);
    return pinned().stats;
  }
  void reset_accumulated_stats() override {
    std::lock_guard<std::mutex> lock(pinned().mutex);
    at::HostStats& stats = pinned().stats;
    for (auto* stat : {&stats.allocations, &stats.active_requests, &stats.allocated_bytes, &stats.active_bytes}) {
      stat->reset_accumulated();
    }
    stats.num_host_alloc = stats.num_host_free = 0;
  }
  void reset_peak_stats() override {
    std::lock_guard<std::mutex> lock(pinned().mutex);
    at::HostStats& stats = pinned().stats;
    for (auto* stat : {&stats.allocations, &stats.active_requests, &stats.allocated_bytes, &stats.active_bytes}) {
      stat->reset_peak();
    }
  }
};

}  // namespace

at::HostAllocator* host_allocator() {
  static auto* instance = new PinnedAllocator();
  return instance;
}

bool is_pinned(const void* address) {
  PinnedBlocks& blocks = pinned();
  std::lock_guard<std::mutex> lock(blocks.mutex);
  auto above = blocks.sizes.upper_bound(static_cast<const char*>(address));
  if (above == blocks.sizes.begin()) {
    return false;
  }
  const auto& [first, nbytes] = *--above;
  return static_cast<const char*>(address) < first + nbytes;
}

void register_host_allocator() { at::setHostAllocator(kNeuron, host_allocator()); }

}  // namespace torch_neuronx
