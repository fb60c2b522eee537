// NEURON_SIM_HOST_VISIBLE=0: device memory is mapped PROT_NONE but while the runtime itself works on it, so that
// anything else that reads or writes a device address stops at once.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

namespace neuron::sim {

class Visibility {
 public:
  explicit Visibility(bool host_visible) : host_visible_(host_visible) {}

  bool host_visible() const { return host_visible_; }
  // Protection of a new mapping, which is watched from now on. Mappings live until exit.
  int add(void* address, size_t size) {
    if (host_visible_) return PROT_READ | PROT_WRITE;
    std::lock_guard lock(mutex_);
    ranges_.emplace_back(address, size);
    return users_ > 0 ? PROT_READ | PROT_WRITE : PROT_NONE;
  }

  // Device memory may be touched while a Scope is alive.
  class Scope {
   public:
    explicit Scope(Visibility& visibility) : visibility_(visibility) {
      if (!visibility_.host_visible_) visibility_.change(1);
    }
    ~Scope() {
      if (!visibility_.host_visible_) visibility_.change(-1);
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Visibility& visibility_;
  };

 private:
  void change(int step) {
    std::lock_guard lock(mutex_);
    const bool was = users_ > 0;
    users_ += step;
    if (was == (users_ > 0)) return;
    for (const auto& [address, size] : ranges_)
      mprotect(address, size, users_ > 0 ? PROT_READ | PROT_WRITE : PROT_NONE);
  }

  const bool host_visible_;
  std::mutex mutex_;
  int users_ = 0;
  std::vector<std::pair<void*, size_t>> ranges_;
};

}  // namespace neuron::sim
