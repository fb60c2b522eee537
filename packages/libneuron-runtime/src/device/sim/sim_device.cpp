#include "device/sim/sim_device.h"

#include <cstring>
#include <map>
#include <mutex>

#include "base/environment.h"
#include "base/error.h"
#include "device/sim/capacity.h"
#include "device/sim/sim_core.h"

namespace neuron {

namespace sim {

namespace {

constexpr int kMaxCores = 128;  // logical cores of the largest trn2 machine

class SimDevice final : public Device {
 public:
  SimDevice() : visibility_(environment_flag("NEURON_SIM_HOST_VISIBLE", true)) {}

  int core_count() const override { return kMaxCores; }

  Core& open(int index, int visible) override {
    const uint64_t limit = core_capacity(host_free_bytes(), visible);
    std::lock_guard lock(mutex_);
    auto& core = cores_[index];
    if (core) {
      core->set_limit(limit);
    } else {
      core = std::make_unique<SimCore>(visibility_, limit);
    }
    return *core;
  }

  void copy_from_host(void* device, const void* host, size_t size) override {
    const Visibility::Scope scope(visibility_);
    std::memcpy(device, host, size);
  }
  void copy_to_host(void* host, const void* device, size_t size) override {
    const Visibility::Scope scope(visibility_);
    std::memcpy(host, device, size);
  }
  void copy_on_device(void* destination, const void* source, size_t size) override {
    const Visibility::Scope scope(visibility_);
    std::memmove(destination, source, size);
  }
  void fill(void* device, int byte, size_t size) override {
    const Visibility::Scope scope(visibility_);
    std::memset(device, byte, size);
  }
  bool host_visible() const override { return visibility_.host_visible(); }
  nrt_instance_info_t instance() const override {
    return {NRT_INSTANCE_TRN2, NRT_INSTANCE_SIZE_48XL, "simulator", "0"};
  }

 private:
  Visibility visibility_;
  std::mutex mutex_;
  std::map<int, std::unique_ptr<SimCore>> cores_;
};

}  // namespace

}  // namespace sim

std::unique_ptr<Device> make_sim_device() { return std::make_unique<sim::SimDevice>(); }

}  // namespace neuron
