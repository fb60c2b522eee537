// The NRT functions, through the shared library.
#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "neff/neff.h"
#include "neuron/launch.h"
#include "nrt/nrt_experimental.h"
#include "nrt/nrt_version.h"
#include "samples.h"

namespace neuron::test {

namespace {

bool says(const char* text) { return std::string(nrtx_last_error()).find(text) != std::string::npos; }

std::vector<std::byte> neff_of(const std::string& name) {
  for (const Sample& sample : samples()) {
    if (sample.name == name) return pack_neff(sample.bytes, name, {});
  }
  return {};
}

struct Initialised {
  Initialised() { REQUIRE(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "") == NRT_SUCCESS); }
};

struct Loaded : Initialised {
  explicit Loaded(const std::string& name = "row") {
    auto file = neff_of(name);
    REQUIRE(nrt_load(file.data(), file.size(), 0, 1, &model) == NRT_SUCCESS);
    std::fill(file.begin(), file.end(), std::byte{0});  // the caller may reuse its memory at once
  }
  ~Loaded() { nrt_unload(model); }
  nrt_model_t* model = nullptr;
};

nrt_tensor_t* tensor(size_t size, const char* name = nullptr,
                     nrt_tensor_placement_t placement = NRT_TENSOR_PLACEMENT_DEVICE) {
  nrt_tensor_t* result = nullptr;
  REQUIRE(nrt_tensor_allocate(placement, 0, size, name, &result) == NRT_SUCCESS);
  return result;
}

}  // namespace

TEST_CASE("calls before nrt_init and after nrt_close say so; queries work at any time") {
  nrt_model_t* model = nullptr;
  nrt_tensor_t* t = nullptr;
  const auto file = neff_of("row");
  uint32_t count = 0;
  nrt_version_t version;
  CHECK(nrt_get_total_nc_count(&count) == NRT_SUCCESS);
  CHECK(count >= 2);
  CHECK(nrt_get_visible_nc_count(&count) == NRT_SUCCESS);
  CHECK(count == 2);
  CHECK(nrt_get_version(&version, sizeof(version)) == NRT_SUCCESS);
  CHECK(std::to_string(version.rt_major) + "." + std::to_string(version.rt_minor) + "." +
            std::to_string(version.rt_patch) ==
        version.rt_detail);
  CHECK(nrt_load(file.data(), file.size(), 0, 1, &model) == NRT_UNINITIALIZED);
  CHECK(says("nrt_init was not called"));
  CHECK(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, 4, "x", &t) == NRT_UNINITIALIZED);
  CHECK(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "") == NRT_SUCCESS);
  CHECK(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "") == NRT_SUCCESS);
  t = tensor(64);
  CHECK(nrt_load(file.data(), file.size(), 0, 1, &model) == NRT_SUCCESS);
  nrt_close();
  nrt_close();
  CHECK(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, 4, "x", &t) == NRT_CLOSED);
  CHECK(says("nrt_close was called"));
  CHECK(nrtx_memory_allocate(0, 4, nullptr) == NRT_INVALID);
  void* address = nullptr;
  CHECK(nrtx_memory_allocate(0, 4, &address) == NRT_CLOSED);
  nrt_tensor_free(&t);  // what is still alive may be freed
  CHECK(nrt_unload(model) == NRT_SUCCESS);
  setenv("NEURON_RT_NUM_CORES", "3", 1);  // the environment is read again
  CHECK(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "") == NRT_SUCCESS);
  CHECK(nrt_get_visible_vnc_count(&count) == NRT_SUCCESS);
  CHECK(count == 3);
  nrt_close();
  setenv("NEURON_RT_VISIBLE_CORES", "5-6", 1);  // wins
  CHECK(nrt_get_visible_nc_count(&count) == NRT_SUCCESS);
  CHECK(count == 2);
  setenv("NEURON_RT_VISIBLE_CORES", "7,6", 1);
  CHECK(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "") == NRT_INVALID);
  setenv("NEURON_RT_VISIBLE_CORES", "4000", 1);
  CHECK(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "") == NRT_RESOURCE);
  CHECK(says("NeuronCore(s) not available"));
  unsetenv("NEURON_RT_VISIBLE_CORES");
  setenv("NEURON_RT_NUM_CORES", "0", 1);
  CHECK(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "") == NRT_SUCCESS);
  CHECK(nrt_load(file.data(), file.size(), -1, 1, &model) == NRT_LOAD_NOT_ENOUGH_NC);
  CHECK(nrtx_memory_allocate(0, 4, &address) == NRT_INVALID_HANDLE);
  nrt_close();
  unsetenv("NEURON_RT_NUM_CORES");
}

