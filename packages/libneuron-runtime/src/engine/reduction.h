// The combination of two numbers under each reduction, for code outside the vector kernels, which must agree with it
// bit for bit.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>

#include "program_schema.h"

namespace neuron::engine {

inline bool is_arg(Micro op) { return op == Micro::REDUCE_ARGMAX || op == Micro::REDUCE_ARGMIN; }

template <class T>
bool is_nan(T x) {
  return x != x;
}
// Whether x displaces y as the largest (or smallest) number; a NaN displaces every number and nothing displaces a NaN.
template <class T>
bool beats(Micro op, T x, T y) {
  if (is_nan(y)) return false;
  return is_nan(x) || (op == Micro::REDUCE_ARGMAX ? x > y : x < y);
}

template <class T>
T combine(Micro op, T a, T b) {
  switch (op) {
    case Micro::REDUCE_SUM:
      if constexpr (std::is_integral_v<T>)
        return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) + static_cast<std::make_unsigned_t<T>>(b));
      return a + b;
    case Micro::REDUCE_PROD:
      if constexpr (std::is_integral_v<T>)
        return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) * static_cast<std::make_unsigned_t<T>>(b));
      return a * b;
    case Micro::REDUCE_MAX:
      return a > b || is_nan(a) ? a : b;
    case Micro::REDUCE_MIN:
      return a < b || is_nan(a) ? a : b;
    case Micro::REDUCE_AND:
      if constexpr (std::is_integral_v<T>) return a & b;
      return a;
    case Micro::REDUCE_OR:
      if constexpr (std::is_integral_v<T>) return a | b;
      return a;
    default:
      return a;
  }
}

template <class T>
T identity(Micro op) {
  using Limits = std::numeric_limits<T>;
  constexpr T low = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  constexpr T high = Limits::has_infinity ? Limits::infinity() : Limits::max();
  switch (op) {
    case Micro::REDUCE_PROD:
      return 1;
    case Micro::REDUCE_MAX:
    case Micro::REDUCE_ARGMAX:
      return low;
    case Micro::REDUCE_MIN:
    case Micro::REDUCE_ARGMIN:
      return high;
    case Micro::REDUCE_AND:
      return static_cast<T>(-1);
    default:
      return 0;
  }
}

// Calls f with a value of the kind's type.
template <class F>
auto with_kind(Kind kind, F&& f) {
  if (kind == Kind::F32) return f(float{});
  if (kind == Kind::I32) return f(int32_t{});
  return f(int64_t{});
}

// Elements of the kind: n identities.
inline void fill_identity(Micro op, Kind kind, char* out, int64_t n) {
  with_kind(kind, [&](auto zero) {
    using T = decltype(zero);
    T* p = reinterpret_cast<T*>(out);
    const T x = identity<T>(op);
    for (int64_t i = 0; i < n; ++i) p[i] = x;
  });
}

// total[i] = total[i] (op) part[i] for n elements. ARG reductions: `indices` belong to the totals, part_indices count
// from `base`.
inline void combine_vectors(Micro op, Kind kind, char* total, int64_t* indices, const char* part,
                            const int32_t* part_indices, int64_t base, int64_t n) {
  with_kind(kind, [&](auto zero) {
    using T = decltype(zero);
    T* t = reinterpret_cast<T*>(total);
    const T* p = reinterpret_cast<const T*>(part);
    if (is_arg(op)) {
      for (int64_t i = 0; i < n; ++i) {
        if (beats(op, p[i], t[i])) t[i] = p[i], indices[i] = base + part_indices[i];
      }
    } else {
      for (int64_t i = 0; i < n; ++i) t[i] = combine(op, t[i], p[i]);
    }
  });
}

}  // namespace neuron::engine
