#include "device/null/null_device.h"

#include "base/error.h"

namespace neuron {

namespace {

[[noreturn]] void unimplemented(const char* function) {
  throw Error(NRT_FAILURE,
              format("the null device does not implement %s; choose another with NEURON_RT_DEVICE", function));
}

class NullCore final : public Core {
 public:
  void* allocate(size_t) override { unimplemented("allocate"); }
  bool free(void*) override { unimplemented("free"); }
  bool owns(const void*) const override { return false; }
  void empty_cache() override { unimplemented("empty_cache"); }
  nrtx_memory_stats_t memory_stats() const override { unimplemented("memory_stats"); }
  void reset_peak() override { unimplemented("reset_peak"); }
  void execute(const Executable&, void* const*, const uint64_t*) override { unimplemented("execute"); }
};

class NullDevice final : public Device {
 public:
  int core_count() const override { return 1; }
  Core& open(int, int) override { return core_; }
  void copy_from_host(void*, const void*, size_t) override { unimplemented("copy_from_host"); }
  void copy_to_host(void*, const void*, size_t) override { unimplemented("copy_to_host"); }
  void copy_on_device(void*, const void*, size_t) override { unimplemented("copy_on_device"); }
  void fill(void*, int, size_t) override { unimplemented("fill"); }
  bool host_visible() const override { return false; }
  nrt_instance_info_t instance() const override {
    return {NRT_INSTANCE_UNKNOWN, NRT_INSTANCE_SIZE_UNKNOWN, "null", "0"};
  }

 private:
  NullCore core_;
};

}  // namespace

std::unique_ptr<Device> make_null_device() { return std::make_unique<NullDevice>(); }

}  // namespace neuron