TEST_CASE("status names") {
  CHECK(std::string(nrt_get_status_as_str(NRT_SUCCESS)) == "NRT_SUCCESS");
  CHECK(std::string(nrt_get_status_as_str(NRT_EXEC_OOB)) == "NRT_EXEC_OOB");
  CHECK(std::string(nrt_get_status_as_str(static_cast<NRT_STATUS>(12))) == "UNKNOWN STATUS");
}

TEST_CASE_FIXTURE(Initialised, "tensors: contents, ranges, slices, host memory") {
  nrt_tensor_t* t = tensor(100, "t");
  char buffer[100];
  std::memset(buffer, 7, sizeof(buffer));
  CHECK(nrt_tensor_read(t, buffer, 0, 100) == NRT_SUCCESS);
  for (const char c : buffer) CHECK(c == 0);  // new tensors are zero
  CHECK(nrt_tensor_write(t, "hello", 10, 6) == NRT_SUCCESS);
  CHECK(nrt_tensor_write(t, "hello", 95, 6) == NRT_INVALID);
  CHECK(says("bytes 95 to 101 of tensor \"t\" were asked for, but it has 100"));
  CHECK(nrt_tensor_read(t, buffer, ~size_t{0}, 2) == NRT_INVALID);
  CHECK(nrt_tensor_read(t, nullptr, 0, 2) == NRT_INVALID);
  CHECK(nrt_tensor_get_size(t) == 100);
  nrt_tensor_t* slice = nullptr;
  CHECK(nrt_tensor_allocate_slice(t, 10, 20, "slice", &slice) == NRT_SUCCESS);
  CHECK(nrt_tensor_allocate_slice(t, 90, 20, "slice", &slice) == NRT_INVALID);
  CHECK(static_cast<char*>(nrt_tensor_get_va(slice)) == static_cast<char*>(nrt_tensor_get_va(t)) + 10);
  nrt_tensor_free(&t);
  CHECK(t == nullptr);
  CHECK(nrt_tensor_read(slice, buffer, 0, 6) == NRT_SUCCESS);  // the slice keeps the storage
  CHECK(std::string(buffer) == "hello");
  CHECK(nrt_tensor_memset(slice, 1, 'x', 3) == NRT_SUCCESS);
  nrt_tensor_t* host = tensor(20, "host", NRT_TENSOR_PLACEMENT_HOST);
  CHECK(nrt_tensor_copy(slice, 0, host, 2, 6) == NRT_SUCCESS);
  CHECK(nrt_tensor_copy(host, 2, host, 3, 6) == NRT_SUCCESS);
  CHECK(std::string(static_cast<char*>(nrt_tensor_get_va(host)) + 3) == "hxxxo");
  CHECK(nrt_tensor_copy(host, 3, slice, 0, 6) == NRT_SUCCESS);
  CHECK(nrt_tensor_copy(slice, 0, host, 15, 6) == NRT_INVALID);
  nrt_tensor_free(&host);
  nrt_tensor_free(&slice);
  nrt_tensor_free(&slice);
  nrt_tensor_free(nullptr);
}

