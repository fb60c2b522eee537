// Transposition of a square of elements in registers.
#pragma once

#include "engine/kernels/simd.h"

namespace neuron::engine::NEURON_ISA {

template <class V, class M, int N, int Size>
INLINE void exchange(V (&x)[N]) {
  if constexpr (Size < N) {
    // Exchanges the off-diagonal blocks of Size x Size elements in every square of 2 Size x 2 Size. Masks say where the
    // elements of the two results come from: the first vector is 0 to N - 1, the second follows.
    M low, high;
    for (int j = 0; j < N; ++j) {
      low[j] = j & Size ? N + j - Size : j;
      high[j] = j & Size ? N + j : j + Size;
    }
#pragma GCC unroll 16
    for (int i = 0; i < N; ++i) {
      if (i & Size) continue;
      const V a = x[i], b = x[i + Size];
      x[i] = __builtin_shuffle(a, b, low);
      x[i + Size] = __builtin_shuffle(a, b, high);
    }
    exchange<V, M, N, Size * 2>(x);
  }
}

INLINE void transpose(vf (&x)[kWidth]) { exchange<vf, vi, kWidth, 1>(x); }
INLINE void transpose(vl (&x)[kWidth / 2]) { exchange<vl, vl, kWidth / 2, 1>(x); }

}  // namespace neuron::engine::NEURON_ISA
