#include "dispatch/counters.h"

#include <memory>
#include <mutex>
#include <vector>

namespace torch_neuronx::dispatch {

namespace detail {
[[gnu::tls_model("initial-exec")]] constinit thread_local std::atomic<uint64_t>* counters = nullptr;
}  // namespace detail

namespace {

constexpr size_t kCounters = kMaxOperators * kOutcomes;
using Block = std::array<std::atomic<uint64_t>, kCounters>;

struct Registry {
  std::mutex mutex;  // a leaf
  std::vector<Block*> living;
  std::array<uint64_t, kCounters> gone{};     // counts of threads that ended
  std::array<uint64_t, kCounters> cleared{};  // sums at the last clear

  uint64_t sum(size_t position) const {
    uint64_t total = gone[position];
    for (const Block* block : living) {
      total += (*block)[position].load(std::memory_order_relaxed);
    }
    return total;
  }
};

// Never destroyed: threads may end after static destruction.
Registry& registry() {
  static auto* instance = new Registry();
  return *instance;
}

constinit thread_local bool thread_ended = false;

// Hands the thread's counts over when it ends.
struct Owner {
  std::unique_ptr<Block> block = std::make_unique<Block>();

  Owner() {
    std::lock_guard<std::mutex> lock(registry().mutex);
    registry().living.push_back(block.get());
  }
  ~Owner() {
    detail::counters = nullptr;
    thread_ended = true;
    std::lock_guard<std::mutex> lock(registry().mutex);
    std::erase(registry().living, block.get());
    for (size_t position = 0; position < kCounters; ++position) {
      registry().gone[position] += (*block)[position].load(std::memory_order_relaxed);
    }
  }
};

}  // namespace

std::atomic<uint64_t>* detail::make_counters() {
  if (thread_ended) {
    // An operator called by a later destructor of the thread. Shared by such threads, which may lose a count.
    static Block* last = [] {
      auto* block = new Block();
      std::lock_guard<std::mutex> lock(registry().mutex);
      registry().living.push_back(block);
      return block;
    }();
    return last->data();
  }
  thread_local Owner owner;
  counters = owner.block->data();
  return counters;
}

OutcomeCounts counts_of(uint32_t op) {
  OutcomeCounts counts{};
  std::lock_guard<std::mutex> lock(registry().mutex);
  for (size_t outcome = 0; outcome < kOutcomes; ++outcome) {
    const size_t position = op * kOutcomes + outcome;
    counts[outcome] = registry().sum(position) - registry().cleared[position];
  }
  return counts;
}

OutcomeCounts total_counts() {
  OutcomeCounts counts{};
  std::lock_guard<std::mutex> lock(registry().mutex);
  for (size_t position = 0; position < kCounters; ++position) {
    counts[position % kOutcomes] += registry().sum(position);
  }
  return counts;
}

void clear_counters() {
  std::lock_guard<std::mutex> lock(registry().mutex);
  for (size_t position = 0; position < kCounters; ++position) {
    registry().cleared[position] = registry().sum(position);
  }
}

}  // namespace torch_neuronx::dispatch
