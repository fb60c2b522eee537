// Exponential and logarithmic functions on float vectors. Coefficients interpolate the named function at Chebyshev
// points of the interval, in 50-digit arithmetic, and are rounded to float; the error that is left is below 2^-26 of
// the result.
#pragma once

#include "engine/kernels/simd.h"

namespace neuron::engine::NEURON_ISA::vmath {

inline constexpr float kInfinity = __builtin_inff();

// a[0] + x * (a[1] + x * (...)), each step an fma.
template <int N>
INLINE vf polynomial(const float (&a)[N], vf x) {
  vf r = splat(a[N - 1]);
  for (int i = N - 2; i >= 0; --i) r = fma(r, x, a[i]);
  return r;
}

// a * 2^n, rounded once; |n| <= 252. Two factors, because 2^n alone may overflow or be denormal.
INLINE vf scale(vf a, vf n) {
#if defined(__AVX512F__)
  return (vf)_mm512_scalef_ps((__m512)a, (__m512)n);
#else
  const vi k = to_int32(n), half = k >> 1;
  return a * (vf)((half + 127) << 23) * (vf)((k - half + 127) << 23);
#endif
}

struct Reduced {
  vf n, r;  // x = n * ln 2 + r, |r| <= ln 2 / 2
};
INLINE Reduced reduce(vf x) {
  const vf n = round(x * 1.44269504088896341f);
  return {n, fma(n, -0x1.7f7d1cp-20f, fma(n, splat(-0x1.62e400p-1f), x))};  // ln 2 in two parts, the first of 15 bits
}
// exp(r) - 1 - r over r^2.
INLINE vf exp_tail(vf r) {
  constexpr float a[] = {0x1.000000p-1f, 0x1.5554dcp-3f, 0x1.555518p-5f, 0x1.120be2p-7f, 0x1.6d117cp-10f};
  return polynomial(a, r);
}
INLINE vf clamp(vf x, float low, float high) {  // NaN stays
  x = select(x > high, splat(high), x);
  return select(x < low, splat(low), x);
}

INLINE vf exp(vf x) {
  const auto [n, r] = reduce(clamp(x, -104.0f, 89.0f));  // beyond: 0 and infinity
  return scale(fma(r * r, exp_tail(r), r) + 1.0f, n);
}

INLINE vf expm1(vf x) {
  const auto [n, r] = reduce(clamp(x, -18.0f, 89.0f));
  const vf e = fma(r * r, exp_tail(r), r);
  const vf half = scale(splat(0.5f), n);  // of 2^n, which may overflow
  const vf y = 2.0f * fma(e, half, half - 0.5f);
  return copysign(y, x);
}

// log(1 + f) with f in [sqrt(1/2) - 1, sqrt(2) - 1], plus e * ln 2.
INLINE vf log_of_parts(vf f, vf e) {
  constexpr float a[] = {0x1.555554p-2f,  -0x1.fffffcp-3f, 0x1.999d6ep-3f,  -0x1.555b8ap-3f, 0x1.23cf72p-3f,
                         -0x1.fce37ap-4f, 0x1.dec8ccp-4f,  -0x1.d6d10ep-4f, 0x1.1dedf8p-4f};
  const vf square = f * f;
  vf y = square * f * polynomial(a, f);
  y = fma(e, -2.12194440e-4f, y);  // ln 2 = 0.693359375 - 2.12194440e-4
  y = fma(square, -0.5f, y);
  return fma(e, splat(0.693359375f), f + y);
}
// x = m * 2^e with m in [sqrt(1/2), sqrt(2)), for normal x > 0.
struct Parts {
  vf m, e;
};
INLINE Parts split(vf x) {
  const vi e = ((vi)x - 0x3f3504f3) >> 23;
  return {(vf)((vi)x - (e << 23)), to_float(e)};
}
// The results of log(u) outside the positive numbers.
INLINE vf log_special(vf y, vf u) {
  y = select(u == kInfinity, u, y);
  y = select(u == 0.0f, splat(-kInfinity), y);
  return select((u < 0.0f) | (u != u), splat(__builtin_nanf("")), y);
}

INLINE vf log(vf x) {
  const vi tiny = x < 0x1p-126f;
  const auto [m, e] = split(select(tiny, x * 0x1p23f, x));
  return log_special(log_of_parts(m - 1.0f, select(tiny, e - 23.0f, e)), x);
}

INLINE vf log1p(vf x) {
  const vf u = 1.0f + x;
  const auto [m, e] = split(u);
  // What the sum lost, scaled like m.
  const vf lost = select(x > 1.0f, 1.0f - (u - x), x - (u - 1.0f));
  const vf f = select(e == 0.0f, x, m - 1.0f + scale(lost, -e));
  const vf y = log_special(log_of_parts(f, e), u);
  return select(abs(x) < 0x1p-25f, x, y);  // also keeps -0
}

INLINE vf tanh(vf x) {
  constexpr float a[] = {-0x1.555556p-2f, 0x1.1110e8p-3f,  -0x1.ba0816p-5f,
                         0x1.649e5ep-6f,  -0x1.1121c4p-7f, 0x1.2b3d96p-9f};
  const vf square = x * x, magnitude = abs(x);
  const vf small = fma(square * x, polynomial(a, square), x);
  const auto [n, r] = reduce(clamp(magnitude, 0.0f, 10.0f) * 2.0f);
  const vf e = scale(fma(r * r, exp_tail(r), r) + 1.0f, n);
  const vf large = 1.0f - 2.0f / (e + 1.0f);
  return copysign(select(magnitude < 0.625f, small, select(x != x, x, large)), x);
}

INLINE vf logistic(vf x) {
  const vf e = exp(-abs(x));
  return select(x < 0.0f, e, splat(1.0f)) / (1.0f + e);
}

INLINE vf erf(vf x) {
  constexpr float a[] = {0x1.06eba8p-3f, -0x1.812744p-2f,  0x1.ce2e24p-4f, -0x1.b810b0p-6f,
                         0x1.54dc0ep-8f, -0x1.aaee42p-11f, 0x1.5f0f98p-14f};
  // log(erfc(x)) on [0.92, 3.93]
  constexpr float b[] = {0x1.555614p-12f, -0x1.2158ccp+0f, -0x1.437734p-1f,  -0x1.c32506p-4f, 0x1.b18b90p-6f,
                         -0x1.38f5eep-8f, 0x1.3ad642p-11f, -0x1.8659acp-15f, 0x1.be65dcp-20f};
  const vf magnitude = abs(x), square = x * x;
  const vf small = fma(x, polynomial(a, square), x);
  const auto [n, r] = reduce(polynomial(b, clamp(magnitude, 0.0f, 3.93f)));
  const vf large = 1.0f - scale(fma(r * r, exp_tail(r), r) + 1.0f, n);
  return select(magnitude < 0.92f, small, select(x != x, x, copysign(large, x)));
}

}  // namespace neuron::engine::NEURON_ISA::vmath
