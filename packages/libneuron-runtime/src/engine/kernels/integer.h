// Integer operations shared by I32 and I64: `apply` on vectors, `one` on numbers.
#pragma once

#include "engine/kernels/simd.h"

namespace neuron::engine::NEURON_ISA::integer {

template <class V>
struct Unsigned;
template <>
struct Unsigned<vi> {
  using type = vu;
  static constexpr int kBits = 32;
};
template <>
struct Unsigned<vl> {
  using type = vul;
  static constexpr int kBits = 64;
};

struct Not {
  template <class V>
  static INLINE V apply(V a) {
    return ~a;
  }
};
struct Neg {
  template <class V>
  static INLINE V apply(V a) {
    return -a;
  }
};
struct Abs {
  template <class V>
  static INLINE V apply(V a) {
    return a < 0 ? -a : a;
  }
};
struct Sign {
  template <class V>
  static INLINE V apply(V a) {
    return a > 0 ? V{} + 1 : V(a < 0);
  }
};

struct Add {
  template <class V>
  static INLINE V apply(V a, V b) {
    return a + b;
  }
};
struct Sub {
  template <class V>
  static INLINE V apply(V a, V b) {
    return a - b;
  }
};
struct Mul {
  template <class V>
  static INLINE V apply(V a, V b) {
    return a * b;
  }
};
struct Max {
  template <class V>
  static INLINE V apply(V a, V b) {
    return a > b ? a : b;
  }
};
struct Min {
  template <class V>
  static INLINE V apply(V a, V b) {
    return a < b ? a : b;
  }
};
struct And {
  template <class V>
  static INLINE V apply(V a, V b) {
    return a & b;
  }
};
struct Or {
  template <class V>
  static INLINE V apply(V a, V b) {
    return a | b;
  }
};
struct Xor {
  template <class V>
  static INLINE V apply(V a, V b) {
    return a ^ b;
  }
};

// A shift count outside the width is not masked, as the machine would do, but shifts everything out.
template <class V>
INLINE V inside(V count) {
  return (count >= 0) & (count < Unsigned<V>::kBits);
}
struct Shl {
  template <class V>
  static INLINE V apply(V a, V b) {
    const V ok = inside(b);
    return (a << (b & ok)) & ok;
  }
};
struct Shru {
  template <class V>
  static INLINE V apply(V a, V b) {
    const V ok = inside(b);
    return (V)((typename Unsigned<V>::type)a >> (typename Unsigned<V>::type)(b & ok)) & ok;
  }
};
struct Shr {
  template <class V>
  static INLINE V apply(V a, V b) {
    const V ok = inside(b);
    return a >> ((b & ok) | (~ok & (Unsigned<V>::kBits - 1)));
  }
};

template <class T>
INLINE T power(T base, T exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent & 1 ? -1 : 1) : 0;
  T result = 1;
  for (; exponent; exponent >>= 1, base *= base) {
    if (exponent & 1) result *= base;
  }
  return result;
}
struct Pow {
  template <class V>
  static INLINE V apply(V a, V b) {
    V r;
    for (int k = 0; k < static_cast<int>(sizeof(V) / sizeof(a[0])); ++k) r[k] = power(a[k] + 0, b[k] + 0);
    return r;
  }
};
struct Div {
  template <class T>
  static INLINE T one(T a, T b) {
    return b == 0 ? 0 : b == -1 ? -a : a / b;  // the smallest integer / -1 wraps
  }
};
struct Rem {
  template <class T>
  static INLINE T one(T a, T b) {
    return b == 0 || b == -1 ? 0 : a % b;
  }
};

}  // namespace neuron::engine::NEURON_ISA::integer
