// Handles of tensors and tensor sets.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "api/runtime.h"

namespace neuron::api {

// Memory that tensors share; freed with the last of them.
struct Storage {
  enum class Owner { kDevice, kHost, kCaller };

  Storage(Owner owner, Core* core, std::byte* address, size_t size)
      : owner(owner), core(core), address(address), size(size) {}
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  Owner owner;
  Core* core;  // nullptr: host memory
  std::byte* address;
  size_t size;
};

}  // namespace neuron::api

struct nrt_tensor {
  std::string name;
  std::shared_ptr<neuron::api::Storage> storage;  // none: an empty tensor
  size_t offset = 0, size = 0;

  std::byte* address() const { return storage->address + offset; }
};

namespace neuron::api {

// A live tensor of a live set by name; nullptr when there is none. Throws Error(NRT_INVALID_HANDLE) for a dead set or
// tensor.
nrt_tensor* find_tensor(const nrt_tensor_set_t* set, const char* name);

}  // namespace neuron::api
