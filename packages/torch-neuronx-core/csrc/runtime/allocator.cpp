#include "runtime/allocator.h"

#include <array>
#include <atomic>
#include <deque>
#include <mutex>

#include "neuron/launch.h"
#include "runtime/lock.h"

namespace torch_neuronx {

namespace {

using c10::CachingAllocator::Stat;
using c10::CachingAllocator::StatArray;
using c10::CachingAllocator::StatType;

// Requests below this count as the small pool in torch's statistics.
constexpr size_t kSmallPool = size_t{1} << 20;

// A block this small waits for the next request of its size instead of going back to the runtime: tensors of a few
// numbers come and go by the million.
constexpr size_t kKeptBytes = 4096, kUnit = 64;

struct DeviceMemory;

// One allocation: the context of its DataPtr. Kept outside device memory, which the host may not be able to read.
struct Block {
  void* address;
  size_t nbytes;  // 0 while no DataPtr has it
  DeviceMemory* memory;
  Block* next;  // on a list
};

struct DeviceMemory {
  c10::DeviceIndex device = 0;
  Lock mutex;                                   // a leaf
  Block* unused = nullptr;                      // Blocks without memory
  std::array<Block*, kKeptBytes / kUnit> kept;  // with memory, by size in units, less one
  size_t kept_bytes = 0;
  std::deque<Block> blocks;  // owner of all Blocks; their addresses stay valid
  StatArray allocation, allocated_bytes;
  std::atomic<int64_t> retries{0}, out_of_memory{0};

