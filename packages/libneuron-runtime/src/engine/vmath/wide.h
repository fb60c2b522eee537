// Functions computed in double, for those where float arithmetic would need tables or tricks to stay within a few ulp.
// Arguments come from floats and results are rounded to floats, so that a relative error of 1e-9 is enough.
#pragma once

#include "engine/kernels/simd.h"

namespace neuron::engine::NEURON_ISA::vmath {

template <int N>
INLINE vd polynomial(const double (&a)[N], vd x) {
  vd r = splat(a[N - 1]);
  for (int i = N - 2; i >= 0; --i) r = fma(r, x, a[i]);
  return r;
}
INLINE vd select_if(vl m, double a, vd b) { return m ? splat(a) : b; }

// 2^n for integral |n| <= 1022.
INLINE vd power_of_two(vd n) {
  const vd biased = n + (0x1.8p52 + 1023.0);  // the integer is in the low bits
  return (vd)((vl)biased << 52);
}
// Valid for |x| <= 700.
INLINE vd exp_wide(vd x) {
  constexpr double a[] = {1.0,       1.0,        1.0 / 2,     1.0 / 6,      1.0 / 24,      1.0 / 120,
                          1.0 / 720, 1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800};
  const vd n = round(x * 1.4426950408889634);
  const vd r = fma(n, -1.9082149292705877e-10, fma(n, splat(-0.69314718036912382), x));
  return polynomial(a, r) * power_of_two(n);
}
// Valid for normal x > 0.
INLINE vd log_wide(vd x) {
  const vl e = ((vl)x - 0x3fe6a09e667f3bcd) >> 52;  // sqrt(1/2)
  const vd m = (vd)((vl)x - (e << 52));
  const vd n = (vd)(e + 0x4338000000000000) - 0x1.8p52;  // conversion of a small integer
  const vd z = (m - 1.0) / (m + 1.0), square = z * z;
  constexpr double a[] = {2.0,      2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9, 2.0 / 11,
                          2.0 / 13, 2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21};
  return fma(n, splat(0.6931471805599453), z * polynomial(a, square));
}
// Sine and cosine on [-pi/4, pi/4].
INLINE vd sin_core(vd r) {
  constexpr double a[] = {1.0, -1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880, -1.0 / 39916800, 1.0 / 6227020800.0};
  return r * polynomial(a, r * r);
}
INLINE vd cos_core(vd r) {
  constexpr double a[] = {1.0,         -1.0 / 2,       1.0 / 24,        -1.0 / 720,
                          1.0 / 40320, -1.0 / 3628800, 1.0 / 479001600, -1.0 / 87178291200.0};
  return polynomial(a, r * r);
}
// Arc tangent on [0, 1].
INLINE vd atan_core(vd t) {
  // atan(t) = pi/8 + atan(u), u = (t - c) / (1 + c t), c = tan(pi/8), |u| <= c
  constexpr double c = 0.41421356237309503;
  const vl small = t < 0.2;
  const vd u = select(small, t, (t - c) / (1.0 + c * t)), square = u * u;
  constexpr double a[] = {1.0,      -1.0 / 3,  1.0 / 5,  -1.0 / 7,  1.0 / 9,  -1.0 / 11,
                          1.0 / 13, -1.0 / 15, 1.0 / 17, -1.0 / 19, 1.0 / 21, -1.0 / 23};
  return u * polynomial(a, square) + select(small, vd{}, splat(0.39269908169872414));
}
INLINE vd atan2_wide(vd y, vd x) {
  const vd ay = abs(y), ax = abs(x);
  const vl swap = ay > ax;
  const vd numerator = select(swap, ax, ay), denominator = select(swap, ay, ax);
  vd t = numerator / denominator;
  t = select_if(denominator == 0.0, 0.0, t);
  t = select_if(numerator == __builtin_inf(), 1.0, t);  // both infinite
  vd r = atan_core(t);
  r = select(swap, 1.5707963267948966 - r, r);
  r = select((vl)x < 0, 3.141592653589793 - r, r);  // the sign bit: -0 is left of the axis
  return select((y != y) | (x != x), x + y, copysign(r, y));
}

template <class F>
INLINE vf in_double(vf x, F f) {
  const vd2 w = widen(x);
  return narrow({f(w.low), f(w.high)});
}
template <class F>
INLINE vf in_double(vf x, vf y, F f) {
  const vd2 a = widen(x), b = widen(y);
  return narrow({f(a.low, b.low), f(a.high, b.high)});
}

}  // namespace neuron::engine::NEURON_ISA::vmath
