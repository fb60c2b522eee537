#include "api/tensor.h"

#include <cstring>
#include <new>

namespace neuron::api {

namespace {

constexpr std::align_val_t kHostAlignment{64};

struct TensorSet {
  std::map<std::string, nrt_tensor*, std::less<>> tensors;
};

Handles<nrt_tensor>& tensors() {
  static auto* const handles = new Handles<nrt_tensor>;
  return *handles;
}

Handles<TensorSet>& sets() {
  static auto* const handles = new Handles<TensorSet>;
  return *handles;
}

TensorSet& checked(const nrt_tensor_set_t* handle) {
  auto* set = static_cast<TensorSet*>(const_cast<void*>(handle));
  sets().check(set, "tensor set");
  return *set;
}

// A live tensor with storage whose bytes [offset, offset + size) exist.
const nrt_tensor& range(const nrt_tensor* tensor, uint64_t offset, uint64_t size) {
  tensors().check(tensor, "tensor");
  if (!tensor->storage)
    throw Error(NRT_INVALID, format("tensor \"%s\" has no storage; attach a buffer first", tensor->name.c_str()));
  if (offset > tensor->size || size > tensor->size - offset) {
    throw Error(NRT_INVALID,
                format("bytes %llu to %llu of tensor \"%s\" were asked for, but it has %zu",
                       static_cast<unsigned long long>(offset), static_cast<unsigned long long>(offset + size),
                       tensor->name.c_str(), tensor->size));
  }
  return *tensor;
}

void read_bytes(const nrt_tensor* tensor, void* buffer, uint64_t offset, uint64_t size) {
  const nrt_tensor& t = range(tensor, offset, size);
  if (size == 0) return;
  require(buffer, "buf");
  if (t.storage->core) {
    device().copy_to_host(buffer, t.address() + offset, size);
  } else {
    std::memcpy(buffer, t.address() + offset, size);
  }
}

void write_bytes(const nrt_tensor* tensor, const void* buffer, uint64_t offset, uint64_t size) {
  const nrt_tensor& t = range(tensor, offset, size);
  if (size == 0) return;
  require(buffer, "buf");
  if (t.storage->core) {
    device().copy_from_host(t.address() + offset, buffer, size);
  } else {
    std::memcpy(t.address() + offset, buffer, size);
  }
}

template <class Operation>
void batch(const nrt_tensor_batch_t* batches, uint64_t count, Operation&& operation) {
  if (count > 0) require(batches, "batches");
  for (uint64_t n = 0; n < count; ++n) {
    if (batches[n].num_ops > 0) require(batches[n].ops, "ops");
    for (uint32_t k = 0; k < batches[n].num_ops; ++k) {
      const nrt_tensor_batch_op_t& op = batches[n].ops[k];
      operation(batches[n].tensor, op.buffer, op.offset, op.size);
    }
  }
}

void publish(std::unique_ptr<nrt_tensor> tensor, const char* name, nrt_tensor_t** out) {
  require(out, "tensor");
  if (name) tensor->name = name;
  tensors().add(tensor.get());
  *out = tensor.release();
}

}  // namespace

Storage::~Storage() {
  if (owner == Owner::kHost) ::operator delete(address, kHostAlignment);
  if (owner == Owner::kDevice && address) {
    try {
      core->free(address);
    } catch (const Error& error) {
      fail(error.status(), error.what());  // the caller freed the address behind the tensor's back
    }
  }
}

nrt_tensor* find_tensor(const nrt_tensor_set_t* handle, const char* name) {
  const TensorSet& set = checked(handle);
  const auto entry = set.tensors.find(std::string_view(name));
  if (entry == set.tensors.end()) return nullptr;
  tensors().check(entry->second, "tensor");
  return entry->second;
}

}  // namespace neuron::api

using namespace neuron;
using namespace neuron::api;

