#include "dispatch/call.h"

#include <algorithm>
#include <bit>

#include "dispatch/arguments.h"

namespace torch_neuronx::dispatch {

namespace {

// First byte of a key's items. A tag and the item's own words fix its length, which makes keys uniquely readable.
enum Tag : uint64_t {
  kNone = 1,
  kTensor,
  kHostScalar,
  kInt,
  kDouble,
  kFalse,
  kTrue,
  kComplex,
  kString,
  kList,
  kDevice,
  kGenerator,
  kOperandInt,
  kOperandBool,
  kOperandDouble,
  kAlias,
};

// Views whose elements differ from what lies in memory. Torch resolves them before most operators are called.
constexpr c10::DispatchKeySet kLazyBits({c10::DispatchKey::Conjugate, c10::DispatchKey::Negative,
                                         c10::DispatchKey::ZeroTensor});

constexpr uint64_t item(Tag tag, uint64_t payload = 0) { return tag | payload << 8; }

bool is_contiguous(const c10::TensorImpl* tensor) { return tensor->is_contiguous(); }

uint64_t tensor_item(Tag tag, c10::ScalarType dtype, size_t dims, bool contiguous, bool wrapped) {
  return item(tag, static_cast<uint64_t>(dtype) | static_cast<uint64_t>(dims) << 8 |
                       static_cast<uint64_t>(contiguous) << 16 | static_cast<uint64_t>(wrapped) << 17);
}

// Scalars and lists of them, as both kinds of keys hold them. False for a value that no key can hold.
bool add_value(Key& key, const c10::IValue& value) {
  if (value.isInt()) {
    key.add(item(kInt));
    key.add(static_cast<uint64_t>(value.toInt()));
  } else if (value.isNone()) {
    key.add(item(kNone));
  } else if (value.isBool()) {
    key.add(item(value.toBool() ? kTrue : kFalse));
  } else if (value.isDouble()) {
    key.add(item(kDouble));
    key.add(bits_of(value.toDouble()));
  } else if (value.isList()) {
    const c10::ArrayRef<c10::IValue> entries = value.toListRef();
    key.add(item(kList, entries.size()));
    return std::all_of(entries.begin(), entries.end(), [&](const c10::IValue& entry) { return add_value(key, entry); });
  } else if (value.isString()) {
    key.add(item(kString));
    key.add(std::string_view(value.toStringRef()));
  } else if (value.isDevice()) {
    key.add(item(kDevice, static_cast<uint64_t>(value.toDevice().type())));
  } else if (value.isGenerator()) {
    key.add(item(kGenerator));  // where the numbers come from is no part of the program
  } else if (value.isComplexDouble()) {
    const c10::complex<double> number = value.toComplexDouble();
    key.add(item(kComplex));
    key.add(bits_of(number.real()));
    key.add(bits_of(number.imag()));
  } else {
    return false;
  }
  return true;
}

Tag operand_tag(const c10::IValue& value) {
  return value.isInt() ? kOperandInt : value.isDouble() ? kOperandDouble : kOperandBool;
}

}  // namespace

bool is_operand(const Operator& op, uint32_t argument, const c10::IValue& value) {
  return contains(op.operands, argument) &&
         ((value.isInt() && value.toInt() != 1) || value.isDouble() || value.isBool());
}

uint64_t bits_of(double value) { return std::bit_cast<uint64_t>(value); }

Call::Call(const Operator& op, c10::ArrayRef<c10::IValue> arguments) : op_(op), arguments_(arguments) {
  key.add(op.number);
  for (uint32_t i = 0; i < arguments.size(); ++i) {
    add(arguments[i], i);
  }
  if (device < 0) [[unlikely]] {
    device = common_device(op, arguments).index();
  }
  if (op.written != 0) {
    add_aliases();
  }
}

void Call::reject(Kind why, const char* text) {
  if (kind != Kind::kForeign) {
    kind = why;
    reason = text;
  }
}

void Call::add(const c10::IValue& value, uint32_t argument) {
  if (value.isTensor()) {
    add_tensor(value.unsafeToTensorImpl(), argument);
  } else if (value.isList()) {
    const c10::ArrayRef<c10::IValue> entries = value.toListRef();
    key.add(item(kList, entries.size()));
    for (const c10::IValue& entry : entries) {
      add(entry, argument);
    }
  } else if (is_operand(op_, argument, value)) {
    add_operand(value);
  } else if (!add_value(key, value)) {
    reject(Kind::kForeign, "one of its arguments is of a kind that programs do not take");
  }
}

void Call::add(const at::Scalar& value, uint32_t argument) {
  // Most are an integer 1; see is_operand().
  if (value.isIntegral(/*includeBool=*/false) && !value.isSymbolic() && value.toLong() == 1) [[likely]] {
    key.add(item(kInt));
    key.add(1);
  } else {
    add(c10::IValue(value), argument);
  }
}

void Call::add_tensor(c10::TensorImpl* tensor, uint32_t argument) {
  if (tensor == c10::UndefinedTensorImpl::singleton()) {
    key.add(item(kNone));
    return;
  }
  const c10::Device where = tensor->device();
  if (where.type() == kNeuron && (device < 0 || device == where.index())) [[likely]] {
    device = where.index();
  } else if (where.type() == c10::kCPU && tensor->dim() == 0 && !contains(op_.written, argument)) {
    add_host_scalar(tensor);
    return;
  } else if (arguments_.empty()) {
    reject(Kind::kForeign, "its tensors are on different devices");
    return;
  } else {
    common_device(op_, arguments_);  // throws, or it is an index list
    reject(Kind::kHostIndices, "its indices lie on the CPU");
    return;
  }
  if (tensor->key_set().has_any(kLazyBits)) [[unlikely]] {
    reject(Kind::kForeign, "an argument is a conjugate, negative or zero view");
  }
  const bool contiguous = is_contiguous(tensor);
  const c10::IntArrayRef sizes = tensor->sizes();
  key.add(tensor_item(kTensor, c10::typeMetaToScalarType(tensor->dtype()), sizes.size(), contiguous,
                      tensor->is_wrapped_number()));
  for (const int64_t size : sizes) {
    key.add(static_cast<uint64_t>(size));
  }
  if (!contiguous) {
    for (const int64_t stride : tensor->strides()) {
      key.add(static_cast<uint64_t>(stride));
    }
  }
  const bool written = contains(op_.written, argument);
  if (contains(op_.outs, argument)) {
    outs.push_back({tensor, argument, true, -1});
  } else {
    inputs.push_back({tensor, argument, written, -1});
  }
}

void Call::add_host_scalar(const c10::TensorImpl* tensor) {
  const c10::ScalarType dtype = c10::typeMetaToScalarType(tensor->dtype());
  key.add(tensor_item(kHostScalar, dtype, 0, true, tensor->is_wrapped_number()));
  const void* data = tensor->data();
  switch (dtype) {
#define INTEGER(type, name)                                                                          \
  case c10::ScalarType::name:                                                                        \
    scalars.push_back(static_cast<uint64_t>(static_cast<int64_t>(*static_cast<const type*>(data)))); \
    return;
#define FLOATING(type, name)                                                          \
  case c10::ScalarType::name:                                                         \
    scalars.push_back(bits_of(static_cast<double>(*static_cast<const type*>(data)))); \
    return;
    INTEGER(int64_t, Long)
    INTEGER(int32_t, Int)
    INTEGER(int16_t, Short)
    INTEGER(int8_t, Char)
    INTEGER(uint8_t, Byte)
    INTEGER(bool, Bool)
    FLOATING(double, Double)
    FLOATING(float, Float)
    FLOATING(c10::Half, Half)
    FLOATING(c10::BFloat16, BFloat16)
#undef INTEGER
#undef FLOATING
    default:
      reject(Kind::kForeign, "a CPU scalar is of a dtype that programs do not take");
  }
}

void Call::add_operand(const c10::IValue& value) {
  const auto position = static_cast<uint32_t>(scalars.size());
  operands.push_back({position, value.isDouble()});
  const uint64_t bits = value.isDouble() ? bits_of(value.toDouble())
                                         : static_cast<uint64_t>(value.isBool() ? value.toBool() : value.toInt());
  key.add(item(operand_tag(value)));
  if (op_.sizing) {
    key.add(bits);
  }
  scalars.push_back(bits);
}

void Call::add_aliases() {
  for (size_t i = 0; i < inputs.size(); ++i) {
    for (size_t j = i + 1; j < inputs.size(); ++j) {
      if ((inputs[i].written || inputs[j].written) &&
          sharing_of(inputs[i].tensor, inputs[j].tensor) != Sharing::kNone) {
        reject(Kind::kOverlap, "an argument that it writes shares memory with another");
      }
    }
  }
  for (size_t i = 0; i < outs.size(); ++i) {
    for (size_t j = 0; j < inputs.size(); ++j) {
      const Sharing sharing = sharing_of(outs[i].tensor, inputs[j].tensor);
      if (sharing == Sharing::kSame && outs[i].alias < 0 && !inputs[j].written) {
        outs[i].alias = static_cast<int>(j);
        key.add(item(kAlias, i << 16 | j));
      } else if (sharing != Sharing::kNone) {
        reject(Kind::kOverlap, "a result shares memory with an argument");
      }
    }
    for (size_t j = i + 1; j < outs.size(); ++j) {
      if (sharing_of(outs[i].tensor, outs[j].tensor) != Sharing::kNone) {
        reject(Kind::kOverlap, "two results share memory");
      }
    }
  }
}

bool is_writable(c10::IntArrayRef sizes, c10::IntArrayRef strides) {
  // Dimensions from the innermost: each must step over everything that the ones inside it span.
  c10::SmallVector<std::pair<int64_t, int64_t>, 8> dims;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) {
      return true;
    }
    if (sizes[d] > 1) {
      dims.emplace_back(strides[d], sizes[d]);
    }
  }
  std::sort(dims.begin(), dims.end());
  int64_t last = 0;  // offset of the last element so far
  for (const auto& [stride, size] : dims) {
    if (stride <= last) {
      return false;
    }
    last += stride * (size - 1);
  }
  return true;
}

