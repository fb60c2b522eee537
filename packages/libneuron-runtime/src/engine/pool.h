// The threads that share the work of one launch.
//
// One launch uses the pool at a time; another one that comes meanwhile runs in its own thread alone, which never waits.
// Chunks are claimed one by one by whoever is free, so that a thread which loses its processor delays one chunk only,
// and the end is reached when all chunks are done, not when all threads have reported. Results never depend on who ran
// a chunk.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace neuron::engine {

// Threads that one launch may use, the caller included: at first NEURON_SIM_THREADS or the processors of this process.
int threads();
// threads >= 1; more than kMaxThreads is cut. Takes effect with the next launch.
void set_threads(int threads);
inline constexpr int kMaxThreads = 256;

namespace pool {
using Chunk = void (*)(void* work, int64_t chunk);
// Calls function(work, 0) ... function(work, chunks - 1) in any order and from several threads; returns when all are
// done. The first chunk's exception (lowest number) is thrown again here, after the others have ended. Inside a chunk
// it runs everything inline.
void run(int64_t chunks, Chunk function, void* work);
}  // namespace pool

// body(begin, end) for pieces of [0, n), each `grain` long or more; inline when there is one piece or one thread.
template <class Body>
void parallel_for(int64_t n, int64_t grain, Body&& body) {
  if (n <= 0) return;
  if (grain < 1) grain = 1;
  if (n <= grain || threads() == 1) {
    body(int64_t{0}, n);
    return;
  }
  struct Work {
    std::remove_reference_t<Body>* body;
    int64_t n, grain;
  } work{std::addressof(body), n, grain};
  pool::run((n + grain - 1) / grain,
            [](void* p, int64_t chunk) {
              const Work& w = *static_cast<Work*>(p);
              const int64_t begin = chunk * w.grain;
              (*w.body)(begin, begin + w.grain < w.n ? begin + w.grain : w.n);
            },
            &work);
}

}  // namespace neuron::engine
