// Tensors that are not plain strided ones: the device has none of them, and says so in place of torch's list of every
// dispatch key.
#include <torch/library.h>

#include "aten/registration.h"

namespace torch_neuronx {

namespace {

struct Refused {
  c10::DispatchKey key;
  const char* kind;
  const char* instead;
};

constexpr Refused kQuantized{c10::DispatchKey::QuantizedPrivateUse1, "quantized", "call dequantize() first"};
constexpr Refused kSparse{c10::DispatchKey::SparsePrivateUse1, "sparse", "call to_dense() first"};
constexpr Refused kSparseCsr{c10::DispatchKey::SparseCsrPrivateUse1, "sparse", "call to_dense() first"};
constexpr Refused kNested{c10::DispatchKey::NestedTensorPrivateUse1, "nested", "use layout=torch.jagged"};

template <const Refused& refused>
void refuse(const c10::OperatorHandle& op, c10::Stack* /*stack*/) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, op.operator_name(),
                              ": the neuron device holds strided tensors of plain dtypes, not ", refused.kind,
                              " ones. Keep the tensor on the CPU, or ", refused.instead);
}

template <const Refused& refused>
void register_refusal() {
  static auto* library = new torch::Library(torch::Library::IMPL, "_", refused.key, __FILE__, __LINE__);
  library->fallback(torch::CppFunction::makeFromBoxedFunction<&refuse<refused>>());
}

}  // namespace

void register_layouts() {
  register_refusal<kQuantized>();
  register_refusal<kSparse>();
  register_refusal<kSparseCsr>();
  register_refusal<kNested>();
}

}  // namespace torch_neuronx
