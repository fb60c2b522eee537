// Streams. Work runs inline in the thread that asks for it, holding the stream's lock, so whatever was submitted before
// the lock was taken is done. An event is a stream's sequence number, complete as soon as it exists.
#pragma once

#include <c10/core/Stream.h>

#include <atomic>
#include <cstdint>
#include <mutex>

#include "runtime/device.h"
#include "runtime/exit.h"
#include "runtime/lock.h"

namespace torch_neuronx {

struct StreamState {
  Lock mutex;                         // a leaf: whoever holds it calls no operator and does not take the GIL
  std::atomic<uint64_t> sequence{0};  // launches and copies finished so far; written by who holds the lock
};

// Streams of a device: the default one, id 0, and a pool handed out in turn. They live as long as the process.
constexpr c10::StreamId kPoolStreams = 32;

c10::Stream default_stream(c10::DeviceIndex device);
c10::Stream next_pool_stream(c10::DeviceIndex device);
// The calling thread's stream on a device; the default one until set.
c10::Stream current_stream(c10::DeviceIndex device);
// Returns the previous one.
c10::Stream exchange_stream(c10::Stream stream);
// Throws when the stream does not belong to a device of this process.
StreamState& stream_state(c10::Stream stream);
StreamState& current_stream_state(c10::DeviceIndex device);

// Wait until everything submitted to the stream, or to all streams of a device, is done.
void synchronize_stream(c10::Stream stream);
void synchronize_device(c10::DeviceIndex device);

// Exclusive use of the calling thread's stream on a device, with all earlier work of that stream done. Starts the
// runtime.
class StreamLock {
 public:
  explicit StreamLock(c10::DeviceIndex device) : state_(ready_state(device)), lock_(state_.mutex) {}
  ~StreamLock() {
    state_.sequence.store(state_.sequence.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  StreamLock(const StreamLock&) = delete;
  StreamLock& operator=(const StreamLock&) = delete;

 private:
  static StreamState& ready_state(c10::DeviceIndex device) {
    hold_at_exit();
    ensure_ready();
    return current_stream_state(device);
  }
  StreamState& state_;
  std::lock_guard<Lock> lock_;
};

}  // namespace torch_neuronx
