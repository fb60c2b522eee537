// A lock for critical sections of nanoseconds that threads seldom want at once: half the cost of std::mutex then,
// because it is inline and unlocking without a waiter is one exchange. Who has to wait sleeps. Meets Lockable.
#pragma once

#include <atomic>
#include <cstdint>

namespace torch_neuronx {

class Lock {
 public:
  void lock() noexcept {
    if (!try_lock()) [[unlikely]] {
      while (state_.exchange(kContended, std::memory_order_acquire) != kFree) {
        state_.wait(kContended, std::memory_order_relaxed);
      }
    }
  }
  bool try_lock() noexcept {
    uint32_t expected = kFree;
    return state_.compare_exchange_strong(expected, kHeld, std::memory_order_acquire, std::memory_order_relaxed);
  }
  void unlock() noexcept {
    if (state_.exchange(kFree, std::memory_order_release) == kContended) [[unlikely]] {
      state_.notify_one();
    }
  }

 private:
  static constexpr uint32_t kFree = 0, kHeld = 1, kContended = 2;  // contended: somebody may sleep

  std::atomic<uint32_t> state_{kFree};
};

}  // namespace torch_neuronx
