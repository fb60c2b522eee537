// Transposition of a square of elements in registers.
#pragma once

#include <utility>

#include "engine/kernels/simd.h"

namespace neuron::engine::NEURON_ISA {

// The off-diagonal blocks of Size x Size elements in two rows change places: the row of `a` (Odd 0) and that of `b`.
template <int Size, int Odd, class V, int... J>
INLINE V exchanged(V a, V b, std::integer_sequence<int, J...>) {
  constexpr int kN = sizeof...(J);  // element j of a is number j, that of b number kN + j
  return __builtin_shufflevector(a, b, (J & Size ? kN + J - (Odd ? 0 : Size) : J + (Odd ? Size : 0))...);
}

template <class V, int N, int Size>
INLINE void exchange(V (&x)[N]) {
  if constexpr (Size < N) {
    constexpr std::make_integer_sequence<int, N> kElements{};
#pragma GCC unroll 16
    for (int i = 0; i < N; ++i) {
      if (i & Size) continue;
      const V a = x[i], b = x[i + Size];
      x[i] = exchanged<Size, 0>(a, b, kElements);
      x[i + Size] = exchanged<Size, 1>(a, b, kElements);
    }
    exchange<V, N, Size * 2>(x);
  }
}

INLINE void transpose(vf (&x)[kWidth]) { exchange<vf, kWidth, 1>(x); }
INLINE void transpose(vl (&x)[kWidth / 2]) { exchange<vl, kWidth / 2, 1>(x); }

}  // namespace neuron::engine::NEURON_ISA