TEST_CASE_FIXTURE(Initialised, "tensors: attached buffers, batches, other cores, dead handles") {
  nrt_tensor_t* empty = nullptr;
  CHECK(nrt_tensor_allocate_empty("empty", &empty) == NRT_SUCCESS);
  char byte = 0;
  CHECK(nrt_tensor_read(empty, &byte, 0, 1) == NRT_INVALID);
  CHECK(says("attach a buffer first"));
  CHECK(nrt_tensor_get_va(empty) == nullptr);
  char mine[8] = "abcdefg";
  CHECK(nrt_tensor_attach_buffer(empty, mine, 8) == NRT_SUCCESS);
  CHECK(nrt_tensor_get_va(empty) == mine);
  char parts[4] = {};
  const nrt_tensor_batch_op_t ops[] = {{1, 2, parts}, {5, 1, parts + 2}};
  const nrt_tensor_batch_t batch{empty, ops, 2};
  CHECK(nrt_tensor_read_batch(&batch, 1, false) == NRT_SUCCESS);
  CHECK(std::string(parts) == "bcf");
  CHECK(nrt_tensor_write_batch(nullptr, 1, false) == NRT_INVALID);
  nrt_tensor_t* other = nullptr;
  CHECK(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 1, 8, "other", &other) == NRT_SUCCESS);
  nrt_tensor_t* here = tensor(8);
  CHECK(nrt_tensor_copy(here, 0, other, 0, 8) == NRT_INVALID);
  CHECK(says("different cores"));
  nrt_tensor_t* dead = here;
  nrt_tensor_free(&here);
  CHECK(nrt_tensor_read(dead, &byte, 0, 1) == NRT_INVALID_HANDLE);
  CHECK(nrt_tensor_get_size(dead) == 0);
  CHECK(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 9, 8, "x", &dead) == NRT_INVALID_HANDLE);
  CHECK(says("core 9 does not exist: this process sees 2"));
  CHECK(nrt_tensor_allocate(static_cast<nrt_tensor_placement_t>(7), 0, 8, "x", &dead) == NRT_INVALID);
  CHECK(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, size_t{1} << 60, "x", &dead) == NRT_RESOURCE);
  nrt_tensor_free(&other);
  nrt_tensor_free(&empty);
}

TEST_CASE_FIXTURE(Loaded, "a model knows its signature, even after it is unloaded") {
  nrt_tensor_info_array_t* info = nullptr;
  REQUIRE(nrt_get_model_tensor_info(model, &info) == NRT_SUCCESS);
  uint32_t count = 0;
  CHECK(nrt_get_model_nc_count(model, &count) == NRT_SUCCESS);
  CHECK(count == 1);
  nrt_model_info_t where{99};
  size_t written = 0;
  CHECK(nrt_get_model_info(model, &where, sizeof(where), &written) == NRT_SUCCESS);
  CHECK(written == sizeof(where));
  CHECK(nrt_unload(model) == NRT_SUCCESS);
  CHECK(nrt_unload(model) == NRT_INVALID_HANDLE);
  REQUIRE(info->tensor_count == 3);
  const nrt_tensor_info_t& x = info->tensor_array[0];
  CHECK(std::string(x.name) == "x");
  CHECK(x.usage == NRT_TENSOR_USAGE_INPUT);
  CHECK(x.size == 180);
  CHECK(x.dtype == NRT_DTYPE_FLOAT32);
  REQUIRE(x.ndim == 2);
  CHECK(x.shape[0] == 5);
  CHECK(x.shape[1] == 9);
  CHECK(info->tensor_array[1].usage == NRT_TENSOR_USAGE_OUTPUT);
  CHECK(nrt_free_model_tensor_info(info) == NRT_SUCCESS);
}

