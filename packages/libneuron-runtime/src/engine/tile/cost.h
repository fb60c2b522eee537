// Where it pays to use another thread, or to write around the caches. Measured on a 2-core Zen 4 with 32 MiB of
// last-level cache.
#pragma once

#include <cstdint>

namespace neuron::engine {

inline constexpr double kTaskNanoseconds = 10e3;  // work worth handing to another thread
inline constexpr int64_t kStreamBytes = int64_t{8}
                                        << 20;  // outputs of this size would only push others out of the cache
inline constexpr int64_t kWelcomeStreamBytes =
    int64_t{1} << 20;  // and of this size when the program says that nobody reads them soon

}  // namespace neuron::engine
