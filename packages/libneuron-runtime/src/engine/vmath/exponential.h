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

// The element `index` (0 to 15) of a table, for every lane.
INLINE vf look_up(const float (&table)[16], vi index) {
#if defined(__AVX512F__)
  return (vf)_mm512_permutexvar_ps((__m512i)index, _mm512_loadu_ps(table));
#elif defined(__AVX2__)
  const __m256 low = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table), (__m256i)index);
  const __m256 high = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table + 8), (__m256i)index);
  return (vf)_mm256_blendv_ps(low, high, (__m256)(index << 28));
#else
  vf r;
  for (int i = 0; i < kWidth; ++i) r[i] = table[index[i]];
  return r;
#endif
}

// By 16 intervals: erf(c + d) - erf(c) is d times a polynomial, |d| <= 0.127. Around 0 the first term is d itself.
INLINE vf erf(vf x) {
  constexpr float kInterval = 0.25390625f;  // 15 of them and a half end where erf rounds to 1
  alignas(64) static constexpr float a[7][16] = {
      {0, 0x1.1f31b2p-2f, 0x1.0dff5p-1f, 0x1.6fef76p-1f, 0x1.b2bb68p-1f, 0x1.dad53ep-1f, 0x1.f00614p-1f, 0x1.f9e15cp-1f,
       0x1.fdea6ep-1f, 0x1.ff5eb6p-1f, 0x1.ffd4cap-1f, 0x1.fff5cp-1f, 0x1.fffddap-1f, 0x1.ffff9ap-1f, 0x1.fffffp-1f,
       0x1.fffffep-1f},
      {0x1.06eba8p-3f, 0x1.0ed47ap+0f, 0x1.be6872p-1f, 0x1.436686p-1f, 0x1.9be438p-2f, 0x1.cd22a8p-3f, 0x1.c5d04ap-4f,
       0x1.8894ecp-5f, 0x1.2a875ap-6f, 0x1.8f182cp-8f, 0x1.d4fed8p-10f, 0x1.e477d6p-12f, 0x1.b7e952p-14f,
       0x1.5f2178p-16f, 0x1.ecba06p-19f, 0x1.2fe3eep-21f},
      {-0x1.0c91fp-25f, -0x1.130fccp-2f, -0x1.c56214p-2f, -0x1.ecae3p-2f, -0x1.a253c8p-2f, -0x1.24b68p-2f,
       -0x1.59ada8p-3f, -0x1.5ce058p-4f, -0x1.2f3178p-5f, -0x1.c7ff1ep-7f, -0x1.29b3c4p-8f, -0x1.5246a8p-10f,
       -0x1.4f16b2p-12f, -0x1.21c05p-14f, -0x1.b5df28p-17f, -0x1.21591ap-19f},
      {-0x1.812686p-2f, -0x1.3a8b5ap-2f, -0x1.203bfcp-3f, 0x1.14b066p-5f, 0x1.23e2dap-3f, 0x1.55c3dp-3f, 0x1.13720ep-3f,
       0x1.5bf496p-4f, 0x1.68d2b2p-5f, 0x1.3a1592p-6f, 0x1.d0d58ap-8f, 0x1.26bbcp-9f, 0x1.41f7d6p-11f, 0x1.3020b4p-13f,
       0x1.f23088p-16f, 0x1.628e48p-18f},
      {-0x1.926022p-14f, 0x1.073ca4p-3f, 0x1.776fbcp-3f, 0x1.2e1b22p-3f, 0x1.055248p-4f, -0x1.5cc2cp-7f, -0x1.7a562p-5f,
       -0x1.81d8dp-5f, -0x1.09650ap-5f, -0x1.1ade0cp-6f, -0x1.eae58ap-8f, -0x1.6339c6p-9f, -0x1.b2ae4cp-11f,
       -0x1.c5b01p-13f, -0x1.964dbp-15f, -0x1.398c6ep-17f},
      {0x1.d4245ep-4f, 0x1.4267eep-4f, 0x1.503e1cp-8f, -0x1.bf7f9ap-5f, -0x1.17d87ap-4f, -0x1.6d4956p-5f,
       -0x1.9405cp-7f, 0x1.017b12p-7f, 0x1.ab2844p-7f, 0x1.48555ap-7f, 0x1.681526p-8f, 0x1.366214p-9f, 0x1.b58c8cp-11f,
       0x1.0176b8p-12f, 0x1.001c4cp-14f, 0x1.b238d2p-17f},
      {-0x1.4dbb46p-7f, -0x1.4daeb4p-5f, -0x1.95691ep-5f, -0x1.9e9c76p-6f, 0x1.90b8f4p-8f, 0x1.61ee32p-6f,
       0x1.2e85fcp-6f, 0x1.00fda6p-7f, -0x1.a03242p-13f, -0x1.8b20dep-9f, -0x1.597d3cp-9f, -0x1.818d3cp-10f,
       -0x1.45a8f4p-11f, -0x1.b94c68p-13f, -0x1.ed452cp-15f, -0x1.ce2504p-17f},
  };
  const vf magnitude = select(abs(x) > 3.93f, splat(3.93f), abs(x));  // NaN stays
  const vf n = round(magnitude * (1.0f / kInterval)), d = fma(n, splat(-kInterval), magnitude);
  const vi k = to_int32(n) & 15;  // NaN: some interval
  vf r = look_up(a[6], k);
  for (int i = 5; i > 0; --i) r = fma(r, d, look_up(a[i], k));
  return copysign(fma(d, r, select(n == 0.0f, magnitude, look_up(a[0], k))), x);
}

}  // namespace neuron::engine::NEURON_ISA::vmath
