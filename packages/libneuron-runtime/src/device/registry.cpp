#include "base/environment.h"
#include "base/error.h"
#include "device/device.h"
#include "device/null/null_device.h"
#include "device/sim/sim_device.h"

namespace neuron {

namespace {

struct Entry {
  const char* name;
  std::unique_ptr<Device> (*make)();
};

constexpr Entry kDevices[] = {
    {"sim", make_sim_device},
    {"null", make_null_device},
};

}  // namespace

std::unique_ptr<Device> make_device(const std::string& name) {
  std::string known;
  for (const Entry& entry : kDevices) {
    if (name == entry.name) return entry.make();
    known += (known.empty() ? "" : ", ") + std::string(entry.name);
  }
  throw Error(NRT_INVALID,
              format("NEURON_RT_DEVICE=\"%s\": no such device; there are: %s", name.c_str(), known.c_str()));
}

Device& device() {
  // Never destroyed: threads may still be inside it at exit.
  static Device* const instance = make_device(environment("NEURON_RT_DEVICE").value_or("sim")).release();
  return *instance;
}

}  // namespace neuron
