// Process, cores, versions and queries.
#include "api/runtime.h"

#include <algorithm>
#include <cstring>

#include "base/environment.h"
#include "neuron/version.h"

namespace neuron::api {

namespace {

constexpr int kDefaultCores = 2;  // enough to meet every multi-core code path

// Copies as much of a growing struct as the caller has room for.
template <class T>
size_t copy_out(void* destination, size_t room, const T& value) {
  const size_t size = std::min(room, sizeof(T));
  std::memcpy(destination, &value, size);
  return size;
}

}  // namespace

Runtime& Runtime::get() {
  static Runtime* const runtime = new Runtime;
  return *runtime;
}

std::vector<int> Runtime::visible_cores() {
  const int total = device().core_count();
  if (const auto text = environment("NEURON_RT_VISIBLE_CORES")) {
    std::vector<int> cores = parse_cores(*text);
    if (cores.back() >= total) {
      throw Error(NRT_RESOURCE,
                  format("NEURON_RT_VISIBLE_CORES=\"%s\": NeuronCore(s) not available: the machine has cores 0 to %d",
                         text->c_str(), total - 1));
    }
    return cores;
  }
  const auto count = environment_integer("NEURON_RT_NUM_CORES", 0, 4096).value_or(std::min(kDefaultCores, total));
  if (count > total) {
    throw Error(NRT_RESOURCE, format("NEURON_RT_NUM_CORES=%lld: NeuronCore(s) not available: the machine has %d",
                                     static_cast<long long>(count), total));
  }
  std::vector<int> cores(static_cast<size_t>(count));
  for (size_t n = 0; n < cores.size(); ++n) cores[n] = static_cast<int>(n);
  return cores;
}

void Runtime::init() {
  std::lock_guard lock(mutex_);
  if (opened_.load(std::memory_order_relaxed)) return;
  auto opened = std::make_unique<Opened>();
  const std::vector<int> cores = visible_cores();
  for (const int core : cores) opened->cores.push_back(&device().open(core, static_cast<int>(cores.size())));
  closed_ = false;
  history_.push_back(std::move(opened));
  opened_.store(history_.back().get(), std::memory_order_release);
}

const Runtime::Opened& Runtime::init_once() {
  if (closed_) not_opened();
  init();
  return opened();
}

void Runtime::close() {
  std::lock_guard lock(mutex_);
  const Opened* opened = opened_.exchange(nullptr);
  if (!opened) return;
  closed_ = true;
  for (Core* core : opened->cores) {
    try {
      core->empty_cache();
    } catch (const Error&) {
      // A device that cannot give memory back early keeps it until exit.
    }
  }
}

void Runtime::not_opened() const {
  if (closed_) throw Error(NRT_CLOSED, "nrt_close was called; call nrt_init again first");
  throw Error(NRT_UNINITIALIZED, "nrt_init was not called");
}

void Runtime::no_core(const Opened& opened, int vnc) {
  throw Error(NRT_INVALID_HANDLE,
              format("core %d does not exist: this process sees %zu (NEURON_RT_NUM_CORES, NEURON_RT_VISIBLE_CORES)",
                     vnc, opened.cores.size()));
}

int Runtime::visible_count() {
  if (const Opened* opened = opened_.load()) return static_cast<int>(opened->cores.size());
  return static_cast<int>(visible_cores().size());
}

int Runtime::take_core(int vnc) {
  const size_t count = cores().size();
  if (count == 0) throw Error(NRT_LOAD_NOT_ENOUGH_NC, "this process sees no core (NEURON_RT_NUM_CORES=0)");
  if (vnc != -1) core(vnc);  // exists
  std::lock_guard lock(mutex_);
  models_.resize(std::max(models_.size(), count));
  if (vnc == -1) vnc = static_cast<int>(std::min_element(models_.begin(), models_.begin() + count) - models_.begin());
  ++models_[static_cast<size_t>(vnc)];
  return vnc;
}

void Runtime::release_core(int vnc) {
  std::lock_guard lock(mutex_);
  --models_[static_cast<size_t>(vnc)];
}

}  // namespace neuron::api