extern "C" {

NRT_STATUS nrt_tensor_allocate(nrt_tensor_placement_t placement, int vnc, size_t size, const char* name,
                               nrt_tensor_t** out) {
  return guarded([&] {
    auto tensor = std::make_unique<nrt_tensor>();
    tensor->size = size;
    int number = 0;  // C callers may pass any number, which C++ forbids to read as the enumeration
    std::memcpy(&number, &placement, sizeof(number));
    switch (number) {
      case NRT_TENSOR_PLACEMENT_DEVICE: {
        Core& core = Runtime::get().core(vnc);
        tensor->storage = std::make_shared<Storage>(Storage::Owner::kDevice, &core, nullptr, size);
        if (size > 0) {
          tensor->storage->address = static_cast<std::byte*>(core.allocate(size));
          device().fill(tensor->storage->address, 0, size);
        }
        break;
      }
      case NRT_TENSOR_PLACEMENT_HOST:
      case NRT_TENSOR_PLACEMENT_VIRTUAL:
        Runtime::get().cores();  // only between nrt_init and nrt_close
        tensor->storage = std::make_shared<Storage>(
            Storage::Owner::kHost, nullptr, static_cast<std::byte*>(::operator new(size, kHostAlignment)), size);
        std::memset(tensor->storage->address, 0, size);
        break;
      default:
        throw Error(NRT_INVALID, format("placement %d; expected DEVICE (0), HOST (1) or VIRTUAL (2)", number));
    }
    publish(std::move(tensor), name, out);
  });
}

NRT_STATUS nrt_tensor_allocate_empty(const char* name, nrt_tensor_t** out) {
  return guarded([&] { publish(std::make_unique<nrt_tensor>(), name, out); });
}

NRT_STATUS nrt_tensor_attach_buffer(nrt_tensor_t* tensor, void* buffer, size_t size) {
  return guarded([&] {
    tensors().check(tensor, "tensor");
    require(buffer, "buffer");
    tensor->storage =
        std::make_shared<Storage>(Storage::Owner::kCaller, nullptr, static_cast<std::byte*>(buffer), size);
    tensor->offset = 0;
    tensor->size = size;
  });
}

NRT_STATUS nrt_tensor_allocate_slice(const nrt_tensor_t* source, size_t offset, size_t size, const char* name,
                                     nrt_tensor_t** out) {
  return guarded([&] {
    const nrt_tensor& whole = range(source, offset, size);
    auto tensor = std::make_unique<nrt_tensor>();
    tensor->storage = whole.storage;
    tensor->offset = whole.offset + offset;
    tensor->size = size;
    publish(std::move(tensor), name, out);
  });
}

void nrt_tensor_free(nrt_tensor_t** tensor) {
  if (!tensor || !*tensor) return;
  if (tensors().remove(*tensor)) delete *tensor;
  *tensor = nullptr;
}

NRT_STATUS nrt_tensor_read(const nrt_tensor_t* tensor, void* buf, size_t offset, size_t size) {
  return guarded([&] { read_bytes(tensor, buf, offset, size); });
}

NRT_STATUS nrt_tensor_write(nrt_tensor_t* tensor, const void* buf, size_t offset, size_t size) {
  return guarded([&] { write_bytes(tensor, buf, offset, size); });
}

NRT_STATUS nrt_tensor_read_batch(const nrt_tensor_batch_t* batches, uint64_t num_batches, bool) {
  return guarded([&] { batch(batches, num_batches, read_bytes); });
}

NRT_STATUS nrt_tensor_write_batch(const nrt_tensor_batch_t* batches, uint64_t num_batches, bool) {
  return guarded([&] { batch(batches, num_batches, write_bytes); });
}

NRT_STATUS nrt_tensor_copy(const nrt_tensor_t* src, size_t src_offset, nrt_tensor_t* dst, size_t dst_offset,
                           size_t size) {
  return guarded([&] {
    const nrt_tensor& from = range(src, src_offset, size);
    const nrt_tensor& to = range(dst, dst_offset, size);
    std::byte* source = from.storage->address + from.offset + src_offset;
    std::byte* target = to.storage->address + to.offset + dst_offset;
    if (size == 0) return;
    if (from.storage->core && to.storage->core) {
      if (from.storage->core != to.storage->core)
        throw Error(NRT_INVALID, "the tensors lie on different cores; copy through the host");
      device().copy_on_device(target, source, size);
    } else if (from.storage->core) {
      device().copy_to_host(target, source, size);
    } else if (to.storage->core) {
      device().copy_from_host(target, source, size);
    } else {
      std::memmove(target, source, size);
    }
  });
}

NRT_STATUS nrt_tensor_memset(nrt_tensor_t* tensor, uint64_t offset, int value, size_t size) {
  return guarded([&] {
    const nrt_tensor& t = range(tensor, offset, size);
    if (size == 0) return;
    if (t.storage->core) {
      device().fill(t.address() + offset, value, size);
    } else {
      std::memset(t.address() + offset, value, size);
    }
  });
}

size_t nrt_tensor_get_size(const nrt_tensor_t* tensor) {
  size_t size = 0;
  guarded([&] {
    tensors().check(tensor, "tensor");
    size = tensor->size;
  });
  return size;
}

void* nrt_tensor_get_va(const nrt_tensor_t* tensor) {
  void* address = nullptr;
  guarded([&] { address = range(tensor, 0, 0).address(); });
  return address;
}

NRT_STATUS nrt_allocate_tensor_set(nrt_tensor_set_t** result) {
  return guarded([&] {
    require(result, "result");
    auto set = std::make_unique<TensorSet>();
    sets().add(set.get());
    *result = set.release();
  });
}

void nrt_destroy_tensor_set(nrt_tensor_set_t** handle) {
  if (!handle || !*handle) return;
  auto* set = static_cast<TensorSet*>(*handle);
  if (sets().remove(set)) delete set;
  *handle = nullptr;
}

NRT_STATUS nrt_add_tensor_to_tensor_set(nrt_tensor_set_t* set, const char* name, nrt_tensor_t* tensor) {
  return guarded([&] {
    TensorSet& target = checked(set);
    require(name, "tensor_name");
    tensors().check(tensor, "tensor");
    target.tensors[name] = tensor;
  });
}

NRT_STATUS nrt_get_tensor_from_tensor_set(nrt_tensor_set_t* set, const char* name, nrt_tensor_t** tensor) {
  return guarded([&] {
    require(name, "tensor_name");
    require(tensor, "tensor");
    nrt_tensor* found = find_tensor(set, name);
    if (!found) throw Error(NRT_FAILURE, format("the set has no tensor \"%s\"", name));
    *tensor = found;
  });
}

NRT_STATUS nrt_memcpy_to_device(void* dest, const void* src, size_t size) {
  return nrtx_copy_from_host(dest, src, size);
}

}  // extern "C"