  DeviceMemory() { kept.fill(nullptr); }
};

size_t units_of(size_t nbytes) { return (nbytes + kUnit - 1) / kUnit; }

Block* pop(Block*& list) {
  Block* block = list;
  if (block != nullptr) {
    list = block->next;
  }
  return block;
}

void push(Block*& list, Block* block) {
  block->next = list;
  list = block;
}

// Never destroyed: tensors may be freed in exit handlers.
DeviceMemory& memory_of(c10::DeviceIndex device) {
  static auto* const all = [] {
    const c10::DeviceIndex count = device_count();
    auto* memories = new DeviceMemory[static_cast<size_t>(count)];
    for (c10::DeviceIndex n = 0; n < count; ++n) {
      memories[n].device = n;
    }
    return memories;
  }();
  return all[static_cast<size_t>(device)];
}

template <typename Change>
void count(DeviceMemory& memory, size_t nbytes, Change change) {
  const auto pool = static_cast<size_t>(nbytes < kSmallPool ? StatType::SMALL_POOL : StatType::LARGE_POOL);
  for (const size_t kind : {static_cast<size_t>(StatType::AGGREGATE), pool}) {
    change(memory.allocation[kind], size_t{1});
    change(memory.allocated_bytes[kind], nbytes);
  }
}

// What the runtime knows, with the kept blocks as free memory.
nrtx_memory_stats_t runtime_stats(DeviceMemory& memory) {
  nrtx_memory_stats_t stats{};
  check(nrtx_memory_stats(memory.device, &stats), "Cannot read the memory statistics");
  std::lock_guard<Lock> lock(memory.mutex);
  stats.allocated -= std::min<uint64_t>(stats.allocated, memory.kept_bytes);
  return stats;
}

void give_back_kept(DeviceMemory& memory) {
  std::lock_guard<Lock> lock(memory.mutex);
  for (Block*& list : memory.kept) {
    while (Block* block = pop(list)) {
      nrtx_memory_free(block->address);
      push(memory.unused, block);
    }
  }
  memory.kept_bytes = 0;
}

void empty_cache(DeviceMemory& memory) {
  give_back_kept(memory);
  check(nrtx_memory_empty_cache(memory.device), "Cannot give cached memory back");
}

std::string as_size(uint64_t nbytes) {
  std::ostringstream text;
  text.precision(2);
  text << std::fixed;
  if (nbytes < (uint64_t{1} << 20)) {
    text << static_cast<double>(nbytes) / 1024 << " KiB";
  } else if (nbytes < (uint64_t{1} << 30)) {
    text << static_cast<double>(nbytes) / (1 << 20) << " MiB";
  } else {
    text << static_cast<double>(nbytes) / (1 << 30) << " GiB";
  }
  return text.str();
}

[[noreturn]] void throw_out_of_memory(size_t nbytes, DeviceMemory& memory) {
  const nrtx_memory_stats_t stats = runtime_stats(memory);
  const uint64_t free = stats.limit > stats.allocated ? stats.limit - stats.allocated : 0;
  c10::reportOutOfMemoryToProfiler(static_cast<int64_t>(nbytes), stats.allocated, stats.reserved,
                                   c10::Device(kNeuron, memory.device));
  TORCH_CHECK_WITH(OutOfMemoryError, false, "NEURON out of memory. Tried to allocate ", as_size(nbytes), ". Core ",
                   static_cast<int>(memory.device), " has a total capacity of ", as_size(stats.limit), " of which ",
                   as_size(free), " is free; ", as_size(stats.allocated), " is allocated and ", as_size(stats.reserved),
                   " is reserved. Free tensors or use smaller batches; in simulation NEURON_SIM_HBM_BYTES sets the "
                   "capacity");
}

void* take_memory(size_t nbytes, DeviceMemory& memory) {
  void* address = nullptr;
  NRT_STATUS status = nrtx_memory_allocate(memory.device, nbytes, &address);
  if (status == NRT_RESOURCE) {
    ++memory.retries;
    empty_cache(memory);
    status = nrtx_memory_allocate(memory.device, nbytes, &address);
    if (status == NRT_RESOURCE) {
      ++memory.out_of_memory;
      throw_out_of_memory(nbytes, memory);
    }
  }
  check(status, "Cannot allocate device memory");
  return address;
}

void report_to_profiler(void* address, int64_t nbytes, size_t allocated, DeviceMemory& memory) {
  c10::reportMemoryUsageToProfiler(address, nbytes, allocated, runtime_stats(memory).reserved,
                                   c10::Device(kNeuron, memory.device));
}

void release(void* context) {
  // After a fork the runtime's locks may be held by threads that this process does not have.
  if (context == nullptr || in_bad_fork()) {
    return;
  }
  auto* block = static_cast<Block*>(context);
  DeviceMemory& memory = *block->memory;
  const size_t nbytes = block->nbytes;
  void* const address = block->address;
  const bool keep = nbytes <= kKeptBytes;
  size_t allocated = 0;
  {
    std::lock_guard<Lock> lock(memory.mutex);
    count(memory, nbytes, [](Stat& stat, size_t amount) { stat.decrease(amount); });
    allocated = static_cast<size_t>(memory.allocated_bytes[0].current);
    block->nbytes = 0;
    if (keep) {
      push(memory.kept[units_of(nbytes) - 1], block);
      memory.kept_bytes += units_of(nbytes) * kUnit;
    } else {
      push(memory.unused, block);
    }
  }
  if (!keep) {
    nrtx_memory_free(address);
  }
  if (c10::memoryProfilingEnabled()) [[unlikely]] {
    report_to_profiler(address, -static_cast<int64_t>(nbytes), allocated, memory);
  }
}

struct NeuronAllocator final : c10::DeviceAllocator {
  c10::DataPtr allocate(size_t nbytes) override { return torch_neuronx::allocate(nbytes, current_device()); }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }  // the context is a Block, not the address
  void copy_data(void* destination, const void* source, std::size_t nbytes) const override {
    check(nrtx_copy_on_device(destination, source, nbytes), "Cannot copy device memory");
  }
  bool initialized() override { return is_ready(); }
  void emptyCache(c10::MempoolId_t /*pool*/) override {
    if (is_ready()) {
      for (c10::DeviceIndex device = 0; device < device_count(); ++device) {
        empty_cache(memory_of(device));
      }
    }
  }
  // Memory is reused only by work that runs later, inline; there is nothing to wait for.
  void recordStream(const c10::DataPtr& /*data*/, c10::Stream /*stream*/) override {}

  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex device) override {
    ensure_ready();
    DeviceMemory& memory = memory_of(resolve(c10::Device(kNeuron, device)));
    const nrtx_memory_stats_t runtime = runtime_stats(memory);
    c10::CachingDeviceAllocator::DeviceStats stats;
    std::lock_guard<Lock> lock(memory.mutex);
    stats.allocation = stats.active = memory.allocation;
    stats.allocated_bytes = stats.active_bytes = stats.requested_bytes = memory.allocated_bytes;
    Stat& reserved = stats.reserved_bytes[static_cast<size_t>(StatType::AGGREGATE)];
    reserved.current = static_cast<int64_t>(runtime.reserved);
    reserved.peak = static_cast<int64_t>(runtime.peak_reserved);
    stats.num_alloc_retries = memory.retries;
    stats.num_ooms = memory.out_of_memory;
    stats.num_device_alloc = static_cast<int64_t>(runtime.allocations);
    stats.num_device_free = static_cast<int64_t>(runtime.frees);
    return stats;
  }
  void resetAccumulatedStats(c10::DeviceIndex device) override {
    DeviceMemory& memory = memory_of(resolve(c10::Device(kNeuron, device)));
    std::lock_guard<Lock> lock(memory.mutex);
    for (StatArray* array : {&memory.allocation, &memory.allocated_bytes}) {
      for (Stat& stat : *array) {
        stat.reset_accumulated();
      }
    }
    memory.retries = 0;
    memory.out_of_memory = 0;
  }
  void resetPeakStats(c10::DeviceIndex device) override {
    DeviceMemory& memory = memory_of(resolve(c10::Device(kNeuron, device)));
    {
      std::lock_guard<Lock> lock(memory.mutex);
      for (StatArray* array : {&memory.allocation, &memory.allocated_bytes}) {
        for (Stat& stat : *array) {
          stat.reset_peak();
        }
      }
    }
    if (is_ready()) {
      check(nrtx_memory_reset_peak(device), "Cannot reset the memory statistics");
    }
  }
  // Free and total bytes.
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex device) override {
    ensure_ready();
    const nrtx_memory_stats_t stats = runtime_stats(memory_of(resolve(c10::Device(kNeuron, device))));
    return {stats.limit > stats.allocated ? stats.limit - stats.allocated : 0, stats.limit};
  }
};

}  // namespace