Sharing sharing_of(const c10::TensorImpl* a, const c10::TensorImpl* b) {
  if (a->unsafe_storage().unsafeGetStorageImpl() != b->unsafe_storage().unsafeGetStorageImpl() || a->numel() == 0 ||
      b->numel() == 0) {
    return Sharing::kNone;
  }
  if (a == b || (a->storage_offset() == b->storage_offset() && a->dtype() == b->dtype() && a->sizes() == b->sizes() &&
                 a->strides() == b->strides())) {
    return Sharing::kSame;
  }
  const auto range = [](const c10::TensorImpl* tensor) {
    int64_t last = tensor->storage_offset();
    for (size_t d = 0; d < tensor->sizes().size(); ++d) {
      last += (tensor->sizes()[d] - 1) * tensor->strides()[d];
    }
    const auto bytes = static_cast<int64_t>(tensor->itemsize());
    return std::pair(tensor->storage_offset() * bytes, (last + 1) * bytes);
  };
  const auto [a_begin, a_end] = range(a);
  const auto [b_begin, b_end] = range(b);
  return a_end <= b_begin || b_end <= a_begin ? Sharing::kNone : Sharing::kOverlap;
}

void add_class(Key& key, c10::ScalarType dtype, c10::IntArrayRef sizes, c10::IntArrayRef strides, bool contiguous) {
  key.add(tensor_item(kTensor, dtype, sizes.size(), contiguous, false));
  for (size_t d = 0; d < sizes.size(); ++d) {
    const int64_t size = std::min<int64_t>(sizes[d], 2);  // 0, 1 or other
    key.add(static_cast<uint64_t>(size) << 1 | (!contiguous && strides[d] == 0 ? 1 : 0));
  }
}

