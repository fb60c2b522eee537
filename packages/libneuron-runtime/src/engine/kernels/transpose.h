// Transposition of a square of 4-byte elements in registers.
#pragma once

#include "engine/kernels/simd.h"

namespace neuron::engine::NEURON_ISA {

// Exchanges the off-diagonal blocks of Size x Size elements in every square of 2 Size x 2 Size.
template <int Size>
INLINE void exchange(vf (&x)[kWidth]) {
  vi low, high;  // where the elements of the two results come from: a is 0 to kWidth - 1, b follows
  for (int j = 0; j < kWidth; ++j) {
    low[j] = j & Size ? kWidth + j - Size : j;
    high[j] = j & Size ? kWidth + j : j + Size;
  }
#pragma GCC unroll 16
  for (int i = 0; i < kWidth; ++i) {
    if (i & Size) continue;
    const vf a = x[i], b = x[i + Size];
    x[i] = __builtin_shuffle(a, b, low);
    x[i + Size] = __builtin_shuffle(a, b, high);
  }
}

INLINE void transpose(vf (&x)[kWidth]) {
  exchange<1>(x);
  exchange<2>(x);
  if constexpr (kWidth >= 8) exchange<4>(x);
  if constexpr (kWidth >= 16) exchange<8>(x);
}

}  // namespace neuron::engine::NEURON_ISA
