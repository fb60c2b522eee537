#include "dispatch/cache.h"

#include <array>
#include <atomic>
#include <mutex>
#include <vector>

namespace torch_neuronx::dispatch {

namespace {

// 8,192 entries: the signatures of a training run with a few hundred shapes, at 1-2 KB each. Sets of four keep the
// least recently used out without a list; one mutex serves every 32nd set, so that threads seldom meet.
constexpr size_t kSets = 2048, kWays = 4, kMutexes = 32;

struct Slot {
  uint64_t hash = 0;
  uint64_t used = 0;  // the set's clock at the last use
  std::shared_ptr<const Entry> entry;
};

struct Set {
  uint64_t clock = 0;
  std::array<Slot, kWays> ways;
};

struct Table {
  std::array<std::mutex, kMutexes> mutexes;  // leaves
  std::vector<Set> sets = std::vector<Set>(kSets);
  std::atomic<uint64_t> epoch{0};  // raised by clear_entries(); fronts of another epoch are stale

  // Fronts use the low bits.
  static size_t set_of(uint64_t hash) { return hash >> 20 & (kSets - 1); }
  std::mutex& mutex_of(size_t set) { return mutexes[set & (kMutexes - 1)]; }
};

Table& table() {
  static auto* instance = new Table();  // never destroyed: threads may outlive static destruction
  return *instance;
}

// A thread's own recent entries, found without a lock.
constexpr size_t kFront = 256;

struct Front {
  struct Line {
    uint64_t hash = 0;
    uint64_t epoch = 0;
    std::shared_ptr<const Entry> entry;
  };
  std::array<Line, kFront> lines;
};

// Reached at every call: a slot of the static TLS block costs one load where the default costs a function call.
[[gnu::tls_model("initial-exec")]] constinit thread_local Front* front = nullptr;

// Kept until the thread ends; a thread that still calls operators after that gets another one, which is not freed.
Front::Line& line_of(uint64_t hash) {
  if (front == nullptr) [[unlikely]] {
    struct Owner {
      std::unique_ptr<Front> owned = std::make_unique<Front>();
      ~Owner() { front = nullptr; }
    };
    constinit thread_local bool owned = false;
    if (owned) {
      front = new Front();
    } else {
      owned = true;
      thread_local Owner owner;
      front = owner.owned.get();
    }
  }
  return front->lines[hash & (kFront - 1)];
}

}  // namespace

const Entry* find_entry(const Key& key, uint64_t hash) {
  Front::Line& line = line_of(hash);
  const uint64_t epoch = table().epoch.load(std::memory_order_acquire);
  if (line.hash == hash && line.epoch == epoch && line.entry != nullptr && key.equals(line.entry->key)) [[likely]] {
    return line.entry.get();
  }
  const size_t position = Table::set_of(hash);
  std::lock_guard<std::mutex> lock(table().mutex_of(position));
  Set& set = table().sets[position];
  for (Slot& slot : set.ways) {
    if (slot.entry != nullptr && slot.hash == hash && key.equals(slot.entry->key)) {
      slot.used = ++set.clock;
      line = {hash, epoch, slot.entry};
      return line.entry.get();
    }
  }
  return nullptr;
}

const Entry* insert_entry(std::shared_ptr<const Entry> entry, uint64_t hash) {
  Front::Line& line = line_of(hash);
  line = {hash, table().epoch.load(std::memory_order_acquire), entry};
  const size_t position = Table::set_of(hash);
  std::shared_ptr<const Entry> forgotten;  // freed after the lock
  std::lock_guard<std::mutex> lock(table().mutex_of(position));
  Set& set = table().sets[position];
  Slot* oldest = &set.ways[0];
  for (Slot& slot : set.ways) {
    if (slot.entry != nullptr && slot.hash == hash && slot.entry->key == entry->key) {
      oldest = &slot;
      break;
    }
    if (slot.used < oldest->used) {
      oldest = &slot;
    }
  }
  forgotten = std::move(oldest->entry);
  *oldest = {hash, ++set.clock, std::move(entry)};
  return line.entry.get();
}

void clear_entries() {
  table().epoch.fetch_add(1, std::memory_order_acq_rel);
  for (size_t position = 0; position < kSets; ++position) {
    std::array<Slot, kWays> forgotten;
    std::lock_guard<std::mutex> lock(table().mutex_of(position));
    std::swap(table().sets[position].ways, forgotten);
  }
}

size_t count_entries() {
  size_t count = 0;
  for (size_t position = 0; position < kSets; ++position) {
    std::lock_guard<std::mutex> lock(table().mutex_of(position));
    for (const Slot& slot : table().sets[position].ways) {
      count += slot.entry != nullptr ? 1 : 0;
    }
  }
  return count;
}

}  // namespace torch_neuronx::dispatch