TEST_CASE_FIXTURE(Loaded, "nrt_execute finds its tensors by name and refuses what does not fit") {
  nrt_tensor_set_t *inputs = nullptr, *outputs = nullptr;
  CHECK(nrt_allocate_tensor_set(&inputs) == NRT_SUCCESS);
  CHECK(nrt_allocate_tensor_set(&outputs) == NRT_SUCCESS);
  nrt_tensor_t *x = tensor(180, "x"), *sums = tensor(20), *rest = tensor(180), *small = tensor(179);
  float values[45];
  for (int n = 0; n < 45; ++n) values[n] = static_cast<float>(n % 9);
  nrt_tensor_write(x, values, 0, 180);
  CHECK(nrt_execute(model, inputs, outputs) == NRT_INVALID);
  CHECK(says("the input set has no tensor \"x\""));
  CHECK(nrt_add_tensor_to_tensor_set(inputs, "x", small) == NRT_SUCCESS);
  CHECK(nrt_execute(model, inputs, outputs) == NRT_INVALID);
  CHECK(says("input tensor \"x\" has 179 bytes, but the model needs 180"));
  CHECK(nrt_add_tensor_to_tensor_set(inputs, "x", x) == NRT_SUCCESS);  // replaces
  nrt_tensor_t* found = small;
  CHECK(nrt_get_tensor_from_tensor_set(inputs, "x", &found) == NRT_SUCCESS);
  CHECK(found == x);
  CHECK(nrt_get_tensor_from_tensor_set(inputs, "y", &found) == NRT_FAILURE);
  CHECK(found == x);
  nrt_tensor_t* elsewhere = nullptr;
  CHECK(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 1, 20, nullptr, &elsewhere) == NRT_SUCCESS);
  nrt_add_tensor_to_tensor_set(outputs, "sums", elsewhere);
  nrt_add_tensor_to_tensor_set(outputs, "rest", rest);
  CHECK(nrt_execute(model, inputs, outputs) == NRT_INVALID);
  nrt_add_tensor_to_tensor_set(outputs, "sums", sums);
  CHECK(nrt_execute(nullptr, inputs, outputs) == NRT_INVALID_HANDLE);
  CHECK(nrt_execute(model, nullptr, outputs) == NRT_INVALID_HANDLE);
  CHECK_MESSAGE(nrt_execute(model, inputs, outputs) == NRT_SUCCESS, nrtx_last_error());
  float result[5];
  nrt_tensor_read(sums, result, 0, 20);
  for (const float sum : result) CHECK(sum == 36);
  nrt_tensor_read(rest, values, 0, 180);
  for (int n = 0; n < 45; ++n) CHECK(values[n] == static_cast<float>(n % 9 - 8));
  for (nrt_tensor_t** t : {&x, &sums, &rest, &small, &elsewhere}) nrt_tensor_free(t);
  CHECK(nrt_execute(model, inputs, outputs) == NRT_INVALID_HANDLE);  // its tensors are dead
  nrt_destroy_tensor_set(&inputs);
  nrt_destroy_tensor_set(&outputs);
  CHECK(inputs == nullptr);
  nrt_destroy_tensor_set(&inputs);
}

TEST_CASE_FIXTURE(Initialised, "nrt_load refuses what it cannot run") {
  nrt_model_t* model = nullptr;
  auto file = neff_of("row");
  CHECK(nrt_load(nullptr, 10, 0, 1, &model) == NRT_INVALID);
  CHECK(nrt_load(file.data(), 10, 0, 1, &model) == NRT_INVALID);
  CHECK(nrt_load(file.data(), file.size(), 7, 1, &model) == NRT_INVALID_HANDLE);
  CHECK(nrt_load(file.data(), file.size(), 0, 2, &model) == NRT_INVALID);
  CHECK(says("vnc_count is 2"));
  file[230] ^= std::byte{1};  // in the name: harmless but for the hash
  CHECK(nrt_load(file.data(), file.size(), 0, -1, &model) == NRT_SUCCESS);
  CHECK(nrt_unload(model) == NRT_SUCCESS);
  setenv("NEURON_RT_VALIDATE_HASH", "1", 1);
  CHECK(nrt_load(file.data(), file.size(), 0, -1, &model) == NRT_INVALID);
  CHECK(says("hash"));
  unsetenv("NEURON_RT_VALIDATE_HASH");
}

