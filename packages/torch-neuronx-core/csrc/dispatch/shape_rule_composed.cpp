#include <ATen/EmptyTensor.h>
#include <ATen/ExpandUtils.h>
#include <ATen/MetaFunctions.h>
#include <ATen/TensorIterator.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/core/Reduction.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/result_type.h>

#include <array>

#include "dispatch/shape_rule.h"

namespace torch_neuronx::dispatch {

namespace {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;

Tensor contiguous(at::IntArrayRef sizes, at::ScalarType dtype) { return at::detail::empty_meta(sizes, dtype); }

// Sizes, strides and dtype of a tensor, as an element-wise operator gives them back.
Tensor like(const Tensor& self) { return at::meta::sgn(self); }

// Contiguous, or channels-last as the input is.
Tensor in_format_of(const Tensor& input) {
  return at::detail::empty_meta(input.sizes(), input.scalar_type(), input.suggest_memory_format());
}

// The dtype of an average.
at::ScalarType floating(at::ScalarType dtype) {
  return at::isIntegralType(dtype, /*includeBool=*/true) ? at::typeMetaToScalarType(at::get_default_dtype()) : dtype;
}

// The dtype in which statistics of a tensor are kept.
at::ScalarType statistics(at::ScalarType dtype) {
  return dtype == at::kHalf || dtype == at::kBFloat16 ? at::kFloat : dtype;
}

Tensor reduced(const Tensor& elements, int64_t reduction) {
  return reduction == at::Reduction::None ? elements : contiguous({}, elements.scalar_type());
}

bool defined(const OptionalTensor& tensor) { return tensor.has_value() && tensor->defined(); }

// ---- element-wise ------------------------------------------------------------------------------------------------

Tensor floor_divide(const Tensor& self, const Tensor& other) { return at::meta::div(self, other, "floor"); }
Tensor& floor_divide_(Tensor& self, const Tensor& other) { return at::meta::div_(self, other, "floor"); }
Tensor& floor_divide_out(const Tensor& self, const Tensor& other, Tensor& out) {
  return at::meta::div_outf(self, other, "floor", out);
}

Tensor rsub(const Tensor& self, const Tensor& other, const at::Scalar& alpha) {
  return at::meta::sub(other, self, alpha);
}

void check_relu(const Tensor& self) {
  TORCH_CHECK(self.scalar_type() != at::kBool, "Boolean inputs not supported for relu");
}

Tensor rectified(const Tensor& self) {
  check_relu(self);
  return like(self);
}

Tensor& rectified_(Tensor& self) {
  check_relu(self);
  return self;
}

Tensor hardtanh(const Tensor& self, const at::Scalar& /*min*/, const at::Scalar& /*max*/) {
  TORCH_CHECK(self.scalar_type() != at::kBool, "Bool inputs not supported for hardtanh");
  return like(self);
}

std::tuple<Tensor, Tensor> log_sigmoid_forward(const Tensor& self) {
  TORCH_CHECK(self.is_floating_point(), "\"log_sigmoid_cpu\" not implemented for '", self.scalar_type(), "'");
  return {contiguous(self.sizes(), self.scalar_type()), contiguous(self.sizes(), self.scalar_type())};
}

Tensor log_sigmoid_backward(const Tensor& grad, const Tensor& /*self*/, const Tensor& /*buffer*/) { return like(grad); }

Tensor glu_backward(const Tensor& /*grad*/, const Tensor& self, int64_t /*dim*/) {
  return contiguous(self.sizes(), self.scalar_type());
}

Tensor mish_backward(const Tensor& grad, const Tensor& self) { return at::meta::sigmoid_backward(grad, self); }

std::tuple<Tensor, Tensor> prelu_kernel_backward(const Tensor& grad, const Tensor& self, const Tensor& /*weight*/) {
  return {at::meta::sigmoid_backward(grad, self), at::meta::sigmoid_backward(grad, self)};
}

Tensor chosen(const Tensor& condition, const Tensor& self, const Tensor& other) {
  TORCH_CHECK(condition.scalar_type() == at::kBool || condition.scalar_type() == at::kByte,
              "where expected condition to be a boolean tensor, but got a tensor with dtype ", condition.scalar_type());
  at::TensorIteratorConfig config;
  config.check_all_same_dtype(false)
      .declare_static_dtype(at::result_type(self, other))
      .add_owned_output(Tensor())
      .add_owned_const_input(condition)
      .add_owned_const_input(self)
      .add_owned_const_input(other);
  return config.build().output();
}

Tensor& chosen_out(const Tensor& condition, const Tensor& self, const Tensor& other, Tensor& out) {
  const Tensor result = chosen(condition, self, other);
  TORCH_CHECK(at::canCast(result.scalar_type(), out.scalar_type()), "Expected out type to be ", result.scalar_type(),
              " but got ", out.scalar_type());
  at::native::resize_output(out, result.sizes());
  return out;
}

// A fused optimizer step: everything is written in place, and nothing returned.
void in_place(const c10::OperatorHandle& op, c10::Stack* stack) {
  torch::jit::drop(*stack, op.schema().arguments().size());
}

at::DimVector filled_sizes(const Tensor& self, const Tensor& mask) {
  TORCH_CHECK(mask.scalar_type() == at::kBool, "masked_fill_ only supports boolean masks, but got mask with dtype ",
              mask.dtype());
  return at::infer_size_dimvector(self.sizes(), mask.sizes());
}

void check_fill(const Tensor& value) {
  TORCH_CHECK(value.dim() == 0, "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with ",
              value.dim(), " dimension(s).");
}

Tensor fill_masked(const Tensor& self, const Tensor& mask, const at::Scalar& /*value*/) {
  return contiguous(filled_sizes(self, mask), self.scalar_type());
}

Tensor fill_masked_by_tensor(const Tensor& self, const Tensor& mask, const Tensor& value) {
  check_fill(value);
  return contiguous(filled_sizes(self, mask), self.scalar_type());
}

Tensor& fill_masked_(Tensor& self, const Tensor& mask, const at::Scalar& /*value*/) {
  const at::DimVector sizes = filled_sizes(self, mask);
  TORCH_CHECK(self.sizes() == sizes, "output with shape ", self.sizes(), " doesn't match the broadcast shape ",
              at::IntArrayRef(sizes));
  return self;
}

Tensor& fill_masked_by_tensor_(Tensor& self, const Tensor& mask, const Tensor& value) {
  check_fill(value);
  return fill_masked_(self, mask, 0);
}

std::tuple<Tensor, Tensor> native_dropout(const Tensor& input, double /*p*/, std::optional<bool> train) {
  TORCH_CHECK(!train.value_or(true) || input.is_floating_point(),
              "result type Float can't be cast to the desired "
              "output type ",
              input.scalar_type());
  return {like(input), at::meta::isneginf(input)};
}

// ---- sizes -------------------------------------------------------------------------------------------------------

Tensor stack(at::TensorList tensors, int64_t dim) {
  TORCH_CHECK(!tensors.empty(), "stack expects a non-empty TensorList");
  const int64_t at = at::maybe_wrap_dim(dim, tensors[0].dim() + 1);
  std::vector<Tensor> rows;
  for (size_t i = 0; i < tensors.size(); ++i) {
    TORCH_CHECK(tensors[i].sizes() == tensors[0].sizes(), "stack expects each tensor to be equal size, but got ",
                tensors[0].sizes(), " at entry 0 and ", tensors[i].sizes(), " at entry ", i);
    rows.push_back(tensors[i].unsqueeze(at));
  }
  return at::meta::cat(at::ITensorListRef(rows), at);
}

Tensor roll(const Tensor& self, at::IntArrayRef shifts, at::IntArrayRef dims) {
  TORCH_CHECK(!shifts.empty(), "`shifts` required");
  TORCH_CHECK((dims.empty() && shifts.size() == 1) || dims.size() == shifts.size(),
              "shifts and dimensions must align. "
              "shifts: ",
              shifts.size(), ", dims:", dims.size());
  return contiguous(self.sizes(), self.scalar_type());
}

// ---- products ----------------------------------------------------------------------------------------------------

Tensor dot(const Tensor& self, const Tensor& other) {
  TORCH_CHECK(self.dim() == 1 && other.dim() == 1, "1D tensors expected, but got ", self.dim(), "D and ", other.dim(),
              "D tensors");
  TORCH_CHECK(self.scalar_type() == other.scalar_type(), "dot : expected both vectors to have same dtype, but found ",
              self.scalar_type(), " and ", other.scalar_type());
  TORCH_CHECK(self.numel() == other.numel(), "inconsistent tensor size, expected tensor [", self.numel(), "] and src [",
              other.numel(), "] to have the same number of elements, but got ", self.numel(), " and ", other.numel(),
              " elements respectively");
  return contiguous({}, self.scalar_type());
}

Tensor mv(const Tensor& self, const Tensor& vector) {
  TORCH_CHECK(self.dim() == 2, "matrix @ vector expected, got ", self.dim(), ", ", vector.dim());
  return at::meta::addmv(contiguous({self.size(0)}, vector.scalar_type()), self, vector, 0, 1);
}

Tensor addr(const Tensor& self, const Tensor& column, const Tensor& row, const at::Scalar& /*beta*/,
            const at::Scalar& /*alpha*/) {
  TORCH_CHECK(column.dim() == 1 && row.dim() == 1, "addr: Expected 1-D argument vec1 and vec2, but got ", column.dim(),
              "-D and ", row.dim(), "-D");
  TORCH_CHECK(self.dim() <= 2, "2D tensor expected, got ", self.dim(), "D tensor for input");
  const Tensor product = at::meta::mul(column.unsqueeze(1), row.unsqueeze(0));
  return at::meta::mul(self.expand(product.sizes()), product);
}

// ---- reductions --------------------------------------------------------------------------------------------------

Tensor mean(const Tensor& self, std::optional<at::ScalarType> dtype) {
  return at::meta::mean(self, at::IntArrayRef(), false, dtype);
}

Tensor logsumexp(const Tensor& self, at::IntArrayRef dims, bool keepdim) {
  return at::meta::sum(self, dims, keepdim, floating(self.scalar_type()));
}

Tensor count_nonzero(const Tensor& self, at::IntArrayRef dims) { return at::meta::sum(self, dims, false, at::kLong); }

Tensor norm(const Tensor& self, const at::Scalar& p) {
  return at::meta::norm(self, std::optional<at::Scalar>(p), at::IntArrayRef(), false);
}

Tensor deviation(const Tensor& self, at::OptionalIntArrayRef dims, const std::optional<at::Scalar>& /*correction*/,
                 bool keepdim) {
  TORCH_CHECK(self.is_floating_point(), "std and var only support floating point and complex dtypes");
  return at::meta::sum(self, dims, keepdim, std::nullopt);
}

std::tuple<Tensor, Tensor> deviation_and_mean(const Tensor& self, at::OptionalIntArrayRef dims,
                                              const std::optional<at::Scalar>& correction, bool keepdim) {
  return {deviation(self, dims, correction, keepdim), deviation(self, dims, correction, keepdim)};
}

Tensor safe_softmax(const Tensor& self, int64_t dim, std::optional<at::ScalarType> dtype) {
  at::maybe_wrap_dim(dim, self.dim());
  return contiguous(self.sizes(), dtype.value_or(self.scalar_type()));
}

// ---- losses ------------------------------------------------------------------------------------------------------

Tensor huber_loss(const Tensor& input, const Tensor& target, int64_t reduction, double delta) {
  TORCH_CHECK(delta > 0, "huber_loss does not support non-positive values for delta.");
  return at::meta::mse_loss(input, target, reduction);
}

Tensor mse_loss_backward(const Tensor& /*grad*/, const Tensor& input, const Tensor& /*target*/, int64_t /*reduction*/) {
  return contiguous(input.sizes(), input.scalar_type());
}

Tensor smooth_l1_loss_backward(const Tensor& /*grad*/, const Tensor& input, const Tensor& /*target*/,
                               int64_t /*reduction*/, double /*beta or delta*/) {
  return contiguous(input.sizes(), input.scalar_type());
}

Tensor binary_cross_entropy(const Tensor& input, const Tensor& target, const OptionalTensor& /*weight*/,
                            int64_t reduction) {
  TORCH_CHECK(input.sizes() == target.sizes(), "Using a target size (", target.sizes(),
              ") that is different to the input size (", input.sizes(),
              ") is deprecated. Please ensure they have the same size.");
  return reduced(like(input), reduction);
}

Tensor binary_cross_entropy_backward(const Tensor& /*grad*/, const Tensor& input, const Tensor& /*target*/,
                                     const OptionalTensor& /*weight*/, int64_t /*reduction*/) {
  return like(input);
}

Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target, const OptionalTensor& weight,
                                        const OptionalTensor& positive, int64_t reduction) {
  Tensor loss = at::meta::mul(target, input);
  for (const OptionalTensor& factor : {weight, positive}) {
    loss = defined(factor) ? at::meta::mul(loss, *factor) : loss;
  }
  return reduced(loss, reduction);
}

std::tuple<Tensor, Tensor> nll_loss2d_forward(const Tensor& self, const Tensor& target, const OptionalTensor& weight,
                                              int64_t reduction, int64_t /*ignore_index*/) {
  TORCH_CHECK(target.dim() == 3,
              "only batches of spatial targets supported (3D tensors) but got targets of dimension: ", target.dim());
  TORCH_CHECK(self.dim() == 4,
              "only batches of spatial inputs supported (4D tensors), but got input of dimension: ", self.dim());
  TORCH_CHECK(self.size(0) == target.size(0) && self.size(2) == target.size(1) && self.size(3) == target.size(2),
              "input and target batch or spatial sizes don't match: target ", target.sizes(), ", input ", self.sizes());
  TORCH_CHECK(!defined(weight) || weight->numel() == self.size(1),
              "weight tensor should be defined either for all or "
              "no classes");
  return {contiguous(reduction == at::Reduction::None ? target.sizes() : at::IntArrayRef(), self.scalar_type()),
          contiguous({}, self.scalar_type())};
}

Tensor nll_loss2d_backward(const Tensor& /*grad*/, const Tensor& self, const Tensor& /*target*/,
                           const OptionalTensor& /*weight*/, int64_t /*reduction*/, int64_t /*ignore_index*/,
                           const Tensor& /*total_weight*/) {
  return contiguous(self.sizes(), self.scalar_type());
}

// ---- normalisation -----------------------------------------------------------------------------------------------

using Gradients = std::tuple<Tensor, Tensor, Tensor>;

void check_normalized(const Tensor& input, at::IntArrayRef shape, const OptionalTensor& parameter, const char* name) {
  TORCH_CHECK(!shape.empty(),
              "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one "
              "element, but got normalized_shape = ",
              shape);
  TORCH_CHECK(!defined(parameter) || parameter->sizes() == shape, "Expected ", name,
              " to be of same shape as "
              "normalized_shape, but got ",
              name, " of shape ", defined(parameter) ? parameter->sizes() : shape, " and normalized_shape = ", shape);
  const size_t rank = static_cast<size_t>(input.dim());
  TORCH_CHECK(rank >= shape.size() && input.sizes().slice(rank - shape.size()) == shape,
              "Given normalized_shape=", shape, ", expected input with shape [*, ", shape, "], but got input of size",
              input.sizes());
}

std::tuple<Tensor, Tensor, Tensor> native_layer_norm(const Tensor& input, at::IntArrayRef shape,
                                                     const OptionalTensor& weight, const OptionalTensor& bias,
                                                     double /*eps*/) {
  check_normalized(input, shape, weight, "weight");
  check_normalized(input, shape, bias, "bias");
  at::DimVector outer(input.sizes().begin(), input.sizes().end());
  std::fill(outer.end() - static_cast<std::ptrdiff_t>(shape.size()), outer.end(), 1);
  const at::ScalarType dtype = statistics(input.scalar_type());
  return {contiguous(input.sizes(), input.scalar_type()), contiguous(outer, dtype), contiguous(outer, dtype)};
}

Gradients native_layer_norm_backward(const Tensor& /*grad*/, const Tensor& input, at::IntArrayRef shape,
                                     const Tensor& /*mean*/, const Tensor& /*rstd*/, const OptionalTensor& weight,
                                     const OptionalTensor& bias, std::array<bool, 3> mask) {
  return {mask[0] ? contiguous(input.sizes(), input.scalar_type()) : Tensor(),
          mask[1] && defined(weight) ? contiguous(shape, weight->scalar_type()) : Tensor(),
          mask[2] && defined(bias) ? contiguous(shape, bias->scalar_type()) : Tensor()};
}

std::tuple<Tensor, Tensor, Tensor> native_group_norm(const Tensor& input, const OptionalTensor& weight,
                                                     const OptionalTensor& bias, int64_t batch, int64_t channels,
                                                     int64_t inner, int64_t groups, double /*eps*/) {
  TORCH_CHECK(groups > 0 && channels % groups == 0,
              "Expected number of channels in input to be divisible by "
              "num_groups, but got input of shape ",
              input.sizes(), " and num_groups=", groups);
  for (const OptionalTensor& parameter : {weight, bias}) {
    TORCH_CHECK(!defined(parameter) || (parameter->dim() == 1 && parameter->numel() == channels),
                "Expected weight and "
                "bias to be vectors of size equal to the number of channels in input, but got shape ",
                defined(parameter) ? parameter->sizes() : input.sizes(), " and input of shape ", input.sizes());
  }
  TORCH_CHECK(input.numel() == batch * channels * inner, "Expected ", batch * channels * inner, " elements, but got ",
              input.numel());
  return {in_format_of(input), contiguous({batch, groups}, input.scalar_type()),
          contiguous({batch, groups}, input.scalar_type())};
}

Gradients native_group_norm_backward(const Tensor& /*grad*/, const Tensor& input, const Tensor& /*mean*/,
                                     const Tensor& /*rstd*/, const OptionalTensor& weight, int64_t /*batch*/,
                                     int64_t channels, int64_t /*inner*/, int64_t /*groups*/,
                                     std::array<bool, 3> mask) {
  const at::ScalarType dtype = defined(weight) ? weight->scalar_type() : input.scalar_type();
  return {mask[0] ? contiguous(input.sizes(), input.scalar_type()) : Tensor(),
          mask[1] ? contiguous({channels}, dtype) : Tensor(), mask[2] ? contiguous({channels}, dtype) : Tensor()};
}

std::tuple<Tensor, Tensor, Tensor> native_batch_norm(const Tensor& input, const OptionalTensor& /*weight*/,
                                                     const OptionalTensor& /*bias*/, const OptionalTensor& mean,
                                                     const OptionalTensor& variance, bool training, double /*momentum*/,
                                                     double /*eps*/) {
  TORCH_CHECK(input.dim() >= 2, "Expected an input of at least 2 dimensions, but got ", input.dim());
  TORCH_CHECK(training || (defined(mean) && defined(variance)),
              "running_mean and running_var must be defined in evaluation mode");
  const at::ScalarType dtype = statistics(input.scalar_type());
  const int64_t kept = training ? input.size(1) : 0;
  return {in_format_of(input), contiguous({kept}, dtype), contiguous({kept}, dtype)};
}

Gradients native_batch_norm_backward(const Tensor& /*grad*/, const Tensor& input, const OptionalTensor& weight,
                                     const OptionalTensor& /*mean*/, const OptionalTensor& /*variance*/,
                                     const OptionalTensor& /*saved mean*/, const OptionalTensor& /*saved rstd*/,
                                     bool /*training*/, double /*eps*/, std::array<bool, 3> mask) {
  const at::ScalarType dtype = defined(weight) ? weight->scalar_type() : input.scalar_type();
  return {mask[0] ? in_format_of(input) : Tensor(), mask[1] ? contiguous({input.size(1)}, dtype) : Tensor(),
          mask[2] ? contiguous({input.size(1)}, dtype) : Tensor()};
}

#define RULE(name, overload, function) \
  { "aten::" name, overload, box(&function) }

}  // namespace

