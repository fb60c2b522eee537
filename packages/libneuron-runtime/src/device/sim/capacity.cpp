#include "device/sim/capacity.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>

#include "base/environment.h"

namespace neuron::sim {

namespace {

// The first number of a file; nothing when the file is missing or says "max".
std::optional<uint64_t> number_in(const std::string& path) {
  std::ifstream file(path);
  uint64_t number = 0;
  if (!(file >> number)) return std::nullopt;
  return number;
}

uint64_t available(const std::string& root) {
  std::ifstream file(root + "/proc/meminfo");
  std::string line;
  while (std::getline(file, line)) {
    uint64_t kilobytes = 0;
    std::istringstream words(line);
    std::string key;
    if (words >> key >> kilobytes && key == "MemAvailable:") return kilobytes * 1024;
  }
  return std::numeric_limits<uint64_t>::max();
}

// What one cgroup leaves, or no limit.
uint64_t cgroup_room(const std::string& directory, const char* limit_file, const char* usage_file) {
  const auto limit = number_in(directory + limit_file);
  const auto usage = number_in(directory + usage_file);
  if (!limit || !usage) return std::numeric_limits<uint64_t>::max();
  // Page cache counts as usage but is given back under pressure.
  uint64_t cache = 0;
  std::ifstream stat(directory + "/memory.stat");
  std::string key;
  for (uint64_t bytes; stat >> key >> bytes;) {
    if (key == "inactive_file" || key == "total_inactive_file") cache = bytes;
  }
  const uint64_t used = *usage - std::min(*usage, cache);
  return *limit - std::min(*limit, used);
}

}  // namespace

uint64_t host_free_bytes(const std::string& root) {
  uint64_t free = available(root);
  std::ifstream groups(root + "/proc/self/cgroup");
  std::string line;
  while (std::getline(groups, line)) {  // "hierarchy:controllers:path"
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    std::string path = line.substr(second + 1);
    const bool v2 = controllers.empty();
    if (!v2 && controllers != "memory") continue;
    const std::string mount = root + (v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory");
    // A limit of any ancestor binds; inside a container the path may not exist below the mount, whose own files then
    // count.
    for (;;) {
      const std::string directory = mount + (path == "/" ? "" : path);
      free = std::min(free, v2 ? cgroup_room(directory, "/memory.max", "/memory.current")
                               : cgroup_room(directory, "/memory.limit_in_bytes", "/memory.usage_in_bytes"));
      if (path.empty() || path == "/") break;
      path.resize(path.rfind('/'));
    }
  }
  return free;
}

uint64_t core_capacity(uint64_t free_bytes, int visible) {
  if (const auto bytes = environment_integer("NEURON_SIM_HBM_BYTES", 0, int64_t{1} << 37))
    return static_cast<uint64_t>(*bytes);
  return std::min(kModelledBytes, free_bytes / 10 * 6 / static_cast<uint64_t>(std::max(visible, 1)));
}

}  // namespace neuron::sim
