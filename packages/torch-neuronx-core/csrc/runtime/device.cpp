#include "runtime/device.h"

#include <pthread.h>

#include <limits>
#include <mutex>
#include <string>

#include <torch/csrc/utils/device_lazy_init.h>

#include "neuron/launch.h"

namespace torch_neuronx {

namespace detail {

std::atomic<State> state{State::kCold};

namespace {

void poison_child() {
  state.store(State::kForked, std::memory_order_relaxed);
  torch::utils::set_device_in_bad_fork(kNeuron, true);
  torch::utils::set_requires_device_init(kNeuron, true);
}

}  // namespace

void start() {
  static std::mutex mutex;
  check_not_forked();  // before the lock: a fork may have happened while another thread held it
  std::lock_guard<std::mutex> lock(mutex);
  if (is_ready()) {
    return;
  }
  TORCH_CHECK(device_count() > 0,
              "No neuron device is available: the runtime sees 0 cores. Check NEURON_RT_NUM_CORES and "
              "NEURON_RT_VISIBLE_CORES");
  check(nrt_init(NRT_FRAMEWORK_TYPE_PYTORCH, "", ""), "Cannot start the neuron runtime");
  pthread_atfork(nullptr, nullptr, poison_child);
  state.store(State::kReady, std::memory_order_release);
}

}  // namespace detail

namespace {

thread_local c10::DeviceIndex current = 0;

// Never fails: a runtime that cannot count its cores has none.
c10::DeviceIndex count_cores() noexcept {
  uint32_t count = 0;
  if (nrt_get_visible_vnc_count(&count) != NRT_SUCCESS) {
    return 0;
  }
  constexpr uint32_t most = std::numeric_limits<c10::DeviceIndex>::max();
  return static_cast<c10::DeviceIndex>(count < most ? count : most);
}

void check_ordinal(c10::DeviceIndex index) {
  TORCH_CHECK(index >= 0 && index<device_count(), "neuron:", static_cast<int>(index), " is an invalid device ordinal: ",
                                  static_cast<int>(device_count()), " neuron devices are visible", device_count()> 0
                  ? ", numbered from 0"
                  : "");
}

}  // namespace

c10::DeviceIndex device_count() noexcept {
  static const c10::DeviceIndex count = count_cores();
  return count;
}

c10::DeviceIndex current_device() noexcept { return current; }

void set_device(c10::DeviceIndex index) {
  check_ordinal(index);
  current = index;
}

void set_device_unchecked(c10::DeviceIndex index) noexcept { current = index; }

c10::DeviceIndex resolve(std::optional<c10::Device> device) {
  if (!device.has_value()) {
    return current;
  }
  TORCH_CHECK(device->type() == kNeuron, "Expected a neuron device, got ", device->str());
  if (!device->has_index()) {
    return current;
  }
  check_ordinal(device->index());
  return device->index();
}

void check_not_forked() {
  TORCH_CHECK(!in_bad_fork(),
              "Cannot re-initialize NEURON in forked subprocess. To use NEURON with multiprocessing, you must use the "
              "'spawn' start method");
}

void fail(NRT_STATUS status, const char* action) {
  const char* explanation = nrtx_last_error();
  const std::string code = nrt_get_status_as_str(status);
  TORCH_CHECK(false, action, ": ", *explanation != '\0' ? explanation : "no explanation given", " (", code, ")");
}

}  // namespace torch_neuronx
