// How often each operator ran natively, was compiled, or fell back to the CPU.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace torch_neuronx::dispatch {

enum class Outcome : uint32_t {
  kNative,    // computed by a program in libneuron-runtime
  kCompiled,  // the op compiler was asked for a program and gave one
  kFallback,  // computed by ATen's CPU kernel
};
constexpr size_t kOutcomes = 3;
using OutcomeCounts = std::array<uint64_t, kOutcomes>;

// Operators are numbered below this; a thread that counts takes kMaxOperators * kOutcomes * 8 bytes (48 KiB).
constexpr uint32_t kMaxOperators = 2048;

namespace detail {
// The calling thread's counters, which it alone writes; null until it counts for the first time.
// In the static TLS block: one load where the default costs a function call.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local std::atomic<uint64_t>* counters;
std::atomic<uint64_t>* make_counters();
}  // namespace detail

// Any thread, without a lock: about 1 ns.
inline void count(uint32_t op, Outcome outcome) {
  std::atomic<uint64_t>* counters = detail::counters;
  if (counters == nullptr) [[unlikely]] {
    counters = detail::make_counters();
  }
  std::atomic<uint64_t>& counter = counters[op * kOutcomes + static_cast<size_t>(outcome)];
  counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

// Sums over all threads, living and gone, since the last clear_counters().
OutcomeCounts counts_of(uint32_t op);
// Sums since the process started.
OutcomeCounts total_counts();
void clear_counters();

}  // namespace torch_neuronx::dispatch
