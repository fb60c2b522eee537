// Shape rules of factories that fill a given tensor.
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>

#include "dispatch/shape_rule.h"

namespace torch_neuronx::dispatch {

namespace {

using at::Tensor;

// A tensor with the right number of elements is filled in its own shape, in order; any other becomes a vector.
Tensor& filled_in_order(Tensor& out, int64_t count) {
  if (out.numel() != count) {
    out.resize_({count});
  }
  return out;
}

Tensor& arange(const at::Scalar& start, const at::Scalar& end, const at::Scalar& step, Tensor& out) {
  return filled_in_order(out, at::arange(start, end, step, out.options()).numel());
}

Tensor& arange_to(const at::Scalar& end, Tensor& out) { return arange(0, end, 1, out); }

Tensor& linspace(const at::Scalar& /*start*/, const at::Scalar& /*end*/, int64_t steps, Tensor& out) {
  TORCH_CHECK(steps >= 0, "number of steps must be non-negative");
  return filled_in_order(out, steps);
}

}  // namespace

std::vector<ShapeRule> creation_rules() {
  return {
      {"aten::arange", "start_out", box(&arange)},
      {"aten::arange", "out", box(&arange_to)},
      {"aten::linspace", "out", box(&linspace)},
  };
}

}  // namespace torch_neuronx::dispatch