TEST_CASE("a model goes to the core with the fewest, and unloading gives its place back") {
  nrt_close();
  setenv("NEURON_RT_NUM_CORES", "3", 1);
  REQUIRE(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "") == NRT_SUCCESS);
  const auto file = neff_of("row");
  std::vector<nrt_model_t*> models;
  // Loads for core `vnc` and returns the core that the model went to.
  const auto load = [&](int32_t vnc) {
    nrt_model_t* model = nullptr;
    REQUIRE(nrt_load(file.data(), file.size(), vnc, 1, &model) == NRT_SUCCESS);
    models.push_back(model);
    nrt_model_info_t info{99};
    REQUIRE(nrt_get_model_info(model, &info, sizeof(info), nullptr) == NRT_SUCCESS);
    return info.vnc;
  };
  const auto unload = [&](size_t n) {
    REQUIRE(nrt_unload(models[n]) == NRT_SUCCESS);
    models.erase(models.begin() + static_cast<ptrdiff_t>(n));
  };
  CHECK(load(-1) == 0);
  CHECK(load(-1) == 1);
  CHECK(load(-1) == 2);
  CHECK(load(-1) == 0);  // all have one: the first
  unload(1);             // the one on core 1
  CHECK(load(-1) == 1);
  CHECK(load(1) == 1);  // asked for, and counted as well: 2, 2, 1
  CHECK(load(-1) == 2);
  // A load that fails takes no place: 2, 2, 2 and then 2, 2, 1.
  nrt_model_t* none = nullptr;
  for (int n = 0; n < 3; ++n) CHECK(nrt_load(file.data(), file.size() - 1, -1, 1, &none) == NRT_INVALID);
  CHECK(nrt_load(file.data(), file.size(), 3, 1, &none) == NRT_INVALID_HANDLE);
  CHECK(says("core 3 does not exist: this process sees 3"));
  unload(1);  // of core 2
  CHECK(load(-1) == 2);
  CHECK(load(-1) == 0);
  while (!models.empty()) unload(0);
  CHECK(load(-1) == 0);
  unload(0);
  nrt_close();
  unsetenv("NEURON_RT_NUM_CORES");
}

TEST_CASE_FIXTURE(Initialised, "a model with slots or scalars needs the extension") {
  nrt_tensor_info_array_t* info = nullptr;
  {
    const Loaded slots("add");
    CHECK(nrt_get_model_tensor_info(slots.model, &info) == NRT_INVALID);
    CHECK(says("the model has 2 slots"));
    CHECK(nrt_execute(slots.model, nullptr, nullptr) == NRT_INVALID);
  }
  const Loaded scalars("numbers");
  CHECK(nrt_execute(scalars.model, nullptr, nullptr) == NRT_INVALID);
  CHECK(says("the model takes 3 scalars"));
}

TEST_CASE_FIXTURE(Initialised, "memory statistics are as long as the caller knows") {
  nrt_vnc_memory_stats_t stats{};
  size_t written = 0;
  CHECK(nrt_get_vnc_memory_stats(0, &stats, 8, &written) == NRT_SUCCESS);
  CHECK(written == 8);
  CHECK(stats.bytes_limit == 0);
  CHECK(nrt_get_vnc_memory_stats(0, &stats, 100, &written) == NRT_SUCCESS);
  CHECK(written == sizeof(stats));
  CHECK(stats.bytes_limit > 0);
  CHECK(nrt_get_vnc_memory_stats(55, &stats, 16, &written) == NRT_INVALID_HANDLE);
  nrt_instance_info_t instance{};
  CHECK(nrt_get_instance_info(&instance, sizeof(instance)) == NRT_SUCCESS);
  CHECK(instance.family == NRT_INSTANCE_TRN2);
  CHECK(std::string(instance.arch_name) == "simulator");
}

}  // namespace neuron::test
