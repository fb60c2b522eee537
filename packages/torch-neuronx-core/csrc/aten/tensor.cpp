// Allocation, views and metadata: operators that touch no element.
#include "aten/registration.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/_resize_output_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/is_set_to_native.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/library.h>

#include "runtime/allocator.h"
#include "runtime/device.h"
#include "runtime/stream.h"

namespace torch_neuronx {

namespace {

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

void check_layout(std::optional<at::Layout> layout, std::optional<bool> pin_memory) {
  TORCH_CHECK(layout.value_or(at::kStrided) == at::kStrided,
              "The neuron device holds strided tensors only, got layout ", layout.value_or(at::kStrided));
  TORCH_CHECK(!pin_memory.value_or(false), "Only dense CPU tensors can be pinned");
}

// An allocator of one device, so that allocation does not depend on the thread's current device.
struct DeviceAllocatorOn {
  explicit DeviceAllocatorOn(std::optional<at::Device> device) : previous(current_device()) {
    set_device_unchecked(resolve(device));
  }
  ~DeviceAllocatorOn() { set_device_unchecked(previous); }
  DeviceAllocatorOn(const DeviceAllocatorOn&) = delete;
  DeviceAllocatorOn& operator=(const DeviceAllocatorOn&) = delete;
  c10::DeviceIndex previous;
};

at::Tensor empty(at::IntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
                 std::optional<at::Device> device, std::optional<bool> pin_memory,
                 std::optional<at::MemoryFormat> memory_format) {
  check_layout(layout, pin_memory);
  const DeviceAllocatorOn guard(device);
  return at::detail::empty_generic(size, allocator(), kKeys, c10::dtype_or_default(dtype), memory_format);
}

at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride, std::optional<at::ScalarType> dtype,
                         std::optional<at::Layout> layout, std::optional<at::Device> device,
                         std::optional<bool> pin_memory) {
  check_layout(layout, pin_memory);
  const DeviceAllocatorOn guard(device);
  return at::detail::empty_strided_generic(size, stride, allocator(), kKeys, c10::dtype_or_default(dtype));
}

// Forward-mode automatic differentiation's zeros: a tensor without memory.
at::Tensor efficientzerotensor(at::IntArrayRef size, std::optional<at::ScalarType> dtype,
                               std::optional<at::Layout> layout, std::optional<at::Device> device,
                               std::optional<bool> pin_memory) {
  check_layout(layout, pin_memory);
  at::native::ZeroTensorAllocator zeros(at::Device(kNeuron, resolve(device)));
  return at::detail::empty_generic(size, &zeros, kKeys.add(c10::DispatchKey::ZeroTensor), c10::dtype_or_default(dtype),
                                   std::nullopt);
}

// Make the storage as large as the tensor's elements need. Torch's own kernels would do it by a memcpy on the host.
void grow(const at::Tensor& self) {
  if (self.numel() == 0) {
    return;
  }
  const size_t nbytes = at::detail::computeStorageNbytes(self.sizes(), self.strides(), self.itemsize(),
                                                         static_cast<size_t>(self.storage_offset()));
  if (nbytes > self.storage().nbytes()) {
    at::native::resize_bytes_nocuda(self.storage(), nbytes);
  }
}

const at::Tensor& resize(const at::Tensor& self, at::IntArrayRef sizes, std::optional<at::MemoryFormat> format) {
  c10::TensorImpl* impl = self.unsafeGetTensorImpl();
  if (impl->sizes() != sizes) {
    impl->set_sizes_contiguous(sizes);
    grow(self);
  }
  if (format.has_value()) {
    TORCH_CHECK(*format != at::MemoryFormat::Preserve, "Unsupported memory format", *format);
    impl->empty_tensor_restride(*format);
  }
  return self;
}

at::Tensor& set_storage(at::Tensor& self, at::Storage source, int64_t offset, at::IntArrayRef sizes,
                        at::IntArrayRef strides) {
  at::native::checkSetStorage(self, std::move(source), offset, sizes, strides);
  c10::TensorImpl* impl = self.unsafeGetTensorImpl();
  impl->set_storage_offset(offset);
  if (strides.data() != nullptr) {
    impl->set_sizes_and_strides(sizes, strides);
  } else {
    impl->set_sizes_contiguous(sizes);
  }
  grow(self);
  return self;
}

// set_() without a source: an empty tensor of the same dtype and device.
at::Tensor& set_to_empty(at::Tensor& self) {
  const at::Storage storage(at::Storage::use_byte_size_t(), 0, allocate(0, self.device().index()), allocator(), true);
  return set_storage(self, storage, 0, {0}, {});
}

void record_stream(at::Tensor& self, at::Stream stream) {
  allocator()->recordStream(self.storage().data_ptr(), stream);
}

// Lets Module.to and `tensor.data = other` exchange the contents of a tensor object between the CPU and the device, so
// that parameters stay the same objects.
bool has_compatible_shallow_copy_type(const at::Tensor& self, const at::Tensor& from) {
  const auto dense = [](const at::Tensor& tensor) {
    return tensor.layout() == at::kStrided && (tensor.is_cpu() || tensor.device().type() == kNeuron);
  };
  return dense(self) && dense(from);
}

}  // namespace

void register_tensor_operators() {
  static auto* library =
      new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  library->impl("empty.memory_format", &empty);
  library->impl("empty_strided", &empty_strided);
  library->impl("_efficientzerotensor", &efficientzerotensor);
  library->impl("_has_compatible_shallow_copy_type", &has_compatible_shallow_copy_type);
  library->impl("record_stream", &record_stream);
  // The CPU's kernels of these read no element.
  library->impl("as_strided", &at::native::as_strided_tensorimpl);
  library->impl("view", &at::native::view);
  library->impl("_reshape_alias", &at::native::_reshape_alias);
  library->impl("unfold", &at::native::unfold);
  library->impl("view_as_real", &at::native::view_as_real);
  library->impl("view_as_complex", &at::native::view_as_complex);
  library->impl("resize_", &resize);
  library->impl("_resize_output_", &at::native::_resize_output_);
  library->impl("is_set_to", &at::native::is_set_to);
  library->impl("set_", &set_to_empty);
  library->impl("set_.source_Tensor", &at::native::set_tensor_);
  library->impl("set_.source_Storage", static_cast<at::Tensor& (*)(at::Tensor&, at::Storage)>(&at::native::set_));
  library->impl("set_.source_Storage_storage_offset", &set_storage);
  // A copy between bits-carrying views would otherwise be resolved by a copy, without end; the kernels honour the bits.
  for (const c10::DispatchKey key :
       {c10::DispatchKey::Conjugate, c10::DispatchKey::Negative, c10::DispatchKey::ZeroTensor}) {
    auto* bits = new torch::Library(torch::Library::IMPL, "aten", key, __FILE__, __LINE__);
    bits->impl("_copy_from", torch::CppFunction::makeFallthrough());
    bits->impl("_copy_from_and_resize", torch::CppFunction::makeFallthrough());
  }
}

}  // namespace torch_neuronx
