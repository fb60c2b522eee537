#include <Python.h>

#include "runtime/exit.h"

#include <unistd.h>

#include <thread>

namespace torch_neuronx {

namespace {

std::thread::id exiting;
std::atomic<int> held{0};

}  // namespace

namespace detail {

std::atomic<bool> exit_begun{false};

void wait_for_exit() {
  if (std::this_thread::get_id() == exiting) {
    return;
  }
  if (PyGILState_Check() != 0) {
    PyEval_SaveThread();
  }
  held.fetch_add(1, std::memory_order_relaxed);
  while (true) {
    pause();
  }
}

}  // namespace detail

void begin_exit() {
  exiting = std::this_thread::get_id();
  detail::exit_begun.store(true, std::memory_order_release);
}

int threads_held_at_exit() { return held.load(std::memory_order_relaxed); }

}  // namespace torch_neuronx
