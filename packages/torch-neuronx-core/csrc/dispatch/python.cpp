#include "dispatch/python.h"

#include <torch/csrc/utils/pybind.h>

#include <algorithm>

#include "dispatch/arguments.h"
#include "dispatch/bindings.h"
#include "dispatch/cache.h"
#include "dispatch/graph.h"
#include "dispatch/infer.h"
#include "dispatch/kernel.h"
#include "dispatch/programs.h"
#include "dispatch/shape_rule.h"

namespace py = pybind11;

namespace torch_neuronx::dispatch {

namespace {

bool interpreter_runs() { return Py_IsInitialized() != 0 && Py_IsFinalizing() == 0; }

py::module_ contract() { return py::module_::import("torch_neuronx._op_compiler"); }

py::object optional(int value) { return value < 0 ? py::none() : py::object(py::int_(value)); }

py::tuple as_tuple(c10::ArrayRef<int64_t> values) {
  py::tuple result(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    result[i] = values[i];
  }
  return result;
}

// Schema arguments as the op compiler sees them: tensors by number, in the order of the launch.
class RequestArguments {
 public:
  RequestArguments(const Operator& op, const py::module_& contract)
      : op_(op), tensor_spec_(contract.attr("TensorSpec")), launch_scalar_(contract.attr("LaunchScalar")) {}

  py::tuple convert(c10::ArrayRef<c10::IValue> arguments) {
    py::list result;
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (!contains(op_.outs, i)) {
        result.append(convert(arguments[i], i, *op_.schema().arguments()[i].real_type()));
      }
    }
    return py::tuple(result);
  }

  py::object spec(const TensorSpec& spec, int buffer, int scalar, bool wrapped, int alias) const {
    return tensor_spec_(py::cast(spec.dtype), as_tuple(spec.sizes), as_tuple(spec.strides), optional(buffer),
                        optional(scalar), wrapped, optional(alias));
  }

 private:
  py::object convert(const c10::IValue& value, size_t argument, const c10::Type& type) {
    if (value.isTensor()) {
      return convert_tensor(value.toTensor());
    }
    if (value.isNone() || value.isGenerator()) {
      return py::none();
    }
    if (type.kind() == c10::TypeKind::OptionalType) {
      return convert(value, argument, *type.castRaw<c10::OptionalType>()->getElementType());
    }
    if (value.isList()) {
      py::list result;
      const c10::Type& element = *type.castRaw<c10::ListType>()->getElementType();
      for (const c10::IValue& entry : value.toListRef()) {
        result.append(convert(entry, argument, element));
      }
      return result;
    }
    if (is_operand(op_, argument, value)) {
      PyTypeObject* kind = value.isBool() ? &PyBool_Type : value.isInt() ? &PyLong_Type : &PyFloat_Type;
      return launch_scalar_(scalars_++, py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(kind)));
    }
    return convert_scalar(value, type);
  }

  py::object convert_tensor(const at::Tensor& tensor) {
    if (!tensor.defined()) {
      return py::none();
    }
    const bool wrapped = tensor.unsafeGetTensorImpl()->is_wrapped_number();
    const TensorSpec what = spec_of(tensor.unsafeGetTensorImpl());
    return tensor.is_cpu() ? spec(what, -1, scalars_++, wrapped, -1) : spec(what, inputs_++, -1, wrapped, -1);
  }

  static py::object convert_scalar(const c10::IValue& value, const c10::Type& type) {
    switch (type.kind()) {
      case c10::TypeKind::ScalarTypeType:
        return py::cast(static_cast<at::ScalarType>(value.toInt()));
      case c10::TypeKind::LayoutType:
        return py::cast(static_cast<at::Layout>(value.toInt()));
      case c10::TypeKind::MemoryFormatType:
        return py::cast(static_cast<at::MemoryFormat>(value.toInt()));
      default:
        break;
    }
    if (value.isBool()) {
      return py::bool_(value.toBool());
    }
    if (value.isInt()) {
      return py::int_(value.toInt());
    }
    if (value.isDouble()) {
      return py::float_(value.toDouble());
    }
    if (value.isComplexDouble()) {
      return py::cast(value.toComplexDouble());
    }
    if (value.isString()) {
      return py::str(value.toStringRef());
    }
    TORCH_INTERNAL_ASSERT(value.isDevice(), "an argument of kind ", value.tagKind(), " cannot be part of a request");
    return py::cast(value.toDevice());
  }

  const Operator& op_;
  py::object tensor_spec_, launch_scalar_;
  int inputs_ = 0, scalars_ = 0;
};

