// The Python binding: NEFF files, and launches on host buffers for tests and tools.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <bit>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "neff/neff.h"
#include "neuron/launch.h"
#include "nrt/nrt.h"
#include "program/program.h"

namespace py = pybind11;

namespace {

// Raises libneuron_runtime._errors.<type>(status, message, ...).
template <class... Extra>
[[noreturn]] void raise(const char* type, NRT_STATUS status, const std::string& message, Extra... extra) {
  const py::object exception = py::module_::import("libneuron_runtime._errors").attr(type);
  const py::object value = exception(static_cast<int>(status), nrt_get_status_as_str(status), message, extra...);
  PyErr_SetObject(exception.ptr(), value.ptr());
  throw py::error_already_set();
}

void check(NRT_STATUS status) {
  if (status != NRT_SUCCESS) raise("NeuronError", status, nrtx_last_error());
}

// Runs the body of a NEFF function; neuron::Error becomes NeffError.
template <class Body>
auto neff_errors(Body&& body) {
  try {
    return body();
  } catch (const neuron::Error& error) {
    raise("NeffError", error.status(), error.what());
  }
}

// The bytes of a contiguous object with a buffer, held while this is alive.
class View {
 public:
  View(const py::handle& object, bool writable) {
    if (PyObject_GetBuffer(object.ptr(), &view_, writable ? PyBUF_WRITABLE : PyBUF_SIMPLE) != 0)
      throw py::error_already_set();
  }
  ~View() { PyBuffer_Release(&view_); }
  View(const View&) = delete;
  View& operator=(const View&) = delete;

  void* data() const { return view_.buf; }
  size_t size() const { return static_cast<size_t>(view_.len); }
  std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(data()), size()}; }

 private:
  Py_buffer view_{};
};

