// What a kind of device provides. A device is one directory beside this file and one line in registry.cpp;
// null/README.md is the recipe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "neuron/launch.h"
#include "program/executable.h"

namespace neuron {

// One NeuronCore. All functions may be called from any thread, and throw Error.
class Core {
 public:
  virtual ~Core() = default;

  // 64-byte aligned; size is at least 1. Contents are undefined. NRT_RESOURCE when the limit would be passed.
  virtual void* allocate(size_t size) = 0;
  // Takes the start of an allocation. False for an address outside this core's memory; NRT_INVALID for any other.
  virtual bool free(void* address) = 0;
  // Whether the address is inside an allocation of this core.
  virtual bool owns(const void* address) const = 0;
  virtual void empty_cache() = 0;
  virtual nrtx_memory_stats_t memory_stats() const = 0;
  virtual void reset_peak() = 0;

  // Runs to the end in the calling thread; one launch at a time, others wait.
  virtual void execute(const Executable& executable, void* const* buffers, const uint64_t* scalars) = 0;
};

class Device {
 public:
  virtual ~Device() = default;

  // Cores of the machine.
  virtual int core_count() const = 0;
  // Core `index` of the machine, for a process that sees `visible` cores. Called again after nrt_close; the core lives
  // until exit.
  virtual Core& open(int index, int visible) = 0;

  // Addresses may be anywhere inside allocations of any core.
  virtual void copy_from_host(void* device, const void* host, size_t size) = 0;
  virtual void copy_to_host(void* host, const void* device, size_t size) = 0;
  virtual void copy_on_device(void* destination, const void* source, size_t size) = 0;  // may overlap
  virtual void fill(void* device, int byte, size_t size) = 0;
  virtual bool host_visible() const = 0;
  virtual nrt_instance_info_t instance() const = 0;
};

// The device of this process: NEURON_RT_DEVICE, default "sim". Made at the first call, lives until exit.
// Throws Error(NRT_INVALID) for an unknown name.
Device& device();
// A new device by name, for tests.
std::unique_ptr<Device> make_device(const std::string& name);

}  // namespace neuron
