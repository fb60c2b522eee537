#include "dispatch/mirror.h"

#include <ATen/EmptyTensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/CPUAllocator.h>

#include <algorithm>

#include "dispatch/memory.h"
#include "neuron/launch.h"
#include "runtime/allocator.h"
#include "runtime/stream.h"

namespace torch_neuronx::dispatch {

namespace {

// Start of a copied range: a multiple of every element size, so that a tensor's offset stays a whole number of
// elements.
constexpr size_t kLargestElement = 16;

size_t begin_of(const at::Tensor& tensor) {
  return static_cast<size_t>(tensor.storage_offset()) * tensor.element_size();
}

size_t end_of(const at::Tensor& tensor) {
  return at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(), tensor.element_size(),
                                          static_cast<size_t>(tensor.storage_offset()));
}

at::Tensor make_tensor(at::Storage storage, c10::DispatchKey key, const at::Tensor& like, int64_t offset) {
  at::Tensor tensor =
      at::detail::make_tensor<c10::TensorImpl>(std::move(storage), c10::DispatchKeySet(key), like.dtype());
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(like.sizes(), like.strides(), offset);
  tensor._set_conj(like.is_conj());
  tensor._set_neg(like.is_neg());
  if (like.unsafeGetTensorImpl()->is_wrapped_number()) {
    tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  }
  return tensor;
}

void keep(void* /*address*/) {}

}  // namespace

Mirror::Mirror(c10::Device device) : device_(device), visible_(nrtx_host_visible()) {}

Mirror::Memory& Mirror::memory_of(const at::Tensor& tensor) {
  const c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
  return *std::find_if(memories_.begin(), memories_.end(),
                       [&](const Memory& memory) { return memory.device.unsafeGetStorageImpl() == storage; });
}

void Mirror::note(const at::Tensor& tensor, bool written) {
  if (tensor.device().type() != kNeuron) {
    return;
  }
  check_has_memory(tensor.unsafeGetTensorImpl(), tensor.storage().data());
  const size_t begin = begin_of(tensor) / kLargestElement * kLargestElement;
  const size_t end = std::min(end_of(tensor), tensor.storage().nbytes());
  for (Memory& memory : memories_) {
    if (memory.device.is_alias_of(tensor.storage())) {
      memory.begin = std::min(memory.begin, begin);
      memory.end = std::max(memory.end, end);
      memory.written = memory.written || written;
      return;
    }
  }
  memories_.push_back({tensor.storage(), begin, end, written, {}, nullptr});
}

void Mirror::make_host(Memory& memory) const {
  if (visible_) {
    memory.begin = 0;
    memory.end = memory.device.nbytes();
    memory.address = const_cast<void*>(memory.device.data());
    c10::DataPtr shared(memory.address, memory.address, &keep, c10::Device(c10::kCPU));
    memory.host =
        at::Storage(at::Storage::use_byte_size_t(), memory.end, std::move(shared), c10::GetCPUAllocator(), true);
    return;
  }
  const size_t nbytes = memory.end > memory.begin ? memory.end - memory.begin : 0;
  memory.host = at::Storage(at::Storage::use_byte_size_t(), nbytes, c10::GetCPUAllocator(), true);
  memory.address = memory.host.mutable_data();
  if (nbytes > 0) {
    const StreamLock lock(device_.index());
    check(nrtx_copy_to_host(memory.address, static_cast<const char*>(memory.device.data()) + memory.begin, nbytes),
          "Cannot copy from the device");
  }
}

at::Tensor Mirror::mirror(const at::Tensor& tensor) {
  if (tensor.device().type() != kNeuron) {
    return tensor;
  }
  for (const Pair& pair : pairs_) {
    if (pair.device.is_same(tensor)) {
      return pair.host;
    }
  }
  Memory& memory = memory_of(tensor);
  if (!memory.host) {
    make_host(memory);
  }
  const auto shift = static_cast<int64_t>(memory.begin / tensor.element_size());
  // An empty tensor may lie anywhere, also before the range that the others span.
  const int64_t offset = std::max<int64_t>(tensor.storage_offset() - shift, 0);
  at::Tensor host = make_tensor(memory.host, c10::DispatchKey::CPU, tensor, offset);
  pairs_.push_back({tensor, host, static_cast<size_t>(&memory - memories_.data())});
  return host;
}

