// Devices are the cores that the runtime may use, numbered from 0. The runtime starts on first use, not at import: a
// process that has only asked for the number of devices may fork.
#pragma once

#include <c10/core/Device.h>
#include <c10/util/Exception.h>

#include <atomic>
#include <optional>

#include "nrt/nrt.h"

namespace torch_neuronx {

constexpr c10::DeviceType kNeuron = c10::DeviceType::PrivateUse1;

// Number of visible cores; 0 when there is none or the runtime cannot tell. Does not start the runtime.
c10::DeviceIndex device_count() noexcept;

// The calling thread's device; 0 until set.
c10::DeviceIndex current_device() noexcept;
// Throws "invalid device ordinal" unless 0 <= index < device_count().
void set_device(c10::DeviceIndex index);
void set_device_unchecked(c10::DeviceIndex index) noexcept;

// Index of `device`, the current one when it has none. Throws for another device type and for an index out of range.
c10::DeviceIndex resolve(std::optional<c10::Device> device);

namespace detail {
enum class State : int { kCold, kReady, kForked };
extern std::atomic<State> state;
void start();
}  // namespace detail

// Start the runtime unless it runs. Throws in a child that was forked after the runtime had started, and when there is
// no device. Costs one load once started; every path to the runtime goes through here.
inline void ensure_ready() {
  if (detail::state.load(std::memory_order_relaxed) != detail::State::kReady) [[unlikely]] {
    detail::start();
  }
}
inline bool is_ready() noexcept { return detail::state.load(std::memory_order_relaxed) == detail::State::kReady; }
// Whether this process was forked from one that had used a device; the runtime's locks and threads are then lost.
inline bool in_bad_fork() noexcept { return detail::state.load(std::memory_order_relaxed) == detail::State::kForked; }

// Throws torch's sentence about that. For paths that take a lock without starting the runtime.
void check_not_forked();

// Throws "<action>: <the runtime's explanation> (<status>)" unless status is NRT_SUCCESS.
[[noreturn]] void fail(NRT_STATUS status, const char* action);
inline void check(NRT_STATUS status, const char* action) {
  if (status != NRT_SUCCESS) [[unlikely]] {
    fail(status, action);
  }
}

}  // namespace torch_neuronx