std::vector<ShapeRule> composed_rules() {
  return {
      RULE("floor_divide", "", floor_divide),
      RULE("floor_divide_", "Tensor", floor_divide_),
      RULE("floor_divide", "out", floor_divide_out),
      RULE("rsub", "Tensor", rsub),
      RULE("relu", "", rectified),
      RULE("relu_", "", rectified_),
      RULE("hardtanh", "", hardtanh),
      RULE("log_sigmoid_forward", "", log_sigmoid_forward),
      RULE("log_sigmoid_backward", "", log_sigmoid_backward),
      RULE("glu_backward", "", glu_backward),
      RULE("mish_backward", "", mish_backward),
      RULE("_prelu_kernel_backward", "", prelu_kernel_backward),
      RULE("where", "self", chosen),
      RULE("where", "self_out", chosen_out),
      RULE("masked_fill", "Scalar", fill_masked),
      RULE("masked_fill", "Tensor", fill_masked_by_tensor),
      RULE("masked_fill_", "Scalar", fill_masked_),
      RULE("masked_fill_", "Tensor", fill_masked_by_tensor_),
      {"aten::_fused_adam_", "", c10::KernelFunction::makeFromBoxedFunction<&in_place>()},
      {"aten::_fused_adam_", "tensor_lr", c10::KernelFunction::makeFromBoxedFunction<&in_place>()},
      {"aten::_fused_adamw_", "", c10::KernelFunction::makeFromBoxedFunction<&in_place>()},
      {"aten::_fused_adamw_", "tensor_lr", c10::KernelFunction::makeFromBoxedFunction<&in_place>()},
      {"aten::_fused_sgd_", "", c10::KernelFunction::makeFromBoxedFunction<&in_place>()},
      {"aten::_fused_sgd_", "tensor_lr", c10::KernelFunction::makeFromBoxedFunction<&in_place>()},
      RULE("native_dropout", "", native_dropout),
      RULE("stack", "", stack),
      RULE("roll", "", roll),
      RULE("dot", "", dot),
      RULE("vdot", "", dot),
      RULE("mv", "", mv),
      RULE("addr", "", addr),
      RULE("mean", "", mean),
      RULE("logsumexp", "", logsumexp),
      RULE("count_nonzero", "dim_IntList", count_nonzero),
      RULE("norm", "Scalar", norm),
      RULE("std", "correction", deviation),
      RULE("var", "correction", deviation),
      RULE("std_mean", "correction", deviation_and_mean),
      RULE("var_mean", "correction", deviation_and_mean),
      RULE("_safe_softmax", "", safe_softmax),
      RULE("huber_loss", "", huber_loss),
      RULE("mse_loss_backward", "", mse_loss_backward),
      RULE("smooth_l1_loss_backward", "", smooth_l1_loss_backward),
      RULE("huber_loss_backward", "", smooth_l1_loss_backward),
      RULE("binary_cross_entropy", "", binary_cross_entropy),
      RULE("binary_cross_entropy_backward", "", binary_cross_entropy_backward),
      RULE("binary_cross_entropy_with_logits", "", binary_cross_entropy_with_logits),
      RULE("nll_loss2d_forward", "", nll_loss2d_forward),
      RULE("nll_loss2d_backward", "", nll_loss2d_backward),
      RULE("native_layer_norm", "", native_layer_norm),
      RULE("native_layer_norm_backward", "", native_layer_norm_backward),
      RULE("native_group_norm", "", native_group_norm),
      RULE("native_group_norm_backward", "", native_group_norm_backward),
      RULE("native_batch_norm", "", native_batch_norm),
      RULE("native_batch_norm_backward", "", native_batch_norm_backward),
      {"aten::nll_loss_forward", "", box(&at::meta::nll_loss_forward)},
      {"aten::nll_loss_backward", "", box(&at::meta::nll_loss_backward)},
      {"aten::tril", "", box<Tensor(const Tensor&, int64_t)>(&at::meta::tril)},
      {"aten::triu", "", box<Tensor(const Tensor&, int64_t)>(&at::meta::triu)},
      {"aten::tril_", "", box<Tensor&(Tensor&, int64_t)>(&at::meta::tril_)},
      {"aten::triu_", "", box<Tensor&(Tensor&, int64_t)>(&at::meta::triu_)},
  };
}

}  // namespace torch_neuronx::dispatch
