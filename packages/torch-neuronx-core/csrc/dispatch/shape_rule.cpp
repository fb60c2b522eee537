#include "dispatch/shape_rule.h"

#include <ATen/ScalarOps.h>
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>

namespace torch_neuronx::dispatch {

namespace {

// Operators whose results have the sizes, strides and dtype of another's. Arguments go to it by position, keyword-only
// ones by name; ones that it lacks are left out, ones that are missing have their defaults, numbers become tensors
// where it takes tensors.
struct Same {
  const char* name;
  const char* as;
};

#define FORMS(name, as) \
  {"aten::" name, "aten::" as}, { "aten::" name "_", "aten::" as "_" }
#define NUMBER(name, overload, out, as, as_overload, as_out)                                                      \
  {"aten::" name overload, "aten::" as as_overload}, {"aten::" name "_" overload, "aten::" as "_" as_overload}, { \
    "aten::" name out, "aten::" as as_out                                                                         \
  }

constexpr auto kSame = std::to_array<Same>({
    FORMS("abs", "sgn"),
    {"aten::abs.out", "aten::sgn.out"},
    {"aten::logical_not", "aten::isneginf"},
    {"aten::logical_not.out", "aten::isneginf.out"},
    {"aten::logical_not_", "aten::sgn_"},
    {"aten::isnan", "aten::isneginf"},
    {"aten::isinf", "aten::isneginf"},
    FORMS("hardswish", "sgn"),
    {"aten::hardtanh_", "aten::sgn_"},
    {"aten::logit_", "aten::sgn_"},
    {"aten::bernoulli_.float", "aten::sgn_"},
    {"aten::cauchy_", "aten::sgn_"},
    {"aten::exponential_", "aten::sgn_"},
    {"aten::geometric_", "aten::sgn_"},
    {"aten::log_normal_", "aten::sgn_"},
    {"aten::hardswish_backward", "aten::sigmoid_backward"},
    {"aten::hardtanh_backward", "aten::sigmoid_backward"},
    {"aten::logit", "aten::sin"},
    {"aten::logit.out", "aten::sin.out"},
    {"aten::_prelu_kernel", "aten::maximum"},
    {"aten::native_dropout_backward", "aten::mul.Tensor"},
    NUMBER("logical_and", "", ".out", "eq", ".Tensor", ".Tensor_out"),
    NUMBER("logical_or", "", ".out", "eq", ".Tensor", ".Tensor_out"),
    NUMBER("logical_xor", "", ".out", "eq", ".Tensor", ".Tensor_out"),
    NUMBER("add", ".Scalar", ".Scalar_out", "add", ".Tensor", ".out"),
    NUMBER("sub", ".Scalar", ".Scalar_out", "sub", ".Tensor", ".out"),
    NUMBER("mul", ".Scalar", ".Scalar_out", "mul", ".Tensor", ".out"),
    NUMBER("div", ".Scalar", ".Scalar_out", "div", ".Tensor", ".out"),
    NUMBER("div", ".Scalar_mode", ".Scalar_mode_out", "div", ".Tensor_mode", ".out_mode"),
    NUMBER("fmod", ".Scalar", ".Scalar_out", "fmod", ".Tensor", ".Tensor_out"),
    NUMBER("remainder", ".Scalar", ".Scalar_out", "remainder", ".Tensor", ".Tensor_out"),
    {"aten::remainder.Scalar_Tensor", "aten::remainder.Tensor"},
    NUMBER("bitwise_and", ".Scalar", ".Scalar_out", "bitwise_and", ".Tensor", ".Tensor_out"),
    NUMBER("bitwise_or", ".Scalar", ".Scalar_out", "bitwise_or", ".Tensor", ".Tensor_out"),
    NUMBER("bitwise_xor", ".Scalar", ".Scalar_out", "bitwise_xor", ".Tensor", ".Tensor_out"),
    NUMBER("bitwise_left_shift", ".Tensor_Scalar", ".Tensor_Scalar_out", "bitwise_left_shift", ".Tensor",
           ".Tensor_out"),
    NUMBER("bitwise_right_shift", ".Tensor_Scalar", ".Tensor_Scalar_out", "bitwise_right_shift", ".Tensor",
           ".Tensor_out"),
    NUMBER("copysign", ".Scalar", ".Scalar_out", "copysign", ".Tensor", ".out"),
    NUMBER("xlogy", ".Scalar_Other", ".OutScalar_Other", "xlogy", ".Tensor", ".OutTensor"),
    {"aten::xlogy.Scalar_Self", "aten::xlogy.Tensor"},
    {"aten::floor_divide.Scalar", "aten::floor_divide"},
    {"aten::floor_divide_.Scalar", "aten::floor_divide_.Tensor"},
    {"aten::rsub.Scalar", "aten::rsub.Tensor"},
});

// Operators on lists, and the one that does the same to each entry.
#define LISTS(name, overload, as, as_overload)                       \
  {"aten::_foreach_" name overload, "aten::" as as_overload}, {      \
    "aten::_foreach_" name "_" overload, "aten::" as "_" as_overload \
  }
#define ARITHMETIC(name)                                                                \
  LISTS(name, ".Scalar", name, ".Scalar"), LISTS(name, ".ScalarList", name, ".Scalar"), \
      LISTS(name, ".List", name, ".Tensor")
#define EXTREME(name, as) \
  LISTS(name, ".Scalar", as, ""), LISTS(name, ".ScalarList", as, ""), LISTS(name, ".List", as, ".Tensor")
#define TERNARY(name) LISTS(name, ".Scalar", name, ""), LISTS(name, ".ScalarList", name, "")

constexpr auto kLists = std::to_array<Same>({
    ARITHMETIC("add"),
    LISTS("add", ".Tensor", "add", ".Tensor"),
    ARITHMETIC("sub"),
    ARITHMETIC("mul"),
    LISTS("mul", ".Tensor", "mul", ".Tensor"),
    ARITHMETIC("div"),
    LISTS("div", ".Tensor", "div", ".Tensor"),
    EXTREME("clamp_min", "clamp_min"),
    EXTREME("clamp_max", "clamp_max"),
    EXTREME("maximum", "clamp_min"),
    EXTREME("minimum", "clamp_max"),
    TERNARY("addcmul"),
    TERNARY("addcdiv"),
    LISTS("lerp", ".Scalar", "lerp", ".Scalar"),
    LISTS("lerp", ".ScalarList", "lerp", ".Scalar"),
    LISTS("lerp", ".List", "lerp", ".Tensor"),
    {"aten::_foreach_pow.Scalar", "aten::pow.Tensor_Scalar"},
    {"aten::_foreach_pow.ScalarList", "aten::pow.Tensor_Scalar"},
    {"aten::_foreach_pow.List", "aten::pow.Tensor_Tensor"},
    {"aten::_foreach_pow.ScalarAndTensor", "aten::pow.Scalar"},
    {"aten::_foreach_pow_.Scalar", "aten::pow_.Scalar"},
    {"aten::_foreach_pow_.ScalarList", "aten::pow_.Scalar"},
    {"aten::_foreach_pow_.List", "aten::pow_.Tensor"},
    LISTS("abs", "", "abs", ""),
    LISTS("exp", "", "exp", ""),
    LISTS("log", "", "log", ""),
    LISTS("neg", "", "neg", ""),
    LISTS("reciprocal", "", "reciprocal", ""),
    LISTS("rsqrt", "", "rsqrt", ""),
    LISTS("sigmoid", "", "sigmoid", ""),
    LISTS("sign", "", "sign", ""),
    LISTS("sqrt", "", "sqrt", ""),
    LISTS("tanh", "", "tanh", ""),
});

std::string full_name(const ShapeRule& rule) {
  return *rule.overload == '\0' ? rule.name : std::string(rule.name) + "." + rule.overload;
}

struct Rule {
  enum class Kind : uint8_t { kDirect, kSame, kLists } kind;
  c10::KernelFunction kernel;                // kDirect
  std::string as;                            // else: the other operator's name, and
  std::optional<c10::OperatorHandle> other;  // itself
};

using Rules = std::unordered_map<std::string, Rule>;

c10::OperatorHandle find_operator(const std::string& name) {
  const size_t dot = name.find('.');
  return c10::Dispatcher::singleton().findSchemaOrThrow(name.substr(0, dot).c_str(),
                                                        dot == std::string::npos ? "" : name.c_str() + dot + 1);
}

const Rules& rules() {
  static const auto* all = [] {
    auto* made = new Rules();
    for (auto&& list : {structured_rules(), composed_rules(), creation_rules()}) {
      for (const ShapeRule& rule : list) {
        made->try_emplace(full_name(rule), Rule{Rule::Kind::kDirect, rule.kernel, {}, {}});
      }
    }
    for (const Same& row : kSame) {
      made->try_emplace(row.name, Rule{Rule::Kind::kSame, {}, row.as, find_operator(row.as)});
    }
    for (const Same& row : kLists) {
      made->try_emplace(row.name, Rule{Rule::Kind::kLists, {}, row.as, find_operator(row.as)});
    }
    return made;
  }();
  return *all;
}

// A call of `other` with arguments for `op`.
c10::Stack arguments_for(const c10::OperatorHandle& other, const c10::OperatorHandle& op,
                         c10::ArrayRef<c10::IValue> arguments) {
  c10::Stack stack;
  const auto& given = op.schema().arguments();
  for (size_t i = 0; i < other.schema().arguments().size(); ++i) {
    const c10::Argument& wanted = other.schema().arguments()[i];
    size_t from = i;
    if (wanted.kwarg_only()) {
      const auto named = std::find_if(given.begin(), given.end(),
                                      [&](const c10::Argument& argument) { return argument.name() == wanted.name(); });
      from = static_cast<size_t>(named - given.begin());
    }
    if (from >= given.size()) {
      TORCH_INTERNAL_ASSERT(wanted.default_value().has_value(), wanted.name(), " is missing");
      stack.push_back(*wanted.default_value());
    } else if (arguments[from].isScalar() && wanted.type()->kind() == c10::TypeKind::TensorType) {
      stack.emplace_back(at::native::wrapped_scalar_tensor(arguments[from].toScalar()));
    } else {
      stack.push_back(arguments[from]);
    }
  }
  return stack;
}

// One call for each entry of the lists among the arguments.
c10::Stack run_on_entries(const Rule& rule, const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments) {
  const size_t length = arguments[op.schema().arguments()[0].name() == "self" ? 0 : 1].toListRef().size();
  TORCH_CHECK(length > 0, "Tensor list must have at least one tensor.");
  for (const c10::IValue& argument : arguments) {
    TORCH_CHECK(!argument.isList() || argument.toListRef().size() == length,
                "Tensor lists must have the same number of tensors, got ", length, " and ",
                argument.toListRef().size());
  }
  c10::List<at::Tensor> results;
  for (size_t entry = 0; entry < length; ++entry) {
    std::vector<c10::IValue> single(arguments.begin(), arguments.end());
    for (c10::IValue& argument : single) {
      if (argument.isList()) {
        argument = c10::IValue(argument.toListRef()[entry]);
      }
    }
    c10::Stack stack = arguments_for(*rule.other, op, single);
    TORCH_INTERNAL_ASSERT(run_shape_rule(*rule.other, rule.as, &stack), rule.as, " has no rule");
    results.push_back(stack.front().toTensor());
  }
  return op.schema().returns().empty() ? c10::Stack() : c10::Stack{c10::IValue(std::move(results))};
}

}  // namespace

bool run_shape_rule(const c10::OperatorHandle& op, const std::string& name, c10::Stack* stack) {
  const auto found = rules().find(name);
  if (found == rules().end()) {
    return false;
  }
  const Rule& rule = found->second;
  switch (rule.kind) {
    case Rule::Kind::kDirect:
      rule.kernel.callBoxed(op, c10::DispatchKeySet(c10::DispatchKey::Meta), stack);
      break;
    case Rule::Kind::kSame: {
      c10::Stack other = arguments_for(*rule.other, op, *stack);
      TORCH_INTERNAL_ASSERT(run_shape_rule(*rule.other, rule.as, &other), rule.as, " has no rule");
      *stack = std::move(other);
      break;
    }
    case Rule::Kind::kLists:
      *stack = run_on_entries(rule, op, *stack);
      break;
  }
  return true;
}

std::vector<std::string> shape_rule_names() {
  std::vector<std::string> names;
  for (const auto& [name, rule] : rules()) {
    names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace torch_neuronx::dispatch