c10::DeviceAllocator* allocator() {
  static auto* instance = new NeuronAllocator();
  return instance;
}

c10::DataPtr allocate(size_t nbytes, c10::DeviceIndex device) {
  ensure_ready();
  const c10::Device where(kNeuron, device);
  if (nbytes == 0) {
    return {nullptr, nullptr, &release, where};
  }
  DeviceMemory& memory = memory_of(device);
  const bool keep = nbytes <= kKeptBytes;
  const size_t rounded = keep ? units_of(nbytes) * kUnit : nbytes;
  Block* block = nullptr;
  size_t allocated = 0;
  const auto hand_out = [&] {
    block->nbytes = nbytes;
    count(memory, nbytes, [](Stat& stat, size_t amount) { stat.increase(amount); });
    allocated = static_cast<size_t>(memory.allocated_bytes[0].current);
  };
  if (keep) {
    std::lock_guard<Lock> lock(memory.mutex);
    block = pop(memory.kept[units_of(nbytes) - 1]);
    if (block != nullptr) [[likely]] {
      memory.kept_bytes -= rounded;
      hand_out();
    }
  }
  if (block == nullptr) {
    void* const address = take_memory(rounded, memory);
    std::lock_guard<Lock> lock(memory.mutex);
    block = pop(memory.unused);
    if (block == nullptr) {
      block = &memory.blocks.emplace_back();
      block->memory = &memory;
    }
    block->address = address;
    hand_out();
  }
  if (c10::memoryProfilingEnabled()) [[unlikely]] {
    report_to_profiler(block->address, static_cast<int64_t>(nbytes), allocated, memory);
  }
  return {block->address, block, &release, where};
}

std::vector<std::pair<uintptr_t, size_t>> live_blocks(c10::DeviceIndex device) {
  DeviceMemory& memory = memory_of(resolve(c10::Device(kNeuron, device)));
  std::vector<std::pair<uintptr_t, size_t>> live;
  std::lock_guard<Lock> lock(memory.mutex);
  for (const Block& block : memory.blocks) {
    if (block.nbytes != 0) {
      live.emplace_back(reinterpret_cast<uintptr_t>(block.address), block.nbytes);
    }
  }
  return live;
}

void register_allocator() { c10::SetAllocator(kNeuron, allocator()); }

}  // namespace torch_neuronx
