#include "device/sim/capacity.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/error.h"

namespace neuron::sim::test {

namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

// A root directory with files of our choosing.
class Root {
 public:
  Root() {
    std::string name = (std::filesystem::temp_directory_path() / "neuron-capacity-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~Root() { std::filesystem::remove_all(path_); }
  void write(const std::string& file, const std::string& text) const {
    const std::filesystem::path path = path_ + file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

TEST_CASE("free memory is MemAvailable without a cgroup") {
  const Root root;
  root.write("/proc/meminfo", "MemTotal: 100 kB\nMemFree: 7 kB\nMemAvailable:   2048 kB\n");
  CHECK(host_free_bytes(root.path()) == 2048 * 1024);
}

TEST_CASE("a version 2 cgroup limits, its page cache counts as free, and ancestors limit too") {
  const Root root;
  root.write("/proc/meminfo", "MemAvailable: 99999999 kB\n");
  root.write("/proc/self/cgroup", "0::/a/b\n");
  root.write("/sys/fs/cgroup/a/b/memory.max", "max\n");
  root.write("/sys/fs/cgroup/a/b/memory.current", "5000\n");
  root.write("/sys/fs/cgroup/a/memory.max", "10000\n");
  root.write("/sys/fs/cgroup/a/memory.current", "7000\n");
  root.write("/sys/fs/cgroup/a/memory.stat", "anon 1\ninactive_file 2000\n");
  CHECK(host_free_bytes(root.path()) == 5000);
  root.write("/sys/fs/cgroup/a/b/memory.max", "6000\n");
  CHECK(host_free_bytes(root.path()) == 1000);
  root.write("/sys/fs/cgroup/a/b/memory.current", "7000\n");
  CHECK(host_free_bytes(root.path()) == 0);
}

TEST_CASE("a version 1 cgroup limits, found at the mount's root inside a container") {
  const Root root;
  root.write("/proc/meminfo", "MemAvailable: 99999999 kB\n");
  root.write("/proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/docker/abc\n");
  root.write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "4000\n");
  root.write("/sys/fs/cgroup/memory/memory.usage_in_bytes", "1500\n");
  CHECK(host_free_bytes(root.path()) == 2500);
}

TEST_CASE("capacity is the smaller of the modelled one and a share of the free memory") {
  unsetenv("NEURON_SIM_HBM_BYTES");
  CHECK(core_capacity(1000 * kGiB, 1) == 24 * kGiB);
  CHECK(core_capacity(10 * kGiB, 1) == 6 * kGiB);
  CHECK(core_capacity(10 * kGiB, 2) == 3 * kGiB);
  setenv("NEURON_SIM_HBM_BYTES", "123456", 1);
  CHECK(core_capacity(10 * kGiB, 2) == 123456);
  setenv("NEURON_SIM_HBM_BYTES", "lots", 1);
  CHECK_THROWS_WITH_AS(core_capacity(kGiB, 1),
                       "NEURON_SIM_HBM_BYTES=\"lots\": expected an integer from 0 to 137438953472", Error);
  unsetenv("NEURON_SIM_HBM_BYTES");
}

}  // namespace neuron::sim::test
