// The extension, through the shared library.
#include "neuron/launch.h"

#include <doctest/doctest.h>

#include <csetjmp>
#include <csignal>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "neff/neff.h"
#include "samples.h"

namespace neuron::test {

namespace {

bool says(const char* text) { return std::string(nrtx_last_error()).find(text) != std::string::npos; }

struct Model {
  explicit Model(const char* name) {
    REQUIRE(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "") == NRT_SUCCESS);
    for (const Sample& sample : samples()) {
      if (sample.name != name) continue;
      const auto file = pack_neff(sample.bytes, name, {});
      REQUIRE(nrt_load(file.data(), file.size(), 0, 1, &model) == NRT_SUCCESS);
    }
  }
  ~Model() { nrt_unload(model); }
  nrt_model_t* model = nullptr;
};

void* allocate(size_t size, int vnc = 0) {
  void* address = nullptr;
  REQUIRE(nrtx_memory_allocate(vnc, size, &address) == NRT_SUCCESS);
  return address;
}

sigjmp_buf landing;

// Whether reading the address is a memory fault.
bool faults(const volatile char* address) {
  struct sigaction action {
  }, old{};
  action.sa_handler = [](int) { siglongjmp(landing, 1); };
  sigaction(SIGSEGV, &action, &old);
  volatile bool faulted = true;  // read after the jump
  if (sigsetjmp(landing, 1) == 0) {
    (void)*address;
    faulted = false;
  }
  sigaction(SIGSEGV, &old, nullptr);
  return faulted;
}

}  // namespace

TEST_CASE("counts, bind, launch") {
  Model add("add");
  nrtx_model_counts_t counts{};
  CHECK(nrtx_model_counts(add.model, &counts) == NRT_SUCCESS);
  CHECK(counts.inputs == 2);
  CHECK(counts.outputs == 1);
  CHECK(counts.slots == 2);
  CHECK(counts.scalars == 0);
  const int64_t slots[] = {3, 4};
  nrtx_executable_t* executable = nullptr;
  REQUIRE(nrtx_bind(add.model, slots, 2, &executable, nullptr) == NRT_SUCCESS);
  nrtx_io_t io{};
  CHECK(nrtx_executable_io(executable, 2, &io) == NRT_SUCCESS);
  CHECK(io.dtype == static_cast<uint32_t>(Dtype::FP32));
  CHECK(io.rank == 2);
  CHECK(io.dims[1] == 4);
  CHECK(io.nbytes == 48);
  CHECK(nrtx_executable_io(executable, 3, &io) == NRT_INVALID);
  nrt_unload(add.model);  // the executable lives on
  add.model = nullptr;
  const std::vector<float> x(12, 1.5f), y(12, 2.25f);
  std::vector<float> z(12);
  void* buffers[] = {allocate(48), allocate(48), allocate(48)};
  CHECK(nrtx_copy_from_host(buffers[0], x.data(), 48) == NRT_SUCCESS);
  CHECK(nrtx_copy_from_host(buffers[1], y.data(), 48) == NRT_SUCCESS);
  CHECK(nrtx_execute(executable, 0, buffers, nullptr) == NRT_SUCCESS);
  CHECK(nrtx_copy_to_host(z.data(), buffers[2], 48) == NRT_SUCCESS);
  CHECK(z == std::vector<float>(12, 3.75f));
  CHECK(nrtx_execute(executable, 5, buffers, nullptr) == NRT_INVALID_HANDLE);
  CHECK(nrtx_execute(executable, -1, buffers, nullptr) == NRT_INVALID_HANDLE);
  CHECK(nrtx_execute(nullptr, 0, buffers, nullptr) == NRT_INVALID_HANDLE);
  CHECK(nrtx_execute(executable, 0, nullptr, nullptr) == NRT_INVALID);
  for (void* buffer : buffers) CHECK(nrtx_memory_free(buffer) == NRT_SUCCESS);
  nrtx_executable_free(executable);
  nrtx_executable_free(nullptr);
}