void add_class(Key& key, const Operator& op, c10::ArrayRef<c10::IValue> arguments) {
  key.add(op.number);
  const auto add = [&](const auto& self, const c10::IValue& value, uint32_t argument) -> void {
    if (value.isTensor()) {
      const c10::TensorImpl* tensor = value.unsafeToTensorImpl();
      if (tensor == c10::UndefinedTensorImpl::singleton()) {
        key.add(item(kNone));
      } else if (tensor->device().type() == c10::kCPU) {
        key.add(
            tensor_item(kHostScalar, c10::typeMetaToScalarType(tensor->dtype()), 0, true, tensor->is_wrapped_number()));
      } else {
        key.add(item(tensor->is_wrapped_number() ? kTrue : kFalse));
        add_class(key, c10::typeMetaToScalarType(tensor->dtype()), tensor->sizes(), tensor->strides(),
                  is_contiguous(tensor));
      }
    } else if (value.isList()) {
      key.add(item(kList, value.toListRef().size()));
      for (const c10::IValue& entry : value.toListRef()) {
        self(self, entry, argument);
      }
    } else if (is_operand(op, argument, value)) {
      key.add(item(operand_tag(value)));
    } else {
      add_value(key, value);
    }
  };
  for (uint32_t i = 0; i < arguments.size(); ++i) {
    add(add, arguments[i], i);
  }
}

}  // namespace torch_neuronx::dispatch