py::object make_request(const Request& request, const py::module_& contract) {
  RequestArguments arguments(request.op, contract);
  const py::tuple converted = arguments.convert(request.arguments);
  py::tuple outputs(request.outputs.size());
  for (size_t i = 0; i < request.outputs.size(); ++i) {
    outputs[i] = arguments.spec(*request.outputs[i].spec, -1, -1, false, request.outputs[i].alias);
  }
  return contract.attr("OpRequest")(request.op.name, converted, outputs, as_tuple(request.slots));
}

// {operator: (native, compiled, fallback)} of the operators that were called.
py::dict operator_counts() {
  py::dict result;
  for (const Operator& op : operators()) {
    const OutcomeCounts counts = counts_of(op.number);
    if (counts[0] + counts[1] + counts[2] > 0) {
      result[py::str(op.name)] = py::make_tuple(counts[0], counts[1], counts[2]);
    }
  }
  return result;
}

py::dict cache_stats() {
  const ProgramStats programs = program_stats();
  const uint64_t missed = cache_misses();
  const uint64_t native = total_counts()[static_cast<size_t>(Outcome::kNative)];
  const uint64_t hits = native > missed ? native - missed : 0;
  py::dict result;
  result["total_entries"] = count_entries();
  result["loaded_programs"] = programs.models;
  result["memory_usage_bytes"] = programs.neff_bytes;
  result["cache_hits"] = hits;
  result["cache_misses"] = missed;
  result["hit_rate"] = hits + missed == 0 ? 0.0 : static_cast<double>(hits) / static_cast<double>(hits + missed);
  const uint64_t from_disk = contract().attr("persistent_hits")().cast<uint64_t>();
  result["total_compilations"] = programs.compilations - std::min(from_disk, programs.compilations);
  result["total_compilation_time_ms"] = static_cast<double>(programs.compile_nanoseconds) / 1e6;
  result["persistent_hits"] = from_disk;
  result["persistent_misses"] = contract().attr("persistent_misses")();
  return result;
}

}  // namespace

void warn_fallback(const std::string& message) {
  if (!interpreter_runs()) {
    return;
  }
  const py::gil_scoped_acquire gil;
  py::module_::import("torch_neuronx.tracking").attr("warn_fallback")(message);
}

std::string user_line() {
  if (!interpreter_runs()) {
    return {};
  }
  const py::gil_scoped_acquire gil;
  const auto line = py::module_::import("torch_neuronx.tracking").attr("user_line")().cast<std::string>();
  return line.empty() ? line : ", called at " + line;
}

Description describe(const Operator& op) {
  if (!interpreter_runs()) {
    return {{}, "the Python interpreter has ended"};
  }
  const py::gil_scoped_acquire gil;
  const py::object answer = contract().attr("describe")(op.name);
  if (py::isinstance<py::str>(answer)) {
    return {{}, answer.cast<std::string>()};
  }
  Traits traits{0, answer.attr("random").cast<bool>(), answer.attr("sizing").cast<bool>()};
  for (const py::handle position : answer.attr("operands")) {
    const auto argument = position.cast<uint32_t>();
    TORCH_CHECK(argument < op.arguments, "The op compiler marked argument ", argument, " of ", op.name, ", which has ",
                op.arguments);
    traits.operands |= ArgumentSet{1} << argument;
  }
  return {traits, {}};
}

Compiled compile(const Request& request) {
  const py::gil_scoped_acquire gil;
  const py::module_ module = contract();
  const py::object question = make_request(request, module);
  try {
    const py::object answer = module.attr("compile")(question);
    if (py::isinstance<py::str>(answer)) {
      return {{}, answer.cast<std::string>()};
    }
    return {py::bytes(answer).cast<std::string>(), {}};
  } catch (py::error_already_set& error) {
    if (!error.matches(PyExc_Exception)) {
      throw;  // an interrupt
    }
    const std::string text =
        std::string(py::str(error.type().attr("__name__"))) + ": " + std::string(py::str(error.value()));
    throw CompilerError(text, std::current_exception());
  }
}

WithoutGil::WithoutGil() : state_(interpreter_runs() && PyGILState_Check() != 0 ? PyEval_SaveThread() : nullptr) {}

WithoutGil::~WithoutGil() {
  if (state_ != nullptr) {
    PyEval_RestoreThread(static_cast<PyThreadState*>(state_));
  }
}

void bind_dispatch(py::module_& module) {
  bind_graph(module);
  module.def("operator_counts", &operator_counts);
  module.def("shape_rules", &shape_rule_names, "Operators whose results' sizes follow from a rule in C++.");
  module.def("clear_operator_counts", &clear_counters);
  module.def("_get_compilation_cache_stats", &cache_stats,
             "Counts of the eager caches since the process started, as a dict.");
  module.def("_clear_compilation_cache", &forget_everything, py::call_guard<py::gil_scoped_release>(),
             "Forget all programs and entries, and what the op compiler said of each operator.");
}

}  // namespace torch_neuronx::dispatch
