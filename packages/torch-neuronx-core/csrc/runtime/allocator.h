// Device memory for tensors: c10's device allocator over the runtime's arena.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/device.h"

namespace torch_neuronx {

// The one allocator of the process; allocates on the calling thread's current device. Never destroyed: tensors may be
// freed after static destruction.
c10::DeviceAllocator* allocator();

// Allocate on a given device, whatever the current one is.
c10::DataPtr allocate(size_t nbytes, c10::DeviceIndex device);

// (address, bytes) of every allocation of a device that is alive.
std::vector<std::pair<uintptr_t, size_t>> live_blocks(c10::DeviceIndex device);

void register_allocator();

}  // namespace torch_neuronx
