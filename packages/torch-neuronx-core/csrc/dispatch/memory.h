// Tensors as a launch sees them: addresses, and new tensors for results.
#pragma once

#include <ATen/core/Tensor.h>

#include "dispatch/entry.h"
#include "runtime/allocator.h"

namespace torch_neuronx::dispatch {

// Throws for a tensor with elements whose storage has been freed.
inline void check_has_memory(const c10::TensorImpl* tensor, const void* storage) {
  TORCH_CHECK(storage != nullptr || tensor->numel() == 0, "A tensor of sizes ", tensor->sizes(),
              " has no memory: its storage was resized to 0 bytes. Resize the storage to hold its elements first");
}

// Address of a tensor's first element; throws for a tensor with elements whose storage has been freed. Writing through
// it ends a copy-on-write share.
inline void* address_of(const c10::TensorImpl* tensor, bool write) {
  const c10::Storage& storage = tensor->unsafe_storage();
  auto* base = static_cast<char*>(write ? storage.mutable_data() : const_cast<void*>(storage.data()));
  check_has_memory(tensor, base);
  return base + static_cast<size_t>(tensor->storage_offset()) * tensor->itemsize();
}

// An uninitialised tensor on a device, whatever the thread's current one is.
inline at::Tensor create(const TensorSpec& spec, c10::DeviceIndex device) {
  auto storage = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), spec.nbytes,
                                                       allocate(spec.nbytes, device), allocator(), /*resizable=*/true);
  at::Tensor tensor = at::detail::make_tensor_base<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), c10::scalarTypeToTypeMeta(spec.dtype));
  if (spec.contiguous) {
    tensor.unsafeGetTensorImpl()->set_sizes_contiguous(spec.sizes);
  } else {
    tensor.unsafeGetTensorImpl()->set_sizes_and_strides(spec.sizes, spec.strides);
  }
  return tensor;
}

inline at::Tensor tensor_of(c10::TensorImpl* impl) {
  using Pointer = c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;
  return at::Tensor(Pointer::reclaim_copy(impl));
}

}  // namespace torch_neuronx::dispatch
