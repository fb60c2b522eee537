#include "device/sim/arena.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "base/error.h"

namespace neuron::sim {

namespace {

constexpr size_t kMinRange = size_t{1} << 30;
// Addresses beyond the limit keep large runs allocatable although freed ones are scattered.
constexpr size_t kRangeFactor = 4;
constexpr size_t kMaxRange =
    (size_t{64} << 32) - Arena::kBlock;  // pieces are numbered in 32 bits, in units of 64 bytes

}  // namespace

Arena::Arena(Visibility& visibility, uint64_t limit) : visibility_(visibility) {
  // In hosts with strict overcommit or little address space, settle for less.
  const size_t wanted = std::clamp<size_t>(limit * kRangeFactor, kMinRange, kMaxRange);
  for (size_t range = wanted / kBlock * kBlock; range >= kBlock; range = range / 2 / kBlock * kBlock) {
    mapping_bytes_ = range + kBlock;
    mapping_ = mmap(nullptr, mapping_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping_ == MAP_FAILED) continue;
    range_ = range;
    break;
  }
  if (range_ == 0) {
    throw Error(NRT_RESOURCE, format("cannot reserve addresses for %llu bytes of device memory: %s",
                                     static_cast<unsigned long long>(limit), std::strerror(errno)));
  }
  const auto start = (reinterpret_cast<uintptr_t>(mapping_) + kBlock - 1) / kBlock * kBlock;
  base_ = reinterpret_cast<std::byte*>(start);
  const int protection = visibility_.add(base_, range_);
  if (protection != PROT_NONE && mprotect(base_, range_, protection) != 0) {
    munmap(mapping_, mapping_bytes_);
    throw Error(NRT_RESOURCE, format("cannot map %zu bytes for device memory: %s", range_, std::strerror(errno)));
  }
  madvise(base_, range_, MADV_HUGEPAGE);  // a block is a huge page: fewer faults on first touch
  stats_.limit = limit;
  for (int n = 0; n < kClasses; ++n) {
    classes_[static_cast<size_t>(n)].units = static_cast<uint32_t>(class_bytes(n) / kUnit);
  }
}

Arena::~Arena() { munmap(mapping_, mapping_bytes_); }

int Arena::class_of(size_t size) {
  if (size <= 1024) return static_cast<int>((size - 1) / kUnit);
  const size_t n = size - 1;
  const int shift = std::bit_width(n) - 3;
  return 16 + (shift - 8) * 4 + static_cast<int>((n >> shift) - 4);
}

size_t Arena::class_bytes(int size_class) {
  if (size_class < 16) return (static_cast<size_t>(size_class) + 1) * kUnit;
  const int shift = (size_class - 16) / 4 + 8;
  return (static_cast<size_t>((size_class - 16) % 4) + 5) << shift;
}

size_t Arena::rounded(size_t size) {
  return size <= kLargestSmall ? class_bytes(class_of(size)) : (size + kUnit - 1) / kUnit * kUnit;
}

void* Arena::allocate(size_t size) {
  std::lock_guard lock(mutex_);
  size_t bytes = 0;
  uint32_t unit = 0;
  if (size <= kLargestSmall) {
    int size_class = class_of(size);
    if (classes_[static_cast<size_t>(size_class)].empty()) size_class = provide(size_class);
    SizeClass& list = classes_[static_cast<size_t>(size_class)];
    bytes = size_t{list.units} * kUnit;
    if (!list.free.empty()) {
      unit = list.free.back();
      list.free.pop_back();
    } else {
      unit = list.next;
      list.next += list.units;
    }
    Block& block = blocks_[unit / kBlockUnits];
    const uint32_t bit = unit % kBlockUnits;
    block.live_map[bit / 64] |= uint64_t{1} << (bit % 64);
    ++block.live;
  } else {
    if (size > stats_.limit) out_of_memory(size);
    bytes = (size + kUnit - 1) / kUnit * kUnit;
    const auto count = static_cast<uint32_t>((bytes + kBlock - 1) / kBlock);
    uint32_t first = 0;
    if (!take_blocks(count, first)) out_of_memory(size);
    blocks_[first].use = Use::kLarge;
    blocks_[first].blocks = count;
    blocks_[first].bytes = bytes;
    for (uint32_t n = 1; n < count; ++n) {
      blocks_[first + n].use = Use::kLargeRest;
      blocks_[first + n].blocks = n;  // distance to the first
    }
    unit = first * kBlockUnits;
  }
  ++stats_.allocations;
  stats_.allocated += bytes;
  stats_.peak_allocated = std::max(stats_.peak_allocated, stats_.allocated);
  return base_ + size_t{unit} * kUnit;
}

bool Arena::free(void* address) {
  if (address < base_ || address >= base_ + range_) return false;
  const auto offset = static_cast<size_t>(static_cast<std::byte*>(address) - base_);
  const auto number = static_cast<uint32_t>(offset / kBlock);
  std::lock_guard lock(mutex_);
  Block* block = number < blocks_.size() ? &blocks_[number] : nullptr;
  if (block && block->use == Use::kSmall) {
    const uint32_t unit = static_cast<uint32_t>(offset / kUnit) % kBlockUnits;
    const uint64_t bit = uint64_t{1} << (unit % 64);
    if (offset % kUnit == 0 && (block->live_map[unit / 64] & bit)) {
      SizeClass& list = classes_[block->size_class];
      block->live_map[unit / 64] &= ~bit;
      --block->live;
      list.free.push_back(static_cast<uint32_t>(offset / kUnit));
      stats_.allocated -= list.units * kUnit;
      ++stats_.frees;
      return true;
    }
  } else if (block && block->use == Use::kLarge && offset % kBlock == 0) {
    stats_.allocated -= block->bytes;
    give_blocks(number, block->blocks);
    ++stats_.frees;
    return true;
  }
  throw Error(NRT_INVALID, format("%p is not the start of a live allocation of device memory", address));
}

bool Arena::owns(const void* address) const {
  if (address < base_ || address >= base_ + range_) return false;
  const auto offset = static_cast<size_t>(static_cast<const std::byte*>(address) - base_);
  std::lock_guard lock(mutex_);
  auto number = static_cast<uint32_t>(offset / kBlock);
  if (number >= blocks_.size()) return false;
  switch (blocks_[number].use) {
    case Use::kFree:
      return false;
    case Use::kSmall: {
      uint32_t unit = static_cast<uint32_t>(offset / kUnit) % kBlockUnits;
      unit -= unit % classes_[blocks_[number].size_class].units;
      return blocks_[number].live_map[unit / 64] >> (unit % 64) & 1;
    }
    case Use::kLargeRest:
      number -= blocks_[number].blocks;
      [[fallthrough]];
    case Use::kLarge:
      return offset - size_t{number} * kBlock < blocks_[number].bytes;
  }
  return false;
}

int Arena::provide(int size_class) {
  if (refill(size_class)) return size_class;
  for (int larger = size_class + 1; larger < kClasses; ++larger) {
    if (!classes_[static_cast<size_t>(larger)].empty()) return larger;
  }
  out_of_memory(class_bytes(size_class));
}

bool Arena::refill(int size_class) {
  SizeClass& list = classes_[static_cast<size_t>(size_class)];
  uint32_t first = 0;
  if (!take_blocks(1, first)) return false;
  const uint32_t pieces = kBlockUnits / list.units;
  Block& block = blocks_[first];
  block.use = Use::kSmall;
  block.size_class = static_cast<uint8_t>(size_class);
  block.live = 0;
  block.live_map = std::make_unique<uint64_t[]>(kBlockUnits / 64);
  list.free.reserve(list.free.capacity() + pieces);  // so that free() never allocates
  list.next = first * kBlockUnits;
  list.end = list.next + pieces * list.units;
  return true;
}

// The smallest free run that fits, or new addresses at the end.
bool Arena::find_blocks(uint32_t count, uint32_t& first) {
  auto best = free_runs_.end();
  for (auto run = free_runs_.begin(); run != free_runs_.end(); ++run) {
    if (run->second >= count && (best == free_runs_.end() || run->second < best->second)) best = run;
  }
  uint32_t missing = 0;
  if (best != free_runs_.end()) {
    first = best->first;
    for (uint32_t n = 0; n < count; ++n) missing += !blocks_[first + n].committed;
  } else {
    first = static_cast<uint32_t>(blocks_.size());
    missing = count;
    if ((size_t{first} + count) * kBlock > range_) return false;
  }
  if (stats_.reserved + size_t{missing} * kBlock > stats_.limit) return false;
  if (best != free_runs_.end()) {
    const uint32_t rest = best->second - count;
    free_runs_.erase(best);
    if (rest > 0) free_runs_.emplace(first + count, rest);
  } else {
    blocks_.resize(size_t{first} + count);
  }
  for (uint32_t n = 0; n < count; ++n) blocks_[first + n].committed = true;
  stats_.reserved += size_t{missing} * kBlock;
  stats_.peak_reserved = std::max(stats_.peak_reserved, stats_.reserved);
  return true;
}

bool Arena::take_blocks(uint32_t count, uint32_t& first) {
  if (find_blocks(count, first)) return true;
  release_free();
  return find_blocks(count, first);
}

void Arena::out_of_memory(size_t size) {
  ++stats_.out_of_memory;
  throw Error(
      NRT_RESOURCE,
      format(
          "device memory is exhausted: %zu bytes were asked for, %llu of %llu bytes are allocated and %llu reserved; "
          "free tensors, or raise NEURON_SIM_HBM_BYTES",
          size, static_cast<unsigned long long>(stats_.allocated), static_cast<unsigned long long>(stats_.limit),
          static_cast<unsigned long long>(stats_.reserved)));
}

void Arena::give_blocks(uint32_t first, uint32_t count) {
  for (uint32_t n = 0; n < count; ++n) {
    blocks_[first + n].use = Use::kFree;
    blocks_[first + n].blocks = 0;
    blocks_[first + n].live_map.reset();
  }
  auto next = free_runs_.lower_bound(first);
  if (next != free_runs_.end() && next->first == first + count) {
    count += next->second;
    next = free_runs_.erase(next);
  }
  if (next != free_runs_.begin()) {
    auto previous = std::prev(next);
    if (previous->first + previous->second == first) {
      previous->second += count;
      return;
    }
  }
  free_runs_.emplace(first, count);
}

void Arena::release_free() {
  // Blocks of small pieces without a live one become free blocks first.
  const auto unused = [&](uint32_t unit) {
    const Block& block = blocks_[unit / kBlockUnits];
    return block.use == Use::kSmall && block.live == 0;
  };
  for (SizeClass& list : classes_) {
    std::erase_if(list.free, unused);
    if (list.next != list.end && unused(list.next)) list.next = list.end = 0;
  }
  for (uint32_t n = 0; n < blocks_.size(); ++n) {
    if (blocks_[n].use == Use::kSmall && blocks_[n].live == 0) give_blocks(n, 1);
  }
  for (const auto& [first, count] : free_runs_) {
    for (uint32_t n = first; n < first + count; ++n) {
      if (!blocks_[n].committed) continue;
      madvise(base_ + size_t{n} * kBlock, kBlock, MADV_DONTNEED);
      blocks_[n].committed = false;
      stats_.reserved -= kBlock;
    }
  }
}

void Arena::empty_cache() {
  std::lock_guard lock(mutex_);
  release_free();
}

nrtx_memory_stats_t Arena::stats() const {
  std::lock_guard lock(mutex_);
  return stats_;
}

void Arena::reset_peak() {
  std::lock_guard lock(mutex_);
  stats_.peak_allocated = stats_.allocated;
  stats_.peak_reserved = stats_.reserved;
}

void Arena::set_limit(uint64_t limit) {
  std::lock_guard lock(mutex_);
  stats_.limit = limit;
}

}  // namespace neuron::sim
