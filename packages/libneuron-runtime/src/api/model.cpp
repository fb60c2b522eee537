// Loading, signatures and execution by name.
#include "api/model.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "api/tensor.h"
#include "base/environment.h"
#include "neff/neff.h"

using namespace neuron;
using namespace neuron::api;

nrt_model::~nrt_model() {
  if (vnc != -1) Runtime::get().release_core(vnc);
}

const Executable& nrt_model::bound() const {
  if (frozen) return *frozen;
  throw Error(
      NRT_INVALID,
      format("the model has %u slots, so that its sizes are not known; fill them in with nrtx_bind and launch with "
             "nrtx_execute",
             program->header().slot_count));
}

namespace neuron::api {

Handles<nrt_model>& models() {
  static auto* const handles = new Handles<nrt_model>;
  return *handles;
}

namespace {

nrt_dtype_t nrt_dtype(Dtype dtype) {
  if (static_cast<uint32_t>(dtype) < 0x20) return static_cast<nrt_dtype_t>(dtype);
  return dtype == Dtype::BOOL ? NRT_DTYPE_UINT8 : NRT_DTYPE_UNKNOWN;  // NRT has no code of 8-byte floats
}

// Address of a tensor that a launch on core vnc uses as input or output `n`.
void* argument(const nrt_model& model, const nrt_tensor_set_t* set, const char* what, size_t n) {
  const Io& io = model.frozen->io()[n];
  const char* name = model.program->text(model.program->io()[n].name).data();
  const nrt_tensor_t* tensor = find_tensor(set, name);
  if (!tensor) throw Error(NRT_INVALID, format("the %s set has no tensor \"%s\"", what, name));
  if (!tensor->storage) throw Error(NRT_INVALID, format("%s tensor \"%s\" has no storage", what, name));
  if (tensor->size < static_cast<size_t>(io.nbytes)) {
    throw Error(NRT_INVALID, format("%s tensor \"%s\" has %zu bytes, but the model needs %lld", what, name,
                                    tensor->size, static_cast<long long>(io.nbytes)));
  }
  const Core* core = tensor->storage->core;
  if (core && core != &Runtime::get().core(model.vnc)) {
    throw Error(NRT_INVALID, format("%s tensor \"%s\" lies on another core than the model, which is on core %d", what,
                                    name, model.vnc));
  }
  return tensor->address();
}

}  // namespace

}  // namespace neuron::api

extern "C" {

NRT_STATUS nrt_load(const void* neff_bytes, size_t size, int32_t vnc, int32_t vnc_count, nrt_model_t** model) {
  return guarded([&] {
    require(neff_bytes, "neff_bytes");
    require(model, "model");
    if (vnc_count != -1 && vnc_count != 1) {
      throw Error(NRT_INVALID, format("vnc_count is %d; a model runs on one core, so expected -1 or 1", vnc_count));
    }
    auto loaded = std::make_unique<nrt_model>();
    loaded->vnc = Runtime::get().take_core(vnc);
    const Neff neff = Neff::parse({static_cast<const std::byte*>(neff_bytes), size});
    const auto bytes = neff.program();
    if (environment_flag("NEURON_RT_VALIDATE_HASH", false)) neff.check_hash();
    loaded->program = Program::load(bytes);
    if (loaded->program->header().slot_count == 0) loaded->frozen = Executable::bind(loaded->program, {});
    models().add(loaded.get());
    *model = loaded.release();
  });
}

NRT_STATUS nrt_unload(nrt_model_t* model) {
  return guarded([&] {
    if (!models().remove(model))
      throw Error(NRT_INVALID_HANDLE, format("%p is no live model", static_cast<void*>(model)));
    delete model;
  });
}

NRT_STATUS nrt_get_model_nc_count(const nrt_model_t* model, uint32_t* count) {
  return guarded([&] {
    models().check(model, "model");
    require(count, "nc_count");
    *count = 1;
  });
}

NRT_STATUS nrt_get_model_vnc_count(const nrt_model_t* model, uint32_t* count) {
  return nrt_get_model_nc_count(model, count);
}

NRT_STATUS nrt_get_model_instance_count(nrt_model_t* model, uint32_t* count) {
  return nrt_get_model_nc_count(model, count);
}

NRT_STATUS nrt_get_model_info(const nrt_model_t* model, nrt_model_info_t* info, size_t size_in, size_t* size_out) {
  return guarded([&] {
    models().check(model, "model");
    require(info, "info");
    const nrt_model_info_t result{static_cast<uint32_t>(model->vnc)};
    const size_t size = std::min(size_in, sizeof(result));
    std::memcpy(info, &result, size);
    if (size_out) *size_out = size;
  });
}

NRT_STATUS nrt_get_model_tensor_info(nrt_model_t* model, nrt_tensor_info_array_t** tensor_info) {
  return guarded([&] {
    models().check(model, "model");
    require(tensor_info, "tensor_info");
    const Executable& executable = model->bound();
    const Program& program = *model->program;
    const size_t count = program.io().size();
    // One block: the array, then all shapes.
    const size_t head = sizeof(nrt_tensor_info_array_t) + count * sizeof(nrt_tensor_info_t);
    auto* array =
        static_cast<nrt_tensor_info_array_t*>(std::calloc(1, head + count * schema::kMaxDims * sizeof(uint32_t)));
    if (!array) throw std::bad_alloc();
    array->tensor_count = count;
    auto* shapes = reinterpret_cast<uint32_t*>(reinterpret_cast<std::byte*>(array) + head);
    for (size_t n = 0; n < count; ++n) {
      const Io& io = executable.io()[n];
      nrt_tensor_info_t& info = array->tensor_array[n];
      const std::string_view name = program.text(program.io()[n].name);
      std::memcpy(info.name, name.data(), name.size());  // at most 255 characters; see rule `names`
      info.usage = n < program.input_count() ? NRT_TENSOR_USAGE_INPUT : NRT_TENSOR_USAGE_OUTPUT;
      info.size = static_cast<size_t>(io.nbytes);
      info.dtype = nrt_dtype(io.dtype);
      info.ndim = static_cast<uint32_t>(io.rank);
      info.shape = shapes + n * schema::kMaxDims;
      for (int d = 0; d < io.rank; ++d) info.shape[d] = static_cast<uint32_t>(io.dims[d]);
    }
    *tensor_info = array;
  });
}

NRT_STATUS nrt_free_model_tensor_info(nrt_tensor_info_array_t* tensor_info) {
  std::free(tensor_info);
  return NRT_SUCCESS;
}

NRT_STATUS nrt_execute(nrt_model_t* model, const nrt_tensor_set_t* input_set, nrt_tensor_set_t* output_set) {
  return guarded([&] {
    models().check(model, "model");
    const Executable& executable = model->bound();
    const Program& program = *model->program;
    if (program.header().scalar_count != 0) {
      throw Error(NRT_INVALID,
                  format("the model takes %u scalars; launch it with nrtx_execute", program.header().scalar_count));
    }
    std::vector<void*> buffers(program.io().size());
    for (size_t n = 0; n < buffers.size(); ++n) {
      const bool input = n < program.input_count();
      buffers[n] = argument(*model, input ? input_set : output_set, input ? "input" : "output", n);
    }
    Runtime::get().core(model->vnc).execute(executable, buffers.data(), nullptr);
  });
}

}  // extern "C"