using namespace neuron;
using namespace neuron::api;

extern "C" {

NRT_STATUS nrt_init(nrt_framework_type_t, const char*, const char*) {
  return guarded([] { Runtime::get().init(); });
}

void nrt_close(void) {
  guarded([] { Runtime::get().close(); });
}

NRT_STATUS nrt_get_version(nrt_version_t* version, size_t size) {
  return guarded([&] {
    require(version, "version");
    nrt_version_t result{};
    result.rt_major = NEURON_RT_VERSION_MAJOR;
    result.rt_minor = NEURON_RT_VERSION_MINOR;
    result.rt_patch = NEURON_RT_VERSION_PATCH;
    std::strcpy(result.rt_detail, NEURON_RT_VERSION);
    copy_out(version, size, result);
  });
}

const char* nrt_get_status_as_str(NRT_STATUS status) {
#define CASE(name) \
  case name:       \
    return #name;
  switch (status) {
    CASE(NRT_SUCCESS)
    CASE(NRT_FAILURE)
    CASE(NRT_INVALID)
    CASE(NRT_INVALID_HANDLE)
    CASE(NRT_RESOURCE)
    CASE(NRT_TIMEOUT)
    CASE(NRT_HW_ERROR)
    CASE(NRT_QUEUE_FULL)
    CASE(NRT_LOAD_NOT_ENOUGH_NC)
    CASE(NRT_UNSUPPORTED_NEFF_VERSION)
    CASE(NRT_FAIL_HOST_MEM_ALLOC)
    CASE(NRT_UNINITIALIZED)
    CASE(NRT_CLOSED)
    CASE(NRT_QUEUE_EMPTY)
    CASE(NRT_EXEC_UNIT_UNRECOVERABLE)
    CASE(NRT_EXEC_BAD_INPUT)
    CASE(NRT_EXEC_COMPLETED_WITH_NUM_ERR)
    CASE(NRT_EXEC_COMPLETED_WITH_ERR)
    CASE(NRT_EXEC_NC_BUSY)
    CASE(NRT_EXEC_OOB)
    CASE(NRT_COLL_PENDING)
    CASE(NRT_EXEC_HW_ERR_COLLECTIVES)
    CASE(NRT_EXEC_HW_ERR_HBM_UE)
    CASE(NRT_EXEC_HW_ERR_NC_UE)
    CASE(NRT_EXEC_HW_ERR_DMA_ABORT)
    CASE(NRT_EXEC_SW_NQ_OVERFLOW)
    CASE(NRT_EXEC_HW_ERR_REPAIRABLE_HBM_UE)
    CASE(NRT_NETWORK_PROXY_FAILURE)
  }
#undef CASE
  return "UNKNOWN STATUS";
}

NRT_STATUS nrt_get_instance_info(nrt_instance_info_t* info, size_t size) {
  return guarded([&] {
    require(info, "info");
    copy_out(info, size, device().instance());
  });
}

NRT_STATUS nrt_get_total_nc_count(uint32_t* count) {
  return guarded([&] {
    require(count, "nc_count");
    *count = static_cast<uint32_t>(device().core_count());
  });
}

NRT_STATUS nrt_get_visible_nc_count(uint32_t* count) {
  return guarded([&] {
    require(count, "nc_count");
    *count = static_cast<uint32_t>(Runtime::get().visible_count());
  });
}

NRT_STATUS nrt_get_total_vnc_count(uint32_t* count) { return nrt_get_total_nc_count(count); }
NRT_STATUS nrt_get_visible_vnc_count(uint32_t* count) { return nrt_get_visible_nc_count(count); }

NRT_STATUS nrt_get_vnc_memory_stats(uint32_t vnc, nrt_vnc_memory_stats_t* stats, size_t size_in, size_t* size_out) {
  return guarded([&] {
    require(stats, "stats");
    const nrtx_memory_stats_t memory = Runtime::get().core(static_cast<int>(vnc)).memory_stats();
    const size_t size = copy_out(stats, size_in, nrt_vnc_memory_stats_t{memory.allocated, memory.limit});
    if (size_out) *size_out = size;
  });
}

}  // extern "C"
