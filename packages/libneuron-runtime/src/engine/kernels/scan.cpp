// Running sums along lines, one vector lane a line: squares of elements are transposed on the way in and out.
#include "engine/kernels/floating.h"
#include "engine/kernels/integer.h"
#include "engine/kernels/stage.h"
#include "engine/kernels/transpose.h"

namespace neuron::engine::NEURON_ISA {
namespace {

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

template <class Float, class Integer>
void add(Isa& t, Combine combine) {
  t.scan[static_cast<int>(combine)][0] = scan<vf, Float>;
  t.scan[static_cast<int>(combine)][1] = scan<vi, Integer>;
}

}  // namespace

void add_scans(Isa& t) {
  t.scan_lines = kWidth;
  add<floating::Add, integer::Add>(t, Combine::ADD);
  add<floating::Mul, integer::Mul>(t, Combine::MUL);
  add<floating::Min, integer::Min>(t, Combine::MIN);
  add<floating::Max, integer::Max>(t, Combine::MAX);
}

}  // namespace neuron::engine::NEURON_ISA