TEST_CASE("a broken guard is told by number, other refusals by -1") {
  const Model alias("alias");
  nrtx_executable_t* executable = nullptr;
  int32_t guard = 77;
  int64_t slot = 0;
  CHECK(nrtx_bind(alias.model, &slot, 1, &executable, &guard) == NRT_INVALID);
  CHECK(guard == 0);
  CHECK(says("guard 0 does not hold: 0 LT 0"));
  CHECK(nrtx_bind(alias.model, &slot, 0, &executable, &guard) == NRT_INVALID);
  CHECK(guard == -1);
  CHECK(nrtx_bind(alias.model, nullptr, 1, &executable, &guard) == NRT_INVALID);
  slot = int64_t{1} << 62;
  CHECK(nrtx_bind(alias.model, &slot, 1, &executable, &guard) == NRT_INVALID);
  CHECK(guard == -1);
  slot = 4;
  REQUIRE(nrtx_bind(alias.model, &slot, 1, &executable, &guard) == NRT_SUCCESS);
  nrtx_io_t io{};
  CHECK(nrtx_executable_io(executable, 1, &io) == NRT_SUCCESS);
  CHECK(io.alias == 0);
  int64_t numbers[] = {1, 2, 3, 4};
  void* buffer = allocate(32);
  void* buffers[] = {buffer, buffer};
  nrtx_copy_from_host(buffer, numbers, 32);
  CHECK(nrtx_execute(executable, 0, buffers, nullptr) == NRT_SUCCESS);
  nrtx_copy_to_host(numbers, buffer, 32);
  CHECK(numbers[3] == 16);
  nrtx_memory_free(buffer);
  nrtx_executable_free(executable);
}

TEST_CASE("memory: owners, statistics, mistakes") {
  nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "");
  void* nothing = &nothing;
  CHECK(nrtx_memory_allocate(0, 0, &nothing) == NRT_SUCCESS);
  CHECK(nothing == nullptr);
  CHECK(nrtx_memory_free(nullptr) == NRT_SUCCESS);
  char* here = static_cast<char*>(allocate(1000, 0));
  char* there = static_cast<char*>(allocate(1000, 1));
  CHECK(nrtx_memory_core(here) == 0);
  CHECK(nrtx_memory_core(there + 999) == 1);
  CHECK(nrtx_memory_core(&here) == -1);
  nrtx_memory_stats_t stats{};
  CHECK(nrtx_memory_stats(1, &stats) == NRT_SUCCESS);
  CHECK(stats.allocated >= 1000);
  CHECK(nrtx_copy_from_host(here, "abc", 4) == NRT_SUCCESS);
  CHECK(nrtx_copy_on_device(there, here, 4) == NRT_SUCCESS);
  char back[4] = {};
  CHECK(nrtx_copy_to_host(back, there, 4) == NRT_SUCCESS);
  CHECK(std::string(back) == "abc");
  CHECK(nrtx_copy_to_host(nullptr, there, 4) == NRT_INVALID);
  CHECK(nrtx_copy_from_host(nullptr, nullptr, 0) == NRT_SUCCESS);
  CHECK(nrtx_memory_free(here + 64) == NRT_INVALID);
  CHECK(nrtx_memory_free(&here) == NRT_INVALID);
  CHECK(says("is no device memory of this process"));
  CHECK(nrtx_memory_free(here) == NRT_SUCCESS);
  CHECK(nrtx_memory_free(here) == NRT_INVALID);
  CHECK(nrtx_memory_free(there) == NRT_SUCCESS);
  CHECK(nrtx_memory_empty_cache(1) == NRT_SUCCESS);
  CHECK(nrtx_memory_reset_peak(1) == NRT_SUCCESS);
  CHECK(nrtx_memory_stats(1, &stats) == NRT_SUCCESS);
  CHECK(stats.reserved == 0);
  CHECK(stats.peak_reserved == 0);
}

TEST_CASE("device memory is out of the host's reach when it is asked to be") {
  nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "");
  char* address = static_cast<char*>(allocate(100));
  CHECK(nrtx_copy_from_host(address, "x", 2) == NRT_SUCCESS);
  CHECK(faults(address) == !nrtx_host_visible());
  nrtx_memory_free(address);
}

TEST_CASE("threads: the count is kept, errors are each thread's own") {
  CHECK(nrtx_set_threads(0) == NRT_INVALID);
  CHECK(says("0 threads; expected at least 1"));
  const int before = nrtx_get_threads();
  CHECK(before >= 1);
  CHECK(nrtx_set_threads(3) == NRT_SUCCESS);
  CHECK(nrtx_get_threads() == 3);
  CHECK(nrtx_set_threads(before) == NRT_SUCCESS);
  std::thread([] { CHECK(std::string(nrtx_last_error()).empty()); }).join();
  CHECK(nrtx_abi_version() == NEURON_LAUNCH_ABI);
}

}  // namespace neuron::test
