// The end of the process while other threads still use the device.
#pragma once

#include <atomic>

namespace torch_neuronx {

// Once the interpreter shuts down, a daemon thread that comes back from an operator and takes the GIL is ended by
// Python in the middle of C++ code, which aborts the process. So from begin_exit() on, every thread but the caller
// waits where it next wants the device, without the GIL, until the process is gone.
void begin_exit();
// Threads that wait now.
int threads_held_at_exit();

namespace detail {
extern std::atomic<bool> exit_begun;
void wait_for_exit();
}  // namespace detail

// Called before a lock is taken.
inline void hold_at_exit() {
  if (detail::exit_begun.load(std::memory_order_acquire)) [[unlikely]] {
    detail::wait_for_exit();
  }
}

}  // namespace torch_neuronx
