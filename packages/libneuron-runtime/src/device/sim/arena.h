// The HBM of one simulated core: one range of addresses, used in blocks of 2 MiB. Small sizes share blocks by size
// class, large ones take runs of blocks. Pages are touched once and kept; empty_cache gives the free ones back to the
// host. All bookkeeping is outside the memory itself, which may be protected at any time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "base/spinlock.h"
#include "device/sim/visibility.h"
#include "neuron/launch.h"

namespace neuron::sim {

class Arena {
 public:
  static constexpr size_t kBlock = size_t{2} << 20;

  // Reserves addresses only. Throws Error(NRT_RESOURCE) when the host has no room for them.
  Arena(Visibility& visibility, uint64_t limit);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  void* allocate(size_t size);  // size at least 1; Error(NRT_RESOURCE) past the limit
  bool free(void* address);     // false: not in this arena; Error(NRT_INVALID): in it, but no allocation's start
  bool owns(const void* address) const;
  void empty_cache();
  nrtx_memory_stats_t stats() const;
  void reset_peak();
  // For nrt_init after nrt_close. What is reserved stays.
  void set_limit(uint64_t limit);

  // Bytes that an allocation of `size` occupies.
  static size_t rounded(size_t size);

 private:
  static constexpr size_t kUnit = 64;
  static constexpr uint32_t kBlockUnits = kBlock / kUnit;
  static constexpr size_t kLargestSmall = size_t{1} << 20;
  static constexpr int kClasses = 56;  // 64, 128, ... 1024, then four a doubling up to 1 MiB

  enum class Use : uint8_t { kFree, kSmall, kLarge, kLargeRest };
  struct Block {
    Use use = Use::kFree;
    bool committed = false;                // counted in reserved
    uint8_t size_class = 0;                // kSmall
    uint32_t live = 0;                     // kSmall: allocations
    uint32_t blocks = 0;                   // kLarge: length of the run
    size_t bytes = 0;                      // kLarge: size handed out
    std::unique_ptr<uint64_t[]> live_map;  // kSmall: bit set for the first unit of each live allocation
  };
  struct SizeClass {
    std::vector<uint32_t> free;  // starts of free pieces, in units
    uint32_t units = 0;          // size of a piece
    uint32_t next = 0, end = 0;  // pieces of the newest block that were never used: starts, in units
    bool empty() const { return free.empty() && next == end; }
  };

  static int class_of(size_t size);
  static size_t class_bytes(int size_class);

  // The class that a piece of `size_class` comes from, which has one now: itself, or a larger one when there is no
  // block left. Throws Error(NRT_RESOURCE).
  int provide(int size_class);
  bool take_blocks(uint32_t count, uint32_t& first);  // false when the limit would be passed
  bool find_blocks(uint32_t count, uint32_t& first);
  void give_blocks(uint32_t first, uint32_t count);
  bool refill(int size_class);
  void release_free();
  [[noreturn]] void out_of_memory(size_t size);

  Visibility& visibility_;
  std::byte* base_ = nullptr;
  size_t range_ = 0;  // bytes of reserved addresses
  void* mapping_ = nullptr;
  size_t mapping_bytes_ = 0;

  mutable Spinlock mutex_;  // guards all below
  std::array<SizeClass, kClasses> classes_;
  std::vector<Block> blocks_;               // those ever used, from base_
  std::map<uint32_t, uint32_t> free_runs_;  // first block -> length, never adjacent
  nrtx_memory_stats_t stats_{};
};

}  // namespace neuron::sim
