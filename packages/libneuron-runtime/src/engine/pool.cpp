#include "engine/pool.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include "base/environment.h"

namespace neuron::engine {
namespace {

// How long a thread looks for work before it sleeps: about 30 us, a little more than a wake-up costs.
constexpr int kSpins = 1000;

inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}
void futex_wait(std::atomic<uint32_t>& word, uint32_t value) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}
void futex_wake(std::atomic<uint32_t>& word, int count) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

int default_threads() {
  if (const auto wanted = environment_integer("NEURON_SIM_THREADS", 1, kMaxThreads)) return static_cast<int>(*wanted);
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::clamp(CPU_COUNT(&set), 1, kMaxThreads);
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kMaxThreads);
}

thread_local bool inside = false;  // this thread is running a chunk

class Pool {
 public:
  Pool() : threads_(default_threads()) {}

  int threads() const { return threads_.load(std::memory_order_relaxed); }
  void set_threads(int n) { threads_.store(std::clamp(n, 1, kMaxThreads), std::memory_order_relaxed); }

  void run(int64_t chunks, pool::Chunk function, void* work) {
    const int wanted = threads();
    if (inside || wanted == 1 || chunks == 1 || chunks > INT32_MAX || !launch_.try_lock()) {
      for (int64_t i = 0; i < chunks; ++i) function(work, i);
      return;
    }
    const std::lock_guard lock(launch_, std::adopt_lock);
    start_workers(static_cast<int>(std::min<int64_t>(wanted, chunks)) - 1);
    function_ = function;
    work_ = work;
    chunks_ = static_cast<uint32_t>(chunks);
    failed_chunk_ = UINT32_MAX;
    done_.store(0, std::memory_order_relaxed);
    helpers_.store(wanted - 1, std::memory_order_relaxed);
    const uint32_t round = static_cast<uint32_t>(ticket_.load(std::memory_order_relaxed) >> 32) + 1;
    ticket_.store(uint64_t{round} << 32 | chunks_);
    round_.store(round);
    if (sleepers_.load() > 0) futex_wake(round_, workers_);

    work_on(round);
    for (int spin = 0;; ++spin) {
      const uint32_t done = done_.load(std::memory_order_acquire);
      if (done == chunks_) break;
      if (spin < kSpins) {
        pause();
      } else {
        caller_waits_.store(1);
        if (done_.load() == done) futex_wait(done_, done);
        caller_waits_.store(0);
      }
    }
    if (failed_chunk_ != UINT32_MAX) {
      std::exception_ptr error;
      std::swap(error, error_);
      std::rethrow_exception(error);
    }
  }

  void before_fork() { launch_.lock(); }
  void after_fork_in_parent() { launch_.unlock(); }
  void after_fork_in_child() {
    workers_ = 0;  // threads do not survive a fork; new ones start with the next launch
    sleepers_ = 0;
    launch_.unlock();
  }

 private:
  void start_workers(int wanted) {
    for (; workers_ < wanted; ++workers_) {
      pthread_attr_t attributes;
      pthread_attr_init(&attributes);
      pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
      pthread_t thread;
      struct Start {
        Pool* pool;
        int index;
      };
      auto* start = new Start{this, workers_};
      const int failed = pthread_create(
          &thread, &attributes,
          [](void* p) -> void* {
            const std::unique_ptr<Start> s(static_cast<Start*>(p));
            s->pool->serve(s->index);
            return nullptr;
          },
          start);
      pthread_attr_destroy(&attributes);
      if (failed) {
        delete start;
        return;  // fewer helpers; the caller does the work
      }
    }
  }

  [[noreturn]] void serve(int index) {
    pthread_setname_np(pthread_self(), "neuron-sim");
    uint32_t seen = 0;
    for (;;) {
      uint32_t round = round_.load(std::memory_order_acquire);
      for (int spin = 0; round == seen && spin < kSpins; ++spin) {
        pause();
        round = round_.load(std::memory_order_acquire);
      }
      if (round == seen) {
        sleepers_.fetch_add(1);
        if (round_.load() == seen) futex_wait(round_, seen);
        sleepers_.fetch_sub(1);
        continue;
      }
      seen = round;
      if (index < helpers_.load(std::memory_order_relaxed)) work_on(round);
    }
  }

  // Claims and runs chunks of this round until none is left.
  void work_on(uint32_t round) {
    inside = true;
    for (;;) {
      uint64_t ticket = ticket_.load(std::memory_order_acquire);
      for (;;) {
        if (static_cast<uint32_t>(ticket >> 32) != round || static_cast<uint32_t>(ticket) == 0) {
          inside = false;
          return;
        }
        if (ticket_.compare_exchange_weak(ticket, ticket - 1, std::memory_order_acq_rel)) break;
      }
      // A claimed chunk keeps the round alive: the caller does not return, and the fields do not change, before it is
      // done.
      const uint32_t chunk = chunks_ - static_cast<uint32_t>(ticket);
      try {
        function_(work_, chunk);
      } catch (...) {
        const std::lock_guard lock(error_mutex_);
        if (chunk < failed_chunk_) {
          failed_chunk_ = chunk;
          error_ = std::current_exception();
        }
      }
      const uint32_t all = chunks_;
      if (done_.fetch_add(1) + 1 == all && caller_waits_.load()) futex_wake(done_, 1);
    }
  }

  std::mutex launch_;
  std::atomic<int> threads_;
  int workers_ = 0;  // guarded by launch_

  // The round: written by the caller before ticket_, read after a claim.
  pool::Chunk function_ = nullptr;
  void* work_ = nullptr;
  uint32_t chunks_ = 0;
  std::mutex error_mutex_;
  uint32_t failed_chunk_ = UINT32_MAX;
  std::exception_ptr error_;

  alignas(64) std::atomic<uint64_t> ticket_{0};  // round << 32 | chunks not yet claimed
  alignas(64) std::atomic<uint32_t> done_{0};
  alignas(64) std::atomic<uint32_t> round_{0};
  std::atomic<int> helpers_{0};
  std::atomic<int> sleepers_{0};
  std::atomic<uint32_t> caller_waits_{0};
};

// Never destroyed: its threads may outlive main().
Pool& the_pool() {
  static Pool* instance = [] {
    auto* p = new Pool;
    pthread_atfork([] { the_pool().before_fork(); }, [] { the_pool().after_fork_in_parent(); },
                   [] { the_pool().after_fork_in_child(); });
    return p;
  }();
  return *instance;
}

}  // namespace

int threads() { return the_pool().threads(); }
void set_threads(int n) { the_pool().set_threads(n); }
void pool::run(int64_t chunks, Chunk function, void* work) { the_pool().run(chunks, function, work); }

}  // namespace neuron::engine