py::bytes to_bytes(std::span<const std::byte> bytes) {
  return py::bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

py::bytes pack(const py::object& program, const std::string& name, const py::dict& members) {
  const View view(program, false);
  std::vector<std::unique_ptr<View>> views;
  std::vector<neuron::NeffMember> list;
  for (const auto& [key, value] : members) {
    views.push_back(std::make_unique<View>(value, false));
    list.push_back({py::cast<std::string>(key), views.back()->bytes()});
  }
  return neff_errors([&] { return to_bytes(neuron::pack_neff(view.bytes(), name, list)); });
}

py::tuple unpack(const py::object& file) {
  const View view(file, false);
  return neff_errors([&] {
    const neuron::Neff neff = neuron::Neff::parse(view.bytes());
    const neuron::NeffHeader& h = neff.header();
    py::dict header;
    header["pkg_version"] = h.pkg_version;
    header["header_size"] = h.header_size;
    header["data_size"] = h.data_size;
    header["version_major"] = h.version_major;
    header["version_minor"] = h.version_minor;
    header["build_version"] = py::bytes(h.build_version);
    header["num_tpb"] = h.num_tpb;
    header["hash"] = to_bytes(h.hash);
    header["uuid"] = to_bytes(h.uuid);
    header["name"] = py::bytes(h.name);
    header["requested_tpb_count"] = h.requested_tpb_count;
    header["feature_bits"] = h.feature_bits;
    header["lnc_size"] = h.lnc_size;
    py::list members;
    for (const neuron::NeffMember& member : neff.members())
      members.append(py::make_tuple(py::bytes(member.name), to_bytes(member.bytes)));
    return py::make_tuple(header, members);
  });
}

void verify(const py::object& file) {
  const View view(file, false);
  neff_errors([&] {
    const neuron::Neff neff = neuron::Neff::parse(view.bytes());
    const auto program = neff.program();
    neff.check_hash();
    neuron::Program::load(program);
  });
}

struct FreeDeviceMemory {
  void operator()(void* address) const { nrtx_memory_free(address); }
};

class Executable {
 public:
  Executable(const nrt_model_t* model, int core, const nrtx_model_counts_t& counts, const std::vector<int64_t>& slots)
      : core_(core), counts_(counts) {
    nrtx_executable_t* executable = nullptr;
    int32_t guard = -1;
    const NRT_STATUS status = nrtx_bind(model, slots.data(), slots.size(), &executable, &guard);
    if (guard >= 0) raise("GuardError", status, nrtx_last_error(), guard);
    check(status);
    executable_.reset(executable);
    io_.resize(counts.inputs + counts.outputs);
    for (uint32_t n = 0; n < io_.size(); ++n) check(nrtx_executable_io(executable, n, &io_[n]));
  }

  py::list io() const {
    const py::object type = py::module_::import("libneuron_runtime._io").attr("Io");
    py::list list;
    for (uint32_t n = 0; n < io_.size(); ++n) {
      const nrtx_io_t& io = io_[n];
      py::tuple dims(io.rank);
      for (uint32_t d = 0; d < io.rank; ++d) dims[d] = io.dims[d];
      list.append(type(n < counts_.inputs ? "input" : "output", io.dtype, dims, io.nbytes,
                       io.alias < 0 ? py::object(py::none()) : py::object(py::int_(io.alias))));
    }
    return list;
  }

  void run(const py::list& inputs, const py::list& outputs, const py::list& scalars) const {
    expect("inputs", inputs.size(), counts_.inputs);
    expect("outputs", outputs.size(), counts_.outputs);
    expect("scalars", scalars.size(), counts_.scalars);
    std::vector<uint64_t> numbers;
    for (const py::handle& scalar : scalars) numbers.push_back(number(scalar));
    std::vector<std::unique_ptr<View>> views;
    for (const py::handle& input : inputs) views.push_back(std::make_unique<View>(input, false));
    for (const py::handle& output : outputs) views.push_back(std::make_unique<View>(output, true));
    for (size_t n = 0; n < views.size(); ++n) {
      if (views[n]->size() < io_[n].nbytes) {
        const bool input = n < counts_.inputs;
        raise("NeuronError", NRT_INVALID,
              neuron::format("%s %zu has %zu bytes, but the program needs %llu", input ? "input" : "output",
                             input ? n : n - counts_.inputs, views[n]->size(),
                             static_cast<unsigned long long>(io_[n].nbytes)));
      }
    }
    const py::gil_scoped_release release;
    launch(views, numbers);
  }

 private:
  static void expect(const char* what, size_t got, size_t expected) {
    if (got != expected)
      raise("NeuronError", NRT_INVALID, neuron::format("%zu %s are given, expected %zu", got, what, expected));
  }

  // 8 bytes: a double's bits, or an integer modulo 2^64.
  static uint64_t number(const py::handle& scalar) {
    if (PyFloat_Check(scalar.ptr())) {
      const double value = PyFloat_AS_DOUBLE(scalar.ptr());
      return std::bit_cast<uint64_t>(value);
    }
    const py::int_ integer = py::cast<py::int_>(scalar);
    const uint64_t value = PyLong_AsUnsignedLongLongMask(integer.ptr());
    if (PyErr_Occurred()) throw py::error_already_set();
    return value;
  }

  void launch(const std::vector<std::unique_ptr<View>>& views, const std::vector<uint64_t>& scalars) const {
    std::vector<std::unique_ptr<void, FreeDeviceMemory>> memory;
    std::vector<void*> addresses;
    const auto failed = [](NRT_STATUS status) {
      if (status == NRT_SUCCESS) return;
      const py::gil_scoped_acquire acquire;
      check(status);
    };
    for (size_t n = 0; n < views.size(); ++n) {
      const int32_t alias = io_[n].alias;
      if (alias >= 0 && views[n]->data() == views[static_cast<size_t>(alias)]->data()) {
        addresses.push_back(addresses[static_cast<size_t>(alias)]);
        continue;
      }
      // Outputs begin with what the caller's buffer holds, since a program may leave gaps of a strided result
      // untouched.
      void* address = nullptr;
      failed(nrtx_memory_allocate(core_, io_[n].nbytes, &address));
      memory.emplace_back(address);
      addresses.push_back(address);
      failed(nrtx_copy_from_host(address, views[n]->data(), io_[n].nbytes));
    }
    failed(nrtx_execute(executable_.get(), core_, addresses.data(), scalars.data()));
    for (size_t n = counts_.inputs; n < views.size(); ++n)
      failed(nrtx_copy_to_host(views[n]->data(), addresses[n], io_[n].nbytes));
  }

  struct Free {
    void operator()(nrtx_executable_t* executable) const { nrtx_executable_free(executable); }
  };

  int core_;
  nrtx_model_counts_t counts_;
  std::unique_ptr<nrtx_executable_t, Free> executable_;
  std::vector<nrtx_io_t> io_;
};

class Model {
 public:
  Model(const py::object& neff, int core) : core_(core) {
    const View view(neff, false);
    check(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", ""));
    nrt_model_t* model = nullptr;
    const NRT_STATUS status = nrt_load(view.data(), view.size(), core, 1, &model);
    if (status == NRT_INVALID || status == NRT_UNSUPPORTED_NEFF_VERSION) raise("NeffError", status, nrtx_last_error());
    check(status);
    model_.reset(model);
    check(nrtx_model_counts(model, &counts_));
  }

  py::object counts() const {
    return py::module_::import("libneuron_runtime._io")
        .attr("Counts")(counts_.inputs, counts_.outputs, counts_.slots, counts_.scalars);
  }

  std::unique_ptr<Executable> bind(const std::vector<int64_t>& slots) const {
    return std::make_unique<Executable>(model_.get(), core_, counts_, slots);
  }

 private:
  struct Unload {
    void operator()(nrt_model_t* model) const { nrt_unload(model); }
  };

  int core_;
  std::unique_ptr<nrt_model_t, Unload> model_;
  nrtx_model_counts_t counts_{};
};

}  // namespace

PYBIND11_MODULE(_rt, m) {
  m.doc() = "Binding of libneuron-runtime.";
  m.def("pack", &pack, py::arg("program"), py::arg("name"), py::arg("members"));
  m.def("unpack", &unpack, py::arg("neff"));
  m.def("verify", &verify, py::arg("neff"));
  m.def(
      "set_threads", [](int threads) { check(nrtx_set_threads(threads)); }, py::arg("threads"),
      "Threads that one launch may use, at least 1. Results do not depend on it.");
  m.def("get_threads", &nrtx_get_threads);

  py::class_<Executable>(m, "Executable", "A program with its slots filled in. Made by Model.bind.")
      .def_property_readonly("io", &Executable::io, "Io of each input, then of each output.")
      .def("run", &Executable::run, py::arg("inputs"), py::arg("outputs"), py::arg("scalars") = py::list(),
           "Copies contiguous host buffers to the device, launches, and copies the outputs back.\n\n"
           "A float scalar is passed as a double, an int modulo 2**64. An output that is the very buffer of the input "
           "it aliases shares its\n"
           "device memory. Raises NeuronError.");
  py::class_<Model>(m, "Model",
                    "A NEFF loaded on a core. Raises NeffError for a bad file, NeuronError for anything else.")
      .def(py::init<const py::object&, int>(), py::arg("neff"), py::arg("core") = 0)
      .def_property_readonly("counts", &Model::counts, "Counts(inputs, outputs, slots, scalars)")
      .def("bind", &Model::bind, py::arg("slots") = std::vector<int64_t>(),
           "Fills in the slots. Raises GuardError when a guard does not hold, NeuronError for anything else.");
}
