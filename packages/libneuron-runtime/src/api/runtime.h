// The process's cores between nrt_init and nrt_close.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_set>
#include <vector>

#include "api/fence.h"
#include "device/device.h"

namespace neuron::api {

class Runtime {
 public:
  static Runtime& get();  // never destroyed

  void init();
  void close();

  // Core vnc of this process. Throws Error: NRT_UNINITIALIZED, NRT_CLOSED, NRT_INVALID_HANDLE for no such core.
  Core& core(int vnc) { return core_of(opened(), vnc); }
  // The same; initialises on first use. For the extension's functions.
  Core& core_or_init(int vnc) { return core_of(opened_or_init(), vnc); }
  const std::vector<Core*>& cores() { return opened().cores; }
  const std::vector<Core*>& cores_or_init() { return opened_or_init().cores; }

  // Cores that the environment gives this process, before or after nrt_init.
  int visible_count();
  // The core that a model goes to: `vnc`, or for -1 the first of those with the fewest models. Counts the model until
  // release_core.
  int take_core(int vnc);
  void release_core(int vnc);

 private:
  // Immutable once published, and kept in history_ for good, because a launch may still look at it while nrt_close
  // runs.
  struct Opened {
    std::vector<Core*> cores;
  };

  static std::vector<int> visible_cores();
  static Core& core_of(const Opened& opened, int vnc) {
    if (static_cast<size_t>(vnc) < opened.cores.size()) [[likely]]
      return *opened.cores[static_cast<size_t>(vnc)];
    no_core(opened, vnc);
  }
  [[noreturn]] static void no_core(const Opened& opened, int vnc);
  [[noreturn]] void not_opened() const;
  const Opened& opened() const {
    const Opened* opened = opened_.load(std::memory_order_acquire);
    if (!opened) [[unlikely]]
      not_opened();
    return *opened;
  }
  const Opened& opened_or_init() {
    const Opened* opened = opened_.load(std::memory_order_acquire);
    if (!opened) [[unlikely]]
      return init_once();
    return *opened;
  }
  const Opened& init_once();

  std::mutex mutex_;
  std::vector<std::unique_ptr<const Opened>> history_;
  std::atomic<const Opened*> opened_{nullptr};
  std::atomic<bool> closed_{false};
  std::vector<int> models_;  // by core
};

// The live handles of one type, so that a dead or foreign one is refused instead of followed.
template <class T>
class Handles {
 public:
  void add(T* handle) {
    std::lock_guard lock(mutex_);
    live_.insert(handle);
  }
  // False when it is not live.
  bool remove(const T* handle) {
    std::lock_guard lock(mutex_);
    return live_.erase(handle) > 0;
  }
  // Throws Error(NRT_INVALID_HANDLE).
  void check(const T* handle, const char* what) {
    std::lock_guard lock(mutex_);
    if (!live_.contains(handle))
      throw Error(NRT_INVALID_HANDLE, format("%p is no live %s", static_cast<const void*>(handle), what));
  }

 private:
  std::mutex mutex_;
  std::unordered_set<const T*> live_;
};

}  // namespace neuron::api
