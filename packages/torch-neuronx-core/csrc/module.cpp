// The Python module torch_neuronx._C.
#include <torch/csrc/utils/pybind.h>

#include <cstdint>

#include "aten/registration.h"
#include "dispatch/bindings.h"
#include "dispatch/kernel.h"
#include "neuron/launch.h"
#include "runtime/allocator.h"
#include "runtime/device.h"
#include "runtime/generator.h"
#include "runtime/hooks.h"
#include "runtime/host_allocator.h"
#include "runtime/stream.h"

namespace py = pybind11;

namespace torch_neuronx {

namespace {

// Register everything that torch asks a device for. Without a device only the name exists, so that torch.accelerator
// finds whatever else the machine has.
void register_device() {
  if (device_count() == 0) {
    return;
  }
  register_allocator();
  register_host_allocator();
  register_hooks();
  register_tensor_operators();
  register_copy_operators();
  register_recurrent_operators();
  register_selection_operators();
  register_convolution_operators();
  register_layouts();
  register_autocast();
  dispatch::register_dispatch();  // last: it leaves out what the others answer
}

int instance_family() {
  nrt_instance_info_t info{};
  check(nrt_get_instance_info(&info, sizeof(info)), "Cannot tell what machine this is");
  return info.family;
}

// Number of the calling thread's stream on a device.
int64_t current_stream_id(int device) {
  return current_stream(resolve(c10::Device(kNeuron, static_cast<c10::DeviceIndex>(device)))).id();
}

}  // namespace

PYBIND11_MODULE(_C, m) {
  TORCH_CHECK(nrtx_abi_version() == NEURON_LAUNCH_ABI, "torch-neuronx-core was built for version ", NEURON_LAUNCH_ABI,
              " of libneuron-runtime's launch interface, but the installed libneuron-runtime has version ",
              nrtx_abi_version(), ". Install the two from one release");
  m.def("register_device", &register_device);
  dispatch::bind_dispatch(m);
  m.def("device_count", [] { return static_cast<int>(device_count()); });
  m.def("current_device", [] { return static_cast<int>(current_device()); });
  m.def("set_device", [](int index) { set_device(static_cast<c10::DeviceIndex>(index)); });
  m.def("initialize", &ensure_ready, py::call_guard<py::gil_scoped_release>());
  m.def("is_initialized", &is_ready);
  m.def("begin_exit", &begin_exit);
  m.def("threads_held_at_exit", &threads_held_at_exit);
  m.def("in_bad_fork", &in_bad_fork);
  m.def(
      "synchronize", [](int device) { synchronize_device(static_cast<c10::DeviceIndex>(device)); },
      py::call_guard<py::gil_scoped_release>());
  m.def("current_stream_id", &current_stream_id);
  m.def("default_generator", [](int device) { return default_generator(static_cast<c10::DeviceIndex>(device)); });
  m.def(
      "philox",
      [](int device, uint64_t advance) {
        return reserve_philox(std::nullopt, static_cast<c10::DeviceIndex>(device), advance);
      },
      "Reserve `advance` random numbers of the device's default generator; returns (seed, offset of the first).");
  m.def("live_blocks", [](int device) { return live_blocks(static_cast<c10::DeviceIndex>(device)); });
  m.def("instance_family", &instance_family);
  m.def("host_visible", &nrtx_host_visible);
  m.def("set_threads", [](int threads) { check(nrtx_set_threads(threads), "Cannot set the number of threads"); });
  m.def("get_threads", &nrtx_get_threads);
}

}  // namespace torch_neuronx
