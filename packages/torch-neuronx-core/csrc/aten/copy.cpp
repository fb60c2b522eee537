// Copies between the host and the device and inside the device, and reading a scalar. Bytes move through the runtime;
// host code never follows a device address. Whatever must be cast or re-strided on the device goes to a program.
#include "aten/registration.h"

#include <ATen/Dispatch_v2.h>
#include <ATen/EmptyTensor.h>
#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/conj_physical.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/neg.h>
#include <ATen/ops/zero.h>
#include <torch/library.h>

#include "dispatch/kernel.h"
#include "dispatch/memory.h"
#include "neuron/launch.h"
#include "runtime/device.h"
#include "runtime/stream.h"

namespace torch_neuronx {

namespace {

bool on_device(const at::Tensor& tensor) { return tensor.device().type() == kNeuron; }

bool has_bits(const at::Tensor& tensor) { return tensor.is_conj() || tensor.is_neg(); }

// Bytes between the first and the end of the last element.
size_t span_bytes(const at::Tensor& tensor) {
  return at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(), tensor.element_size());
}

// Whether the elements fill a range of memory without holes, each once.
bool is_dense(const at::Tensor& tensor) { return tensor.is_non_overlapping_and_dense(); }

bool same_layout(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes().equals(b.sizes()) && (a.strides().equals(b.strides()) || (a.is_contiguous() && b.is_contiguous()));
}

// Strip the conjugate and negative bits: the tensor as it lies in memory.
at::Tensor physical(at::Tensor tensor) {
  if (tensor.is_conj()) {
    tensor = tensor.conj();
  }
  return tensor.is_neg() ? tensor._neg_view() : tensor;
}

void read(void* host, const at::Tensor& device, size_t nbytes) {
  const StreamLock lock(device.device().index());
  check(nrtx_copy_to_host(host, dispatch::address_of(device.unsafeGetTensorImpl(), false), nbytes),
        "Cannot copy from the device");
}

void write(const at::Tensor& device, const void* host, size_t nbytes) {
  const StreamLock lock(device.device().index());
  check(nrtx_copy_from_host(dispatch::address_of(device.unsafeGetTensorImpl(), true), host, nbytes),
        "Cannot copy to the device");
}

at::Tensor host_like(const at::Tensor& tensor) {
  return at::detail::empty_strided_cpu(tensor.sizes(), tensor.strides(), tensor.scalar_type());
}

at::Tensor contiguous_on_device(const at::Tensor& tensor, at::ScalarType dtype) {
  return at::empty(tensor.sizes(), tensor.options().dtype(dtype).memory_format(at::MemoryFormat::Contiguous));
}

// A CPU tensor of the same sizes and values. Copies the range that the elements span; when that is mostly holes, a
// program gathers the elements first, where there is one.
at::Tensor to_host(const at::Tensor& source) {
  constexpr size_t kFewHoles = 4, kSmall = 64 * 1024;
  at::Tensor bare = physical(source);
  const size_t wanted = bare.numel() * bare.element_size();
  if (!is_dense(bare) && span_bytes(bare) > std::max(kFewHoles * wanted, kSmall)) {
    const at::Tensor gathered = contiguous_on_device(bare, bare.scalar_type());
    if (dispatch::copy_on_device(bare, gathered)) {
      bare = gathered;
    }
  }
  at::Tensor host = host_like(bare);
  read(host.mutable_data_ptr(), bare, span_bytes(bare));
  host._set_conj(source.is_conj());
  host._set_neg(source.is_neg());
  return host;
}

void copy_to_host(const at::Tensor& source, const at::Tensor& destination) {
  if (!has_bits(source) && !has_bits(destination) && source.scalar_type() == destination.scalar_type() &&
      same_layout(source, destination) && is_dense(source)) {
    read(destination.mutable_data_ptr(), source, source.numel() * source.element_size());
  } else {
    destination.copy_(to_host(source));
  }
}

void copy_inside(const at::Tensor& source, const at::Tensor& destination);

void copy_from_host(const at::Tensor& source, const at::Tensor& destination) {
  if (!is_dense(destination)) {
    const at::Tensor staged = contiguous_on_device(destination, destination.scalar_type());
    copy_from_host(source, staged);
    copy_inside(staged, destination);
    return;
  }
  at::Tensor host = source;
  if (has_bits(source) || source.scalar_type() != destination.scalar_type() || !same_layout(source, destination)) {
    host = host_like(destination);
    host.copy_(source);
  }
  write(destination, host.const_data_ptr(), destination.numel() * destination.element_size());
}

void copy_through_host(const at::Tensor& source, const at::Tensor& destination) {
  at::Tensor image = host_like(destination);
  if (!is_dense(destination)) {  // the holes belong to others
    read(image.mutable_data_ptr(), destination, span_bytes(destination));
  }
  image.copy_(to_host(source));
  write(destination, image.const_data_ptr(), span_bytes(destination));
}

// Both on one device; the destination has no bits; sizes are equal.
void copy_inside(const at::Tensor& source, const at::Tensor& destination) {
  at::Tensor values = source;
  if (values.is_conj()) {
    values = at::conj_physical(values.conj());
  }
  if (values.is_neg()) {
    values = at::neg(values._neg_view());
  }
  if (values.scalar_type() == destination.scalar_type() && same_layout(values, destination) && is_dense(destination)) {
    const StreamLock lock(destination.device().index());
    check(nrtx_copy_on_device(destination.mutable_data_ptr(), values.const_data_ptr(),
                              destination.numel() * destination.element_size()),
          "Cannot copy on the device");
    return;
  }
  if (!dispatch::copy_on_device(values, destination)) {
    copy_through_host(values, destination);
  }
}

void copy_between_devices(const at::Tensor& source, const at::Tensor& destination) {
  // Gather and cast where the data is, so that one block of bytes crosses.
  at::Tensor packed = contiguous_on_device(source, destination.scalar_type());
  copy_inside(source, packed);
  at::Tensor arrived = destination;
  if (!same_layout(packed, destination) || !is_dense(destination)) {
    arrived = contiguous_on_device(destination, destination.scalar_type());
  }
  {
    const StreamLock lock(arrived.device().index());
    check(nrtx_copy_on_device(arrived.mutable_data_ptr(), packed.const_data_ptr(),
                              packed.numel() * packed.element_size()),
          "Cannot copy between devices");
  }
  if (!arrived.is_same(destination)) {
    copy_inside(arrived, destination);
  }
}

at::Tensor broadcast(const at::Tensor& source, const at::Tensor& destination) {
  if (source.sizes().equals(destination.sizes())) {
    return source;
  }
  const auto size = at::infer_size_dimvector(destination.sizes(), source.sizes());
  TORCH_CHECK(at::IntArrayRef(size).equals(destination.sizes()), "output with shape ", destination.sizes(),
              " doesn't match the broadcast shape ", at::IntArrayRef(size));
  return source.expand(destination.sizes());
}

at::Tensor copy_from(const at::Tensor& self, const at::Tensor& dst, bool /*non_blocking*/) {
  TORCH_CHECK(self.layout() == at::kStrided && dst.layout() == at::kStrided,
              "Copies to and from the neuron device are of strided tensors, got ", self.layout(), " and ",
              dst.layout());
  TORCH_CHECK(!dst._is_zerotensor(),
              "ZeroTensors are immutable. Please materialize the tensor using `.clone()`, if you "
              "want a mutable zero tensor.");
  at::Tensor source = broadcast(self, dst);
  at::Tensor destination = dst;
  at::assert_no_internal_overlap(destination);
  if (destination.numel() == 0) {
    return dst;
  }
  if (source._is_zerotensor()) {
    destination.zero_();
    return dst;
  }
  if (destination.is_conj()) {
    destination = destination.conj();
    source = source.conj();
  }
  if (destination.is_neg()) {
    destination = destination._neg_view();
    source = source._neg_view();
  }
  if (on_device(source) && on_device(destination)) {
    if (source.device() != destination.device()) {
      copy_between_devices(source, destination);
      return dst;
    }
    at::assert_no_partial_overlap(destination, source);
    copy_inside(source, destination);
  } else if (on_device(destination)) {
    copy_from_host(source.is_cpu() ? source : source.cpu(), destination);
  } else if (destination.is_cpu()) {
    copy_to_host(source, destination);
  } else {
    destination.copy_(to_host(source));  // another accelerator
  }
  return dst;
}

at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& dst) {
  dst.resize_(self.sizes());
  return copy_from(self, dst, /*non_blocking=*/false);
}

at::Scalar local_scalar_dense(const at::Tensor& self) {
  at::Scalar result;
  AT_DISPATCH_V2(self.scalar_type(), "_local_scalar_dense", AT_WRAP([&] {
                   scalar_t value;
                   read(&value, self, sizeof(value));
                   result = value;
                 }),
                 AT_EXPAND(AT_ALL_TYPES_AND_COMPLEX), AT_EXPAND(AT_BAREBONES_UNSIGNED_TYPES),
                 AT_EXPAND(AT_FLOAT8_TYPES), at::kComplexHalf, at::kHalf, at::kBFloat16, at::kBool);
  return result;
}

}  // namespace

void register_copy_operators() {
  static auto* library =
      new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  library->impl("_copy_from", &copy_from);
  library->impl("_copy_from_and_resize", &copy_from_and_resize);
  library->impl("_local_scalar_dense", &local_scalar_dense);
}

}  // namespace torch_neuronx
