#pragma once

#include "engine/vmath/wide.h"

namespace neuron::engine::NEURON_ISA::vmath {

// x = quadrant * pi/2 + r with |r| <= pi/4; the quadrant counts modulo 4.
struct Angle {
  vd r;
  vl quadrant;
};

// For |x| >= 2^20: the fraction of x * 2/pi from 96 bits of 2/pi, chosen by the exponent of x.
inline void reduce_large(float x, double* r, int64_t* quadrant) {
  static const uint32_t two_over_pi[] = {0,          0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0,
                                         0xDB629599, 0x3C439041, 0xFE5163AB, 0xDEBBC561};
  uint32_t bits;
  __builtin_memcpy(&bits, &x, 4);
  const int exponent = static_cast<int>(bits >> 23 & 0xff) - 150;  // x = mantissa * 2^exponent
  const uint64_t mantissa = (bits & 0x7fffff) | 0x800000;
  const int start = exponent - 2 + 32;  // earlier bits of 2/pi contribute multiples of 4
  const int word = start / 32, shift = start % 32;
  const auto take = [&](int k) {
    const uint64_t two = uint64_t{two_over_pi[word + k]} << 32 | two_over_pi[word + k + 1];
    return static_cast<uint32_t>(two << shift >> 32);
  };
  const uint64_t turns =
      (mantissa * take(0) << 32) + mantissa * take(1) + (mantissa * take(2) >> 32);  // of 2 pi, scaled by 2^64
  const uint64_t q = (turns + (uint64_t{1} << 61)) >> 62;
  const double fraction = static_cast<double>(static_cast<int64_t>(turns - (q << 62))) * 0x1p-62 * 1.5707963267948966;
  *r = bits >> 31 ? -fraction : fraction;
  *quadrant = static_cast<int64_t>(bits >> 31 ? -q : q);
}

INLINE Angle reduce_angle(vd x) {
  const vd n = round(x * 0.6366197723675814);
  Angle a{fma(n, -6.123233995736766e-17, fma(n, splat(-1.5707963267948966), x)), {}};
  a.quadrant = (vl)(n + 0x1.8p52);
  const vl large = abs(x) >= 0x1p20;
  for (int k = 0; k < kWidth / 2; ++k) {
    if (!large[k]) continue;
    double r;
    int64_t q;
    const double value = x[k];
    if (value - value != 0) {
      r = __builtin_nan(""), q = 0;
    } else {
      reduce_large(static_cast<float>(value), &r, &q);
    }
    a.r[k] = r, a.quadrant[k] = q;
  }
  return a;
}

INLINE vd sin_wide(vd x, int64_t shift) {
  const Angle a = reduce_angle(x);
  const vl q = a.quadrant + shift;
  const vd y = select((q & 1) != 0, cos_core(a.r), sin_core(a.r));
  return (vd)((vl)y ^ ((q & 2) << 62));
}
INLINE vf sin(vf x) {
  const vf y = in_double(x, [](vd v) { return sin_wide(v, 0); });
  return select(x == 0.0f, x, y);
}
INLINE vf cos(vf x) {
  return in_double(x, [](vd v) { return sin_wide(v, 1); });
}
INLINE vf tan(vf x) {
  const vf y = in_double(x, [](vd v) {
    const Angle a = reduce_angle(v);
    const vd s = sin_core(a.r), c = cos_core(a.r);
    const vl odd = (a.quadrant & 1) != 0;
    return select(odd, -c, s) / select(odd, s, c);
  });
  return select(x == 0.0f, x, y);
}

INLINE vf atan2(vf y, vf x) {
  return in_double(y, x, [](vd a, vd b) { return atan2_wide(a, b); });
}
INLINE vf atan(vf x) {
  return in_double(x, [](vd v) { return atan2_wide(v, splat(1.0)); });
}
INLINE vf asin(vf x) {
  return in_double(x, [](vd v) { return atan2_wide(v, sqrt((1.0 - v) * (1.0 + v))); });
}
INLINE vf acos(vf x) {
  return in_double(x, [](vd v) { return atan2_wide(sqrt((1.0 - v) * (1.0 + v)), v); });
}

INLINE vd exp_bounded(vd x) {  // overflow and underflow of a float
  x = select(x > 200.0, splat(200.0), x);
  return exp_wide(select(x < -200.0, splat(-200.0), x));
}
INLINE vf sinh(vf x) {
  return in_double(x, [](vd v) {
    constexpr double a[] = {1.0, 1.0 / 6, 1.0 / 120, 1.0 / 5040};
    const vd e = exp_bounded(v);
    return select(abs(v) < 0.1, v * polynomial(a, v * v), 0.5 * (e - 1.0 / e));
  });
}
INLINE vf cosh(vf x) {
  return in_double(x, [](vd v) {
    const vd e = exp_bounded(v);
    return 0.5 * (e + 1.0 / e);
  });
}
INLINE vf asinh(vf x) {
  return in_double(x, [](vd v) {
    constexpr double a[] = {1.0, -1.0 / 6, 3.0 / 40, -15.0 / 336};
    const vd m = abs(v);
    const vd y = select(m < 0.05, m * polynomial(a, m * m), log_wide(m + sqrt(m * m + 1.0)));
    return select(m < __builtin_inf(), copysign(y, v), v);
  });
}
INLINE vf acosh(vf x) {
  return in_double(x, [](vd v) {
    const vd y = log_wide(v + sqrt((v - 1.0) * (v + 1.0)));
    return select(v >= 1.0, select(v < __builtin_inf(), y, v), splat(__builtin_nan("")));
  });
}
INLINE vf atanh(vf x) {
  return in_double(x, [](vd v) {
    constexpr double a[] = {1.0, 1.0 / 3, 1.0 / 5, 1.0 / 7, 1.0 / 9};
    const vd m = abs(v);
    vd y = select(m < 0.05, m * polynomial(a, m * m), 0.5 * log_wide((1.0 + m) / (1.0 - m)));
    y = select_if(m == 1.0, __builtin_inf(), y);
    return select(m <= 1.0, copysign(y, v), splat(__builtin_nan("")));
  });
}

}  // namespace neuron::engine::NEURON_ISA::vmath
