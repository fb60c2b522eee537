// The simulated machine: as many cores as the process asks for, in host memory.
#pragma once

#include "device/device.h"

namespace neuron {

std::unique_ptr<Device> make_sim_device();

}  // namespace neuron
