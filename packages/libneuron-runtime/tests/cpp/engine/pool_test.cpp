// The pool: every chunk runs once, errors reach the caller, nested and concurrent use, forks, changing numbers of
// threads.
#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "engine/pool.h"

namespace neuron::engine::test {
namespace {

bool runs_every_chunk_once(int64_t n, int64_t grain) {
  std::vector<std::atomic<int>> seen(static_cast<size_t>(n));
  parallel_for(n, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) seen[static_cast<size_t>(i)].fetch_add(1, std::memory_order_relaxed);
  });
  for (const auto& s : seen) {
    if (s != 1) return false;
  }
  return true;
}

TEST_CASE("every chunk runs once, whatever the number of threads") {
  for (const int count : {1, 2, 3, 8, 2}) {
    set_threads(count);
    CHECK(threads() == count);
    for (int round = 0; round < 300; ++round) CHECK(runs_every_chunk_once(1 + round * 7 % 100, 1 + round % 4));
  }
  set_threads(2);
}

TEST_CASE("the first chunk's exception is thrown again and the pool goes on") {
  set_threads(2);
  for (int round = 0; round < 50; ++round) {
    try {
      parallel_for(100, 1, [&](int64_t begin, int64_t) {
        if (begin % 10 == 3) throw std::runtime_error(std::to_string(begin));
      });
      FAIL("no exception");
    } catch (const std::runtime_error& e) {
      CHECK(std::string(e.what()) == "3");
    }
    CHECK(runs_every_chunk_once(64, 1));
  }
}

TEST_CASE("a chunk that uses the pool runs inline") {
  set_threads(3);
  std::atomic<int64_t> sum{0};
  parallel_for(20, 1,
               [&](int64_t, int64_t) { parallel_for(50, 1, [&](int64_t begin, int64_t end) { sum += end - begin; }); });
  CHECK(sum == 1000);
  set_threads(2);
}

TEST_CASE("several callers at once") {
  set_threads(2);
  std::atomic<bool> good{true};
  std::vector<std::thread> callers;
  for (int t = 0; t < 4; ++t) {
    callers.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        if (!runs_every_chunk_once(50, 1)) good = false;
      }
    });
  }
  for (std::thread& t : callers) t.join();
  CHECK(good);
}

TEST_CASE("a sleeping pool wakes up") {
  set_threads(2);
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    CHECK(runs_every_chunk_once(10, 1));
  }
}

#if !defined(__SANITIZE_THREAD__)  // which forbids threads in the child of a threaded process
TEST_CASE("a forked child has a pool of its own") {
  set_threads(2);
  CHECK(runs_every_chunk_once(64, 1));
  const pid_t child = fork();
  if (child == 0) _exit(runs_every_chunk_once(1000, 1) ? 0 : 1);
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(runs_every_chunk_once(64, 1));
}
#endif

}  // namespace
}  // namespace neuron::engine::test
