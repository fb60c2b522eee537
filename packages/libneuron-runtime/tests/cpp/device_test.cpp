// What every device must do. NEURON_TEST_DEVICE chooses one; without it the simulator is held to everything, and the
// null device to refusing everything.
#include "device/device.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>
#include <numeric>
#include <thread>

#include "base/error.h"
#include "samples.h"

namespace neuron::test {

namespace {

struct Fixture {
  std::unique_ptr<Device> device =
      make_device(std::getenv("NEURON_TEST_DEVICE") ? std::getenv("NEURON_TEST_DEVICE") : "sim");
  Core& core = device->open(0, 1);
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "device: memory keeps what is copied to it") {
  std::vector<int> host(1000), back(1000);
  std::iota(host.begin(), host.end(), 0);
  auto* address = static_cast<std::byte*>(core.allocate(8000));
  CHECK(reinterpret_cast<uintptr_t>(address) % 64 == 0);
  device->copy_from_host(address, host.data(), 4000);
  device->copy_on_device(address + 4000, address, 4000);
  device->copy_to_host(back.data(), address + 4000, 4000);
  CHECK(back == host);
  device->copy_on_device(address + 4, address, 4000);  // overlapping
  device->copy_to_host(back.data(), address + 4, 4000);
  CHECK(back == host);
  device->fill(address, 0xAB, 100);
  device->copy_to_host(back.data(), address, 104);
  CHECK(static_cast<unsigned>(back[24]) == 0xABABABAB);
  CHECK(back[25] == 24);
  CHECK(core.free(address));
}

TEST_CASE_FIXTURE(Fixture, "device: a core knows its own memory") {
  auto* address = static_cast<std::byte*>(core.allocate(100));
  CHECK(core.owns(address));
  CHECK(core.owns(address + 99));
  int local = 0;
  CHECK_FALSE(core.owns(&local));
  CHECK_FALSE(core.free(&local));
  CHECK(core.free(address));
  CHECK_FALSE(core.owns(address));
  CHECK_THROWS_AS(core.free(address), Error);
}

TEST_CASE_FIXTURE(Fixture, "device: statistics follow allocations") {
  const nrtx_memory_stats_t before = core.memory_stats();
  void* address = core.allocate(10000);
  const nrtx_memory_stats_t during = core.memory_stats();
  CHECK(during.allocated >= before.allocated + 10000);
  CHECK(during.reserved >= during.allocated);
  CHECK(during.reserved <= during.limit);
  CHECK(during.allocations == before.allocations + 1);
  core.free(address);
  CHECK(core.memory_stats().allocated == before.allocated);
  CHECK(core.memory_stats().peak_allocated >= during.allocated);
  core.reset_peak();
  CHECK(core.memory_stats().peak_allocated == before.allocated);
  core.empty_cache();
  CHECK(core.memory_stats().reserved <= during.reserved);
}

TEST_CASE_FIXTURE(Fixture, "device: too much memory is NRT_RESOURCE, and the device works on") {
  try {
    core.allocate(core.memory_stats().limit + 1);
    CHECK(false);
  } catch (const Error& error) {
    CHECK(error.status() == NRT_RESOURCE);
  }
  CHECK(core.memory_stats().out_of_memory == 1);
  CHECK(core.free(core.allocate(100)));
}

TEST_CASE_FIXTURE(Fixture, "device: a program runs on device memory, from several threads") {
  const Sample sample = add_sample();
  const auto executable = Executable::bind(Program::load(sample.bytes), std::vector<int64_t>{16, 16});
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::vector<float> x(256, static_cast<float>(t)), y(256, 0.5f), z(256);
      void* buffers[3];
      for (void*& buffer : buffers) buffer = core.allocate(1024);
      device->copy_from_host(buffers[0], x.data(), 1024);
      device->copy_from_host(buffers[1], y.data(), 1024);
      for (int n = 0; n < 50; ++n) core.execute(*executable, buffers, nullptr);
      device->copy_to_host(z.data(), buffers[2], 1024);
      for (const float value : z) wrong += value != static_cast<float>(t) + 0.5f;
      for (void* buffer : buffers) core.free(buffer);
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE_FIXTURE(Fixture, "device: temporary and on-chip memory appear on demand") {
  for (const Sample& sample : samples()) {
    if (sample.name != "numbers") continue;
    const auto executable = Executable::bind(Program::load(sample.bytes), sample.slots);
    REQUIRE(executable->temp_bytes() == 128);
    std::vector<void*> buffers;
    for (const Io& io : executable->io()) buffers.push_back(core.allocate(static_cast<size_t>(io.nbytes)));
    device->fill(buffers[0], 0, 32);
    core.execute(*executable, buffers.data(), sample.scalars.data());
    float result[16];
    device->copy_to_host(result, buffers[1], 64);
    CHECK(result[0] == 7.0f);  // 0 < 0.5 chooses 7 + index; the 4x4 copy is transposed
    CHECK(result[1] == 11.0f);
    for (void* buffer : buffers) core.free(buffer);
  }
}

TEST_CASE("device: unknown names are refused") {
  CHECK_THROWS_WITH_AS(make_device("tpu"), "NEURON_RT_DEVICE=\"tpu\": no such device; there are: sim, null", Error);
}

TEST_CASE("device: null refuses everything and says so") {
  const auto device = make_device("null");
  Core& core = device->open(0, 1);
  CHECK(device->core_count() == 1);
  CHECK_FALSE(device->host_visible());
  CHECK_FALSE(core.owns(&core));
  const auto refused = [](auto&& body) {
    try {
      body();
    } catch (const Error& error) {
      return error.status() == NRT_FAILURE && std::string(error.what()).find("does not implement") != std::string::npos;
    }
    return false;
  };
  int byte = 0;
  CHECK(refused([&] { core.allocate(1); }));
  CHECK(refused([&] { core.free(&byte); }));
  CHECK(refused([&] { core.empty_cache(); }));
  CHECK(refused([&] { core.memory_stats(); }));
  CHECK(refused([&] { core.reset_peak(); }));
  CHECK(refused([&] { device->copy_from_host(&byte, &byte, 1); }));
  CHECK(refused([&] { device->copy_to_host(&byte, &byte, 1); }));
  CHECK(refused([&] { device->copy_on_device(&byte, &byte, 1); }));
  CHECK(refused([&] { device->fill(&byte, 0, 1); }));
  const auto executable = Executable::bind(Program::load(add_sample().bytes), std::vector<int64_t>{1, 1});
  CHECK(refused([&] { core.execute(*executable, nullptr, nullptr); }));
}

}  // namespace neuron::test
