// Running sums along lines, one vector lane a line: squares of elements are transposed on the way in and out.
#include "engine/kernels/stage.h"
#include "engine/kernels/transpose.h"

namespace neuron::engine::NEURON_ISA {
namespace {

struct Add {
  template <class V>
  static INLINE V apply(V a, V b) {
    return a + b;
  }
};
struct Mul {
  template <class V>
  static INLINE V apply(V a, V b) {
    return a * b;
  }
};
struct Min {
  static INLINE vf apply(vf a, vf b) { return minimum(a, b); }
  static INLINE vi apply(vi a, vi b) { return a < b ? a : b; }
};
struct Max {
  static INLINE vf apply(vf a, vf b) { return maximum(a, b); }
  static INLINE vi apply(vi a, vi b) { return a > b ? a : b; }
};

template <class V, class Op>
void scan(const char* const* from, char* const* to, int lines, int64_t length, bool reverse) {
  using T = Element<V>;
  V sum{};
  bool started = false;
  const auto take = [&](V x) {
    sum = started ? Op::apply(sum, x) : x;
    started = true;
  };
  const auto single = [&](int64_t i) {
    V x{};
    for (int j = 0; j < lines; ++j) x[j] = reinterpret_cast<const T*>(from[j])[i];
    take(x);
    for (int j = 0; j < lines; ++j) reinterpret_cast<T*>(to[j])[i] = sum[j];
  };
  const int64_t whole = length / kWidth * kWidth;
  if (reverse) {
    for (int64_t i = length - 1; i >= whole; --i) single(i);
  }
  for (int64_t square = 0; square < whole; square += kWidth) {
    const int64_t i = reverse ? whole - kWidth - square : square;
    vf x[kWidth];
    for (int j = 0; j < kWidth; ++j) x[j] = j < lines ? load<vf>(from[j] + i * 4) : vf{};
    transpose(x);
    if (reverse) {
#pragma GCC unroll 16
      for (int k = kWidth - 1; k >= 0; --k) take((V)x[k]), x[k] = (vf)sum;
    } else {
#pragma GCC unroll 16
      for (int k = 0; k < kWidth; ++k) take((V)x[k]), x[k] = (vf)sum;
    }
    transpose(x);
    for (int j = 0; j < lines; ++j) store(to[j] + i * 4, x[j]);
  }
  if (!reverse) {
    for (int64_t i = whole; i < length; ++i) single(i);
  }
}

template <class Op>
void add(Isa& t, Combine combine) {
  t.scan[static_cast<int>(combine)][0] = scan<vf, Op>;
  t.scan[static_cast<int>(combine)][1] = scan<vi, Op>;
}

}  // namespace

void add_scans(Isa& t) {
  t.scan_lines = kWidth;
  add<Add>(t, Combine::ADD);
  add<Mul>(t, Combine::MUL);
  add<Min>(t, Combine::MIN);
  add<Max>(t, Combine::MAX);
}

}  // namespace neuron::engine::NEURON_ISA
