// Philox4x32-10, the counter-based generator of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).
#include "engine/kernels/stage.h"

namespace neuron::engine::NEURON_ISA {
namespace {

constexpr int kBlock = 64;

void philox(uint64_t key, uint64_t counter, int64_t stride, int64_t n, uint32_t* const words[4]) {
  uint32_t x[4][kBlock];
  for (int64_t start = 0; start < n; start += kBlock) {
    for (int k = 0; k < kBlock; ++k) {
      const uint64_t position = counter + static_cast<uint64_t>((start + k) * stride);
      uint32_t a = static_cast<uint32_t>(position), b = static_cast<uint32_t>(position >> 32), c = 0, d = 0;
      uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
      for (int round = 0; round < 10; ++round) {
        const uint64_t p = uint64_t{0xD2511F53} * a, q = uint64_t{0xCD9E8D57} * c;
        const uint32_t next_a = static_cast<uint32_t>(q >> 32) ^ b ^ k0,
                       next_c = static_cast<uint32_t>(p >> 32) ^ d ^ k1;
        b = static_cast<uint32_t>(q);
        d = static_cast<uint32_t>(p);
        a = next_a;
        c = next_c;
        k0 += 0x9E3779B9;
        k1 += 0xBB67AE85;
      }
      x[0][k] = a, x[1][k] = b, x[2][k] = c, x[3][k] = d;
    }
    const int64_t count = n - start < kBlock ? n - start : kBlock;
    for (int w = 0; w < 4; ++w) {
      if (words[w]) __builtin_memcpy(words[w] + start, x[w], static_cast<size_t>(count) * 4);
    }
  }
}

}  // namespace

void add_philox(Isa& t) { t.philox = philox; }

}  // namespace neuron::engine::NEURON_ISA
