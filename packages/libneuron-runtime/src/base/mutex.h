// A mutex for critical sections of nanoseconds to milliseconds: spins briefly, then sleeps. Meets Lockable.
#pragma once

#include <atomic>
#include <cstdint>

namespace neuron {

class Mutex {
 public:
  void lock() {
    if (try_lock()) return;
    for (int i = 0; i < kSpins; ++i) {
      if (state_.load(std::memory_order_relaxed) == kFree && try_lock()) return;
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
    while (state_.exchange(kContended, std::memory_order_acquire) != kFree)
      state_.wait(kContended, std::memory_order_relaxed);
  }

  bool try_lock() {
    uint32_t expected = kFree;
    return state_.compare_exchange_strong(expected, kLocked, std::memory_order_acquire, std::memory_order_relaxed);
  }

  void unlock() {
    if (state_.exchange(kFree, std::memory_order_release) == kContended) state_.notify_one();
  }

 private:
  static constexpr uint32_t kFree = 0, kLocked = 1, kContended = 2;  // contended: somebody may sleep
  static constexpr int kSpins = 64;                                  // about a microsecond

  std::atomic<uint32_t> state_{kFree};
};

}  // namespace neuron
