// Operators whose results' sizes, or whose result, depend on the elements: count on the device, read the count, then
// fill on the device. Reading the count is the one wait for the device.
#include <ATen/ExpandUtils.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/all.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/scatter.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <torch/library.h>

#include "aten/registration.h"

namespace torch_neuronx {

namespace {

void check_devices(const char* name, const at::Tensor& a, const at::Tensor& b) {
  TORCH_CHECK(a.device() == b.device(), name, ": Expected all tensors to be on the same device, but got ", a.device(),
              " and ", b.device());
}

// The elements of `values` [N] where `mask` [N] is true, in order.
at::Tensor select(const at::Tensor& values, const at::Tensor& mask) {
  if (mask.numel() == 0) {
    return at::empty({0}, values.options());
  }
  const at::Tensor ordinal = at::cumsum(mask, 0, at::kLong);
  const int64_t count = ordinal.select(0, -1).item<int64_t>();
  // Elements that are left out go to one place behind the others.
  const at::Tensor place = at::where(mask, ordinal.sub(1), at::Scalar(count));
  return at::empty({count + 1}, values.options()).scatter_(0, place, values).narrow(0, 0, count).clone();
}

// [count]
at::Tensor masked_select(const at::Tensor& self, const at::Tensor& mask) {
  TORCH_CHECK(mask.scalar_type() == at::kBool, "masked_select: expected BoolTensor for mask, got ", mask.scalar_type());
  check_devices("masked_select", self, mask);
  const auto [where, values] = at::expand_outplace(mask, self);
  return select(values->reshape(-1), where->reshape(-1));
}

// [count, self.dim()], int64: the indices of the elements that are not 0, in row-major order.
at::Tensor nonzero(const at::Tensor& self) {
  const at::TensorOptions options = self.options().dtype(at::kLong);
  const at::Tensor positions =
      select(at::arange(self.numel(), options), (self.scalar_type() == at::kBool ? self : self.ne(0)).reshape(-1));
  if (self.dim() == 0) {
    return at::empty({positions.numel(), 0}, options);
  }
  std::vector<at::Tensor> columns;
  int64_t stride = self.numel();
  for (const int64_t size : self.sizes()) {
    stride = size == 0 ? 1 : stride / size;
    columns.push_back(positions.div(stride, "floor").remainder(std::max<int64_t>(size, 1)));
  }
  return at::stack(columns, 0).t();  // as on the CPU: one row of memory a dimension
}

bool equal(const at::Tensor& self, const at::Tensor& other) {
  TORCH_CHECK(self.device() == other.device(), "Cannot compare two tensors on different devices. Got: ", self.device(),
              " and ", other.device());
  TORCH_CHECK(self.scalar_type() == other.scalar_type(), "Expected tensors of one dtype to compare, got ",
              self.scalar_type(), " and ", other.scalar_type());
  return self.is_same_size(other) && (self.numel() == 0 || at::eq(self, other).all().item<bool>());
}

}  // namespace

void register_selection_operators() {
  static auto* library =
      new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  library->impl("masked_select", &masked_select);
  library->impl("nonzero", &nonzero);
  library->impl("equal", &equal);
}

}  // namespace torch_neuronx
