#include "dispatch/python.h"

#include <torch/csrc/utils/pybind.h>

#include "dispatch/bindings.h"
#include "dispatch/counters.h"
#include "dispatch/operator.h"

namespace py = pybind11;

namespace torch_neuronx::dispatch {

namespace {

bool interpreter_runs() { return Py_IsInitialized() != 0 && Py_IsFinalizing() == 0; }

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

}  // namespace

void warn_fallback(const std::string& message) {
  if (!interpreter_runs()) {
    return;
  }
  const py::gil_scoped_acquire gil;
  const py::object category = py::module_::import("torch_neuronx.tracking").attr("NeuronFallbackWarning");
  if (PyErr_WarnEx(category.ptr(), message.c_str(), 1) != 0) {
    throw py::error_already_set();
  }
}

void bind_dispatch(py::module_& module) {
  module.def("operator_counts", &operator_counts);
  module.def("clear_operator_counts", &clear_counters);
  module.def("registered_operators", [] {
    std::vector<std::string> names;
    for (const Operator& op : operators()) {
      names.push_back(op.name);
    }
    return names;
  });
}

}  // namespace torch_neuronx::dispatch
