#include "runtime/hooks.h"

#include <ATen/detail/PrivateUse1HooksInterface.h>

#include "neuron/launch.h"
#include "runtime/allocator.h"
#include "runtime/device.h"
#include "runtime/generator.h"
#include "runtime/host_allocator.h"

namespace torch_neuronx {

namespace {

struct NeuronHooks final : at::PrivateUse1HooksInterface {
  void init() const override { ensure_ready(); }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return device_count() > 0; }
  bool hasPrimaryContext(c10::DeviceIndex index) const override {
    return is_ready() && index >= 0 && index < device_count();
  }
  c10::DeviceIndex deviceCount() const override { return device_count(); }
  void setCurrentDevice(c10::DeviceIndex index) const override { set_device(index); }
  c10::DeviceIndex getCurrentDevice() const override { return current_device(); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override {
    const c10::DeviceIndex previous = current_device();
    if (index >= 0) {
      set_device(index);
    }
    return previous;
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override { return exchangeDevice(index); }

  const at::Generator& getDefaultGenerator(c10::DeviceIndex index) const override { return default_generator(index); }
  at::Generator getNewGenerator(c10::DeviceIndex index) const override {
    return at::make_generator<NeuronGenerator>(index < 0 ? current_device() : resolve(c10::Device(kNeuron, index)));
  }

  at::Device getDeviceFromPtr(void* address) const override {
    const int core = nrtx_memory_core(address);
    TORCH_CHECK(core >= 0, "The address ", address, " is not in the memory of a neuron device");
    return at::Device(kNeuron, static_cast<c10::DeviceIndex>(core));
  }
  bool isPinnedPtr(const void* address) const override { return is_pinned(address); }
  at::Allocator* getPinnedMemoryAllocator() const override { return host_allocator(); }

  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t nbytes) const override {
    TORCH_CHECK(storage.resizable(), "Trying to resize storage that is not resizable");
    c10::DataPtr memory = allocate(nbytes, storage.device().index());
    const size_t kept = std::min(nbytes, storage.nbytes());
    if (kept > 0) {
      allocator()->copy_data(memory.get(), storage.data(), kept);
    }
    storage.set_data_ptr_noswap(std::move(memory));
    storage.unsafeGetStorageImpl()->set_nbytes(nbytes);
  }
};

}  // namespace

void register_hooks() {
  static auto* hooks = new NeuronHooks();  // torch keeps the pointer for ever
  at::RegisterPrivateUse1HooksInterface(hooks);
}

}  // namespace torch_neuronx
