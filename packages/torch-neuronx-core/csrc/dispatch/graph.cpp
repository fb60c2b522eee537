#include "dispatch/graph.h"

#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>

#include "dispatch/call.h"
#include "dispatch/infer.h"
#include "dispatch/memory.h"
#include "dispatch/programs.h"
#include "runtime/stream.h"

namespace py = pybind11;

namespace torch_neuronx::dispatch {

namespace {

using PySpec = std::tuple<std::vector<int64_t>, std::vector<int64_t>, at::ScalarType>;

TensorSpec make_spec(const PySpec& given) {
  const auto& [sizes, strides, dtype] = given;
  TORCH_CHECK(sizes.size() == strides.size(), "A tensor of ", sizes.size(), " dimensions needs as many strides, got ",
              strides.size());
  // An ordinary tensor without memory knows which strides are contiguous.
  const at::Tensor meta = at::detail::empty_strided_meta(sizes, strides, dtype);
  return spec_of(meta.unsafeGetTensorImpl());
}

std::string describe(const TensorSpec& spec) {
  return c10::str(spec.dtype, c10::IntArrayRef(spec.sizes), " with strides ", c10::IntArrayRef(spec.strides));
}

// A program without slots, with everything known that a call must check.
class Graph {
 public:
  Graph(std::shared_ptr<const Model> model, const std::vector<PySpec>& outputs, const std::vector<PySpec>& inputs)
      : model_(std::move(model)), executable_(model_->bind({})) {
    TORCH_CHECK(executable_ != nullptr, "A guard of the graph's program does not hold");
    const nrtx_model_counts_t& counts = model_->counts();
    TORCH_CHECK(outputs.size() == counts.outputs, "The program has ", counts.outputs, " outputs, but ", outputs.size(),
                " were described");
    TORCH_CHECK(inputs.empty() || inputs.size() == counts.inputs, "The program has ", counts.inputs, " inputs, but ",
                inputs.size(), " were described");
    for (uint32_t i = 0; i < counts.inputs; ++i) {
      inputs_.push_back({io_of(i), std::nullopt});
      if (!inputs.empty()) {
        inputs_.back().spec = make_spec(inputs[i]);
        check_spec(inputs_.back(), "Input", i);
      }
    }
    for (uint32_t i = 0; i < counts.outputs; ++i) {
      outputs_.push_back({io_of(counts.inputs + i), make_spec(outputs[i])});
      check_spec(outputs_.back(), "Output", i);
    }
  }

  std::vector<at::Tensor> run(const py::sequence& inputs, const py::sequence& scalars) const {
    c10::SmallVector<at::Tensor, 16> tensors;  // kept while others may change the list
    c10::SmallVector<void*, 24> buffers;
    const size_t count = py::len(inputs);
    TORCH_CHECK(count == inputs_.size(), "The graph takes ", inputs_.size(), " tensors, got ", count);
    std::optional<c10::Device> device;
    for (size_t i = 0; i < count; ++i) {
      const py::object item = inputs[i];
      TORCH_CHECK_TYPE(THPVariable_Check(item.ptr()), "Input ", i, " of the graph must be a tensor, got ",
                       Py_TYPE(item.ptr())->tp_name);
      const at::Tensor& tensor = THPVariable_Unpack(item.ptr());
      check_input(tensor, i, device);
      tensors.push_back(tensor);
      buffers.push_back(address_of(tensor.unsafeGetTensorImpl(), false));
    }
    const c10::SmallVector<uint64_t, 8> numbers = read_scalars(scalars);
    const c10::DeviceIndex core = device ? device->index() : current_device();

    const py::gil_scoped_release released;
    std::vector<at::Tensor> results;
    for (const Buffer& output : outputs_) {
      if (output.io.alias >= 0) {
        buffers.push_back(address_of(tensors[output.io.alias].unsafeGetTensorImpl(), true));
      } else {
        results.push_back(create(*output.spec, core));
        buffers.push_back(address_of(results.back().unsafeGetTensorImpl(), true));
      }
    }
    const StreamLock lock(core);
    check(nrtx_execute(executable_->get(), core, buffers.data(), numbers.data()), "A compiled graph failed");
    return results;
  }

 private:
  struct Buffer {
    nrtx_io_t io;
    std::optional<TensorSpec> spec;
  };

  nrtx_io_t io_of(uint32_t position) const {
    nrtx_io_t io{};
    check(nrtx_executable_io(executable_->get(), position, &io), "Cannot read a program's signature");
    return io;
  }

  static c10::IntArrayRef sizes_of(const nrtx_io_t& io) { return {io.dims, io.rank}; }

