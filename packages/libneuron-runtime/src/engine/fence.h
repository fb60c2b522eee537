#pragma once

namespace neuron::engine {

// Makes non-temporal stores of this thread visible before what it stores next.
inline void store_fence() {
#if defined(__x86_64__)
  __builtin_ia32_sfence();
#endif
}

}  // namespace neuron::engine
