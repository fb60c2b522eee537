#include "runtime/stream.h"

#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <array>
#include <chrono>
#include <limits>
#include <memory>
#include <vector>

namespace torch_neuronx {

namespace {

using DeviceStreams = std::array<StreamState, kPoolStreams + 1>;

// Never destroyed: operators may still run in exit handlers.
std::vector<DeviceStreams>& all_streams() {
  static auto* streams = new std::vector<DeviceStreams>(static_cast<size_t>(device_count()));
  return *streams;
}

// Ids of the thread's current streams by device; 0 is the default stream. Read at every launch: in the static TLS block
// that is one load where the default costs a function call.
constexpr size_t kDevices = size_t{std::numeric_limits<c10::DeviceIndex>::max()} + 1;
static_assert(kPoolStreams <= std::numeric_limits<uint8_t>::max());
[[gnu::tls_model("initial-exec")]] constinit thread_local std::array<uint8_t, kDevices> current_ids{};

c10::StreamId current_id(c10::DeviceIndex device) { return current_ids[static_cast<size_t>(device) % kDevices]; }

c10::Stream make_stream(c10::DeviceIndex device, c10::StreamId id) {
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(kNeuron, device), id);
}

StreamState& state_of(c10::DeviceIndex device, c10::StreamId id) {
  TORCH_CHECK(device >= 0 && device < device_count() && id >= 0 && id <= kPoolStreams,
              "Not a stream of a neuron device: ", "device ", static_cast<int>(device), ", stream ", id);
  return all_streams()[static_cast<size_t>(device)][static_cast<size_t>(id)];
}

struct Event {
  c10::DeviceIndex device;
  std::chrono::steady_clock::time_point time;  // of the last record
};

// The host's view of a device in torch: what torch.accelerator, torch.Stream, torch.Event and autograd call.
struct NeuronGuard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kNeuron; }

  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device previous = getDevice();
    if (device.has_index() && device.index() != previous.index()) {
      torch_neuronx::set_device(device.index());
    }
    return previous;
  }
  c10::Device getDevice() const override { return c10::Device(kNeuron, current_device()); }
  void setDevice(c10::Device device) const override { torch_neuronx::set_device(resolve(device)); }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.has_index()) {
      set_device_unchecked(device.index());
    }
  }
  c10::DeviceIndex deviceCount() const noexcept override { return device_count(); }
  c10::DeviceCapability getDeviceCapability(c10::Device /*device*/) const override {
    c10::DeviceCapability capability;  // every dtype but the quantized ones
    auto& types = capability.capability_data.supported_scalar_types;
    types.has_QInt8 = types.has_QUInt8 = types.has_QInt32 = types.has_QUInt4x2 = types.has_QUInt2x4 = 0;
    return capability;
  }

  c10::Stream getStream(c10::Device device) const override { return current_stream(resolve(device)); }
  c10::Stream getDefaultStream(c10::Device device) const override { return default_stream(resolve(device)); }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool /*isHighPriority*/) const override {
    return next_pool_stream(resolve(device));
  }
  // Work runs inline, so there is nothing that a priority could put in order.
  c10::Stream getNewStream(c10::Device device, int /*priority*/) const override {
    return next_pool_stream(resolve(device));
  }
  c10::Stream exchangeStream(c10::Stream stream) const override { return exchange_stream(stream); }
  void* getStreamNativeHandle(const c10::Stream stream) const override { return &stream_state(stream); }
  bool queryStream(const c10::Stream& stream) const override {
    std::unique_lock<Lock> lock(stream_state(stream).mutex, std::try_to_lock);
    return lock.owns_lock();
  }
  void synchronizeStream(const c10::Stream& stream) const override { synchronize_stream(stream); }
  void synchronizeDevice(const c10::DeviceIndex device) const override { synchronize_device(device); }

  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex device,
              const c10::EventFlag /*flag*/) const override {
    TORCH_CHECK(device == -1 || device == stream.device_index(), "Event of device ", static_cast<int>(device),
                " cannot be recorded in a stream of device ", static_cast<int>(stream.device_index()));
    synchronize_stream(stream);
    if (*event == nullptr) {
      *event = new Event();
    }
    *static_cast<Event*>(*event) = {stream.device_index(), std::chrono::steady_clock::now()};
  }
  void destroyEvent(void* event, const c10::DeviceIndex /*device*/) const noexcept override {
    delete static_cast<Event*>(event);
  }
  // record() returned after the work before it was done, so nobody has to wait for an event.
  void block(void* /*event*/, const c10::Stream& /*stream*/) const override {}
  bool queryEvent(void* /*event*/) const override { return true; }
  void synchronizeEvent(void* /*event*/) const override {}
  // Milliseconds of wall time.
  double elapsedTime(void* first, void* second, const c10::DeviceIndex /*device*/) const override {
    TORCH_CHECK(first != nullptr && second != nullptr,
                "Both events must be recorded before the time between them is taken");
    const auto* start = static_cast<const Event*>(first);
    const auto* end = static_cast<const Event*>(second);
    TORCH_CHECK(start->device == end->device,
                "The events were recorded on different devices: neuron:", static_cast<int>(start->device),
                " and neuron:", static_cast<int>(end->device));
    return std::chrono::duration<double, std::milli>(end->time - start->time).count();
  }
  // Memory is free for reuse only after the work that reads it, which has run by then.
  void recordDataPtrOnStream(const c10::DataPtr& /*data*/, const c10::Stream& /*stream*/) const override {}
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, NeuronGuard)

}  // namespace

c10::Stream default_stream(c10::DeviceIndex device) { return make_stream(device, 0); }

c10::Stream next_pool_stream(c10::DeviceIndex device) {
  static std::atomic<uint32_t> next{0};
  return make_stream(device, 1 + next.fetch_add(1, std::memory_order_relaxed) % kPoolStreams);
}

c10::Stream current_stream(c10::DeviceIndex device) { return make_stream(device, current_id(device)); }

c10::Stream exchange_stream(c10::Stream stream) {
  stream_state(stream);
  const c10::Stream previous = current_stream(stream.device_index());
  current_ids[static_cast<size_t>(stream.device_index())] = static_cast<uint8_t>(stream.id());
  return previous;
}

StreamState& stream_state(c10::Stream stream) {
  TORCH_CHECK(stream.device_type() == kNeuron, "Expected a neuron stream, got one of ", stream.device().str());
  return state_of(stream.device_index(), stream.id());
}

StreamState& current_stream_state(c10::DeviceIndex device) { return state_of(device, current_id(device)); }

void synchronize_stream(c10::Stream stream) {
  check_not_forked();
  std::lock_guard<Lock> lock(stream_state(stream).mutex);
}

void synchronize_device(c10::DeviceIndex device) {
  check_not_forked();
  for (c10::StreamId id = 0; id <= kPoolStreams; ++id) {
    std::lock_guard<Lock> lock(state_of(device, id).mutex);
  }
}

}  // namespace torch_neuronx