void Mirror::take_over(const Pair& pair) {
  Memory& memory = memories_[pair.memory];
  const at::Storage& storage = pair.host.storage();
  TORCH_CHECK(storage.is_alias_of(memory.host), "A CPU kernel gave a tensor of the neuron device another storage");
  const size_t needed = memory.begin + storage.nbytes();
  if (needed > memory.device.nbytes()) {
    at::detail::getPrivateUse1Hooks().resizePrivateUse1Bytes(memory.device, needed);
  }
  if (storage.nbytes() > 0 && (!visible_ || storage.data() != memory.address)) {
    const StreamLock lock(device_.index());
    check(nrtx_copy_from_host(static_cast<char*>(memory.device.mutable_data()) + memory.begin, storage.data(),
                              storage.nbytes()),
          "Cannot copy to the device");
  }
  const auto shift = static_cast<int64_t>(memory.begin / pair.host.element_size());
  pair.device.unsafeGetTensorImpl()->set_sizes_and_strides(pair.host.sizes(), pair.host.strides(),
                                                           pair.host.storage_offset() + shift);
}

void Mirror::write_back() {
  for (const Pair& pair : pairs_) {
    const Memory& memory = memories_[pair.memory];
    const bool resized = !pair.host.sizes().equals(pair.device.sizes()) ||
                         !pair.host.strides().equals(pair.device.strides()) ||
                         pair.host.storage().data() != memory.address;
    if (resized) {
      take_over(pair);
    }
  }
  if (visible_) {
    return;
  }
  for (const Memory& memory : memories_) {
    const size_t nbytes = memory.end > memory.begin ? memory.end - memory.begin : 0;
    if (memory.written && memory.host && nbytes > 0 && memory.host.data() == memory.address) {
      const StreamLock lock(device_.index());
      check(nrtx_copy_from_host(const_cast<char*>(static_cast<const char*>(memory.device.data())) + memory.begin,
                                memory.address, nbytes),
            "Cannot copy to the device");
    }
  }
}

at::Tensor Mirror::restore(const at::Tensor& result) const {
  if (!result.defined()) {
    return result;
  }
  for (const Pair& pair : pairs_) {
    if (pair.host.is_same(result)) {
      return pair.device;
    }
  }
  TORCH_CHECK(result.layout() == at::kStrided && !result.is_quantized(), "The CPU kernel returned a tensor of layout ",
              result.layout(), " and dtype ", result.scalar_type(),
              "; the neuron device holds strided tensors of plain dtypes. Move the argument to the CPU first");
  for (const Memory& memory : memories_) {
    if (memory.host && result.storage().is_alias_of(memory.host)) {
      const auto shift = static_cast<int64_t>(memory.begin / result.element_size());
      return make_tensor(memory.device, c10::DispatchKey::PrivateUse1, result, result.storage_offset() + shift);
    }
  }
  // The range that the elements span, so that expanded and transposed results keep their strides.
  const size_t nbytes = result.numel() == 0 ? 0 : end_of(result) - begin_of(result);
  at::Storage storage(at::Storage::use_byte_size_t(), nbytes, allocate(nbytes, device_.index()), allocator(), true);
  if (nbytes > 0) {
    const StreamLock lock(device_.index());
    check(nrtx_copy_from_host(storage.mutable_data(), result.const_data_ptr(), nbytes), "Cannot copy to the device");
  }
  return make_tensor(std::move(storage), c10::DispatchKey::PrivateUse1, result, 0);
}

}  // namespace torch_neuronx::dispatch
