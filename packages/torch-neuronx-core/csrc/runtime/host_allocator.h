// Pinned host memory. The simulated device reads any host memory, so a pinned block is an aligned one that we know.
#pragma once

#include <ATen/core/CachingHostAllocator.h>

namespace torch_neuronx {

at::HostAllocator* host_allocator();

// Whether `address` lies inside a block of host_allocator().
bool is_pinned(const void* address);

void register_host_allocator();

}  // namespace torch_neuronx
