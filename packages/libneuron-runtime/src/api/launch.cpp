// The extension: neuron/launch.h.
#include <memory>

#include "api/model.h"
#include "engine/pool.h"
#include "program/bind.h"

using namespace neuron;
using namespace neuron::api;

namespace {

const Executable& checked(const nrtx_executable_t* executable) {
  if (!executable) throw Error(NRT_INVALID_HANDLE, "the executable is NULL");
  return *executable->executable;
}

}  // namespace

extern "C" {

NRT_STATUS nrtx_model_counts(const nrt_model_t* model, nrtx_model_counts_t* counts) {
  return guarded([&] {
    models().check(model, "model");
    require(counts, "counts");
    const Program& program = *model->program;
    *counts = {program.input_count(), program.output_count(), program.header().slot_count,
               program.header().scalar_count};
  });
}

NRT_STATUS nrtx_bind(const nrt_model_t* model, const int64_t* slots, size_t slot_count, nrtx_executable_t** executable,
                     int32_t* failed_guard) {
  if (failed_guard) *failed_guard = -1;
  return guarded([&] {
    models().check(model, "model");
    require(executable, "executable");
    if (slot_count > 0) require(slots, "slots");
    try {
      auto bound =
          model->frozen && slot_count == 0 ? model->frozen : Executable::bind(model->program, {slots, slot_count});
      *executable = new nrtx_executable{std::move(bound)};
    } catch (const GuardError& error) {
      if (failed_guard) *failed_guard = error.guard();
      throw;
    }
  });
}

void nrtx_executable_free(nrtx_executable_t* executable) { delete executable; }

NRT_STATUS nrtx_executable_io(const nrtx_executable_t* executable, uint32_t position, nrtx_io_t* out) {
  return guarded([&] {
    const auto list = checked(executable).io();
    require(out, "io");
    if (position >= list.size())
      throw Error(NRT_INVALID, format("position %u, but there are %zu inputs and outputs", position, list.size()));
    const Io& io = list[position];
    *out = {static_cast<uint32_t>(io.dtype),
            static_cast<uint32_t>(io.rank),
            {},
            static_cast<uint64_t>(io.nbytes),
            io.alias};
    for (int d = 0; d < io.rank; ++d) out->dims[d] = io.dims[d];
  });
}

NRT_STATUS nrtx_execute(const nrtx_executable_t* executable, int vnc, void* const* buffers, const uint64_t* scalars) {
  return guarded([&] {
    const Executable& bound = checked(executable);
    if (!buffers && !bound.io().empty()) require(buffers, "buffers");
    if (!scalars && bound.program().header().scalar_count > 0) require(scalars, "scalars");
    Runtime::get().core_or_init(vnc).execute(bound, buffers, scalars);
  });
}

NRT_STATUS nrtx_memory_allocate(int vnc, size_t size, void** address) {
  return guarded([&] {
    require(address, "address");
    Core& core = Runtime::get().core_or_init(vnc);
    *address = size == 0 ? nullptr : core.allocate(size);
  });
}

NRT_STATUS nrtx_memory_free(void* address) {
  if (!address) return NRT_SUCCESS;
  return guarded([&] {
    for (Core* core : Runtime::get().cores_or_init()) {
      if (core->free(address)) return;
    }
    throw Error(NRT_INVALID, format("%p is no device memory of this process", address));
  });
}

NRT_STATUS nrtx_memory_empty_cache(int vnc) {
  return guarded([&] { Runtime::get().core_or_init(vnc).empty_cache(); });
}

NRT_STATUS nrtx_memory_stats(int vnc, nrtx_memory_stats_t* stats) {
  return guarded([&] {
    require(stats, "stats");
    *stats = Runtime::get().core_or_init(vnc).memory_stats();
  });
}

NRT_STATUS nrtx_memory_reset_peak(int vnc) {
  return guarded([&] { Runtime::get().core_or_init(vnc).reset_peak(); });
}

int nrtx_memory_core(const void* address) {
  int found = -1;
  guarded([&] {
    const auto& cores = Runtime::get().cores_or_init();
    for (size_t n = 0; n < cores.size() && found < 0; ++n) {
      if (cores[n]->owns(address)) found = static_cast<int>(n);
    }
  });
  return found;
}

NRT_STATUS nrtx_copy_from_host(void* destination, const void* host, size_t size) {
  if (size == 0) return NRT_SUCCESS;
  return guarded([&] {
    require(destination, "device");
    require(host, "host");
    device().copy_from_host(destination, host, size);
  });
}

NRT_STATUS nrtx_copy_to_host(void* host, const void* source, size_t size) {
  if (size == 0) return NRT_SUCCESS;
  return guarded([&] {
    require(host, "host");
    require(source, "device");
    device().copy_to_host(host, source, size);
  });
}

NRT_STATUS nrtx_copy_on_device(void* destination, const void* source, size_t size) {
  if (size == 0) return NRT_SUCCESS;
  return guarded([&] {
    require(destination, "destination");
    require(source, "source");
    device().copy_on_device(destination, source, size);
  });
}

bool nrtx_host_visible(void) {
  bool visible = false;
  guarded([&] { visible = device().host_visible(); });
  return visible;
}

NRT_STATUS nrtx_set_threads(int threads) {
  return guarded([&] {
    if (threads < 1) throw Error(NRT_INVALID, format("%d threads; expected at least 1", threads));
    engine::set_threads(threads);
  });
}

int nrtx_get_threads(void) { return engine::threads(); }

int nrtx_abi_version(void) { return NEURON_LAUNCH_ABI; }

}  // extern "C"
