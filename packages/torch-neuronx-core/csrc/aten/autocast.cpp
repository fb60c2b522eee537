// Mixed precision: torch's own lists of operators, on the AutocastPrivateUse1 key.
#include "aten/registration.h"

#include <ATen/Functions.h>  // the lists name about a hundred operators
#include <ATen/autocast_mode.h>
#include <torch/library.h>

namespace torch_neuronx {

namespace {

at::Tensor binary_cross_entropy_refused(const at::Tensor& /*self*/, const at::Tensor& /*target*/,
                                        const std::optional<at::Tensor>& /*weight*/, int64_t /*reduction*/) {
  TORCH_CHECK(
      false,
      "binary_cross_entropy (BCELoss) is unsafe under autocast: its input, a probability, loses too much in half "
      "precision. Use binary_cross_entropy_with_logits (BCEWithLogitsLoss), or disable autocast around it");
}

}  // namespace

void register_autocast() {
  using at::IntArrayRef, at::Scalar, at::ScalarType, at::Tensor;  // names that the macros expect
  static auto* rest =
      new torch::Library(torch::Library::IMPL, "_", c10::DispatchKey::AutocastPrivateUse1, __FILE__, __LINE__);
  rest->fallback(torch::CppFunction::makeFallthrough());

  static auto* library =
      new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::AutocastPrivateUse1, __FILE__, __LINE__);
  torch::Library& m = *library;
#define LOWER_PRECISION(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define FP32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define FP32_SET_OPT_DTYPE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define PROMOTE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)
  AT_FORALL_LOWER_PRECISION_FP(LOWER_PRECISION)
  AT_FORALL_FP32(FP32)
  AT_FORALL_FP32_SET_OPT_DTYPE(FP32_SET_OPT_DTYPE)
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
  AT_FORALL_PROMOTE(PROMOTE)
  KERNEL_PRIVATEUSEONE(stack, promote)
  KERNEL_PRIVATEUSEONE(cat, promote)
  m.impl("binary_cross_entropy", &binary_cross_entropy_refused);
#undef LOWER_PRECISION
#undef FP32
#undef FP32_SET_OPT_DTYPE
#undef PROMOTE
}

}  // namespace torch_neuronx
