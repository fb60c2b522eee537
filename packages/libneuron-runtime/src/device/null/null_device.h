// A device that implements nothing: the starting point of a new one, and a check that callers survive every refusal.
#pragma once

#include "device/device.h"

namespace neuron {

std::unique_ptr<Device> make_null_device();

}  // namespace neuron