  static void check_spec(const Buffer& buffer, const char* role, size_t number) {
    TORCH_CHECK(buffer.io.dtype == program_dtype(buffer.spec->dtype) && buffer.io.nbytes <= buffer.spec->nbytes, role,
                ' ', number, " of the program takes ", buffer.io.nbytes, " bytes of dtype code ", buffer.io.dtype,
                ", but was described as ", describe(*buffer.spec));
  }

  void check_input(const at::Tensor& tensor, size_t number, std::optional<c10::Device>& device) const {
    const Buffer& expected = inputs_[number];
    const c10::Device where = tensor.device();
    TORCH_CHECK(where.type() == kNeuron, "Input ", number, " of the graph must be on a neuron device, got ", where);
    TORCH_CHECK(!device || *device == where,
                "Expected all tensors to be on the same device, but found at least two devices, ", *device, " and ",
                where, ": input ", number, " of the graph");
    device = where;
    TORCH_CHECK(expected.io.dtype == program_dtype(tensor.scalar_type()) && !tensor.is_conj() && !tensor.is_neg(),
                "Input ", number, " of the graph has dtype ", tensor.scalar_type(),
                ", which is not the one it was compiled for");
    TORCH_CHECK(tensor.sizes().equals(sizes_of(expected.io)), "Input ", number, " of the graph has size ",
                tensor.sizes(), ", but it was compiled for ", sizes_of(expected.io));
    if (expected.spec) {
      const bool same =
          expected.spec->contiguous ? tensor.is_contiguous() : tensor.strides().equals(expected.spec->strides);
      TORCH_CHECK(same, "Input ", number, " of the graph has strides ", tensor.strides(), ", but it was compiled for ",
                  c10::IntArrayRef(expected.spec->strides));
    }
    TORCH_CHECK(expected.io.nbytes <= span_of(tensor), "Input ", number, " of the graph spans ", span_of(tensor),
                " bytes, but it was compiled for strides that span ", expected.io.nbytes);
  }

  static size_t span_of(const at::Tensor& tensor) {
    if (tensor.is_contiguous()) {
      return static_cast<size_t>(tensor.numel()) * tensor.element_size();
    }
    return at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(), tensor.element_size());
  }

  c10::SmallVector<uint64_t, 8> read_scalars(const py::sequence& scalars) const {
    const size_t count = py::len(scalars);
    TORCH_CHECK(count == model_->counts().scalars, "The graph takes ", model_->counts().scalars, " scalars, got ",
                count);
    c10::SmallVector<uint64_t, 8> numbers;
    for (size_t i = 0; i < count; ++i) {
      const py::object item = scalars[i];
      if (PyFloat_Check(item.ptr())) {
        numbers.push_back(bits_of(PyFloat_AS_DOUBLE(item.ptr())));
      } else {
        TORCH_CHECK_TYPE(PyLong_Check(item.ptr()), "Scalar ", i, " of the graph must be an int or a float, got ",
                         Py_TYPE(item.ptr())->tp_name);
        numbers.push_back(PyLong_AsUnsignedLongLongMask(item.ptr()));
      }
    }
    return numbers;
  }

  std::shared_ptr<const Model> model_;
  std::shared_ptr<const Executable> executable_;
  std::vector<Buffer> inputs_, outputs_;
};

}  // namespace

void bind_graph(py::module_& module) {
  py::class_<Graph>(module, "Graph", "A compiled graph, ready to run.")
      .def("__call__", &Graph::run, py::arg("inputs"), py::arg("scalars") = py::tuple(),
           "Run on the inputs' device, or on the current one without inputs, and return the outputs. An output that "
           "shares memory "
           "with an input is written there and not returned. Scalars: a float where the program takes a double, else "
           "an int.");
  py::class_<Model, std::shared_ptr<Model>>(module, "Model", "A loaded NEFF.")
      .def(
          "graph",
          [](const std::shared_ptr<Model>& model, const std::vector<PySpec>& outputs,
             const std::vector<PySpec>& inputs) { return Graph(model, outputs, inputs); },
          py::arg("outputs"), py::arg("inputs") = std::vector<PySpec>(),
          "Bind a program without slots. outputs: (sizes, strides, dtype) of each output, those in an input's memory "
          "included; "
          "inputs: the same of the inputs, to have their strides checked at each call.");
  module.def(
      "load", [](const py::bytes& neff) { return std::make_shared<Model>(std::string(neff)); }, py::arg("neff"),
      "Load a NEFF for the devices of this process.");
}

}  // namespace torch_neuronx::dispatch
