// Powers, the error function's relatives and the gamma function's.
#pragma once

#include "engine/vmath/trigonometric.h"

namespace neuron::engine::NEURON_ISA::vmath {

INLINE vf pow(vf x, vf y) {
  return in_double(x, y, [](vd a, vd b) {
    constexpr double infinity = __builtin_inf();
    const vd m = abs(a);
    const vl regular = (m > 0.0) & (m < infinity);
    vd product = b * log_wide(select(regular, m, splat(1.0)));
    product = select(m == 0.0, select(b == 0.0, vd{}, b * -infinity), product);
    product = select(m == infinity, select(b == 0.0, vd{}, b * infinity), product);
    product = select((m == 1.0) & (abs(b) == infinity), vd{}, product);
    vd r = exp_bounded(product);
    r = select_if(product == infinity, infinity, r);
    r = select_if(product == -infinity, 0.0, r);
    const vl integral = (round(b) == b) | (abs(b) >= 0x1p53);
    const vl odd = integral & (round(b * 0.5) != b * 0.5) & (abs(b) < 0x1p53);
    r = select(((vl)a < 0) & odd, -r, r);
    r = select((a < 0.0) & (a > -infinity) & ~integral, splat(__builtin_nan("")), r);
    r = select((a != a) | (b != b), a + b, r);
    return select_if((b == 0.0) | (a == 1.0), 1.0, r);
  });
}

INLINE vf erfc(vf x) {
  return in_double(x, [](vd v) {
    // erfc(x) exp(x^2) as a polynomial of (x - 3) / (x + 3) on [0, 10.2]
    constexpr double c[] = {0.17900115118139015,    -0.32623356004303017,   0.245603801712282,
                            -0.15011593650157343,   0.07166583719933006,    -0.024392499292518445,
                            0.004269136336932409,   0.0007077460707564966,  -0.0005970623883661048,
                            4.5257741875494824e-05, 6.406166223227524e-05,  -1.286702991895783e-05,
                            -8.003177369955628e-06, 2.1156449154408867e-06, 1.3054461401366475e-06,
                            -2.386266004936222e-07, -2.577318728884344e-07, -4.772320802000446e-08};
    const vd m = select(abs(v) > 10.2, splat(10.2), abs(v));
    const vd y = polynomial(c, (m - 3.0) / (m + 3.0)) * exp_wide(-m * m);
    return select(v != v, v, select(v < 0.0, 2.0 - y, y));
  });
}

INLINE vf erf_inv(vf x) {
  const vf y = in_double(x, [](vd v) {
    // erf_inv(x) / x as polynomials of w = -log(1 - x^2): of w - 2.5 up to w = 5, of sqrt(w) - 3 above
    constexpr double a[] = {1.501409351110792,       0.24664027673055933,    -0.00417731772599164,
                            -0.0012527078260762582,  0.000218250273934182,   -4.9962227613667115e-06,
                            -3.416636103077881e-06,  4.788369412627382e-07,  1.3429287142216358e-08,
                            -1.0906655743110653e-08, 9.024881447909744e-10,  1.2982446043371449e-10,
                            -3.0122346021629576e-11, -3.388817519066577e-13, 4.384995311926027e-13};
    constexpr double b[] = {2.8329767984874894,     1.0016752748168056,      0.009445547436959197,
                            -0.007643742649139147,  0.005684730167820234,    -0.003559334518296714,
                            0.0014868109704312183,  -0.00014731048133294821, -0.0002930511414069868,
                            0.00020485702017231935, -3.0619490553913536e-05, -2.701112138267946e-05,
                            1.0847820981066107e-05};
    const vd m = abs(v);
    const vd w = -log_wide((1.0 - v) * (1.0 + v));
    vd r = v * select(w < 5.0, polynomial(a, w - 2.5), polynomial(b, sqrt(w) - 3.0));
    r = select(m == 1.0, v * __builtin_inf(), r);
    return select(m <= 1.0, r, splat(__builtin_nan("")));
  });
  return select(x == 0.0f, x, y);
}

// log(gamma(x)) for x > 0.
INLINE vd lgamma_positive(vd x) {
  constexpr double infinity = __builtin_inf();
  // lgamma(1 + e) / e and lgamma(2 + e) / e, which keep the zeros at 1 and 2 exact
  constexpr double one[] = {-0.5772156649015321,  0.822467033424105,   -0.40068563438710764, 0.27058080843359417,
                            -0.2073855509132387,  0.16955717579794358, -0.14404990687705793, 0.1255097804608049,
                            -0.1113338165667041,  0.10009403402194757, -0.09096438405828708, 0.08350345325984963,
                            -0.07682731636140244, 0.06910650855710139, -0.06655113235534221, 0.08120919421964308,
                            -0.06929206194648578};
  constexpr double two[] = {
      0.42278433509846747,     0.3224670334241133,     -0.06735230105324726,    0.020580808427773427,
      -0.007385551026457134,   0.002890510331240271,   -0.0011927539578885414,  0.0005096695144433164,
      -0.00022315422319648464, 9.945763060805622e-05,  -4.493003264874428e-05,  2.0506392447602183e-05,
      -9.422162328011568e-06,  4.37851476965899e-06,   -2.0912219096676633e-06, 9.445954019435293e-07,
      -3.469385091737478e-07,  2.3166984756038343e-07, -2.2799501440552957e-07, 2.545926106051294e-08,
      6.979578352822279e-08,   2.4233030857690517e-08, -3.625594187714929e-08};
  const vd d = x - 1.0, e = x - 2.0;
  const vd near_one = d * polynomial(one, d) + 0.0, near_two = e * polynomial(two, e) + 0.0;  // +0 at the zeros
  // Stirling's series at x + 8, less the logarithm of the product that leads there.
  const vl shifted = x < 8.0;
  const vd product = x * (x + 1.0) * (x + 2.0) * (x + 3.0) * ((x + 4.0) * (x + 5.0) * (x + 6.0) * (x + 7.0));
  const vd z = select(shifted, x + 8.0, x), inverse = 1.0 / z, square = inverse * inverse;
  constexpr double series[] = {1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680, 1.0 / 1188};
  vd y = fma(z - 0.5, log_wide(z), 0.9189385332046728 - z) + inverse * polynomial(series, square);
  y -= log_wide(select(shifted, product, splat(1.0)));
  y = select((x > 0.75) & (x < 1.25), near_one, y);
  y = select((x >= 1.25) & (x < 2.75), near_two, y);
  return select_if(x == infinity, infinity, y);
}
INLINE vf lgamma(vf x) {
  return in_double(x, [](vd v) {
    constexpr double infinity = __builtin_inf();
    const vl negative = v <= 0.0;
    const vd y = lgamma_positive(select(negative, 1.0 - v, v));
    // Reflection: gamma(x) gamma(1 - x) = pi / sin(pi x)
    const vd fraction = v - round(v);
    const vd sine = abs(select(abs(fraction) > 0.25, cos_core((0.5 - abs(fraction)) * 3.141592653589793),
                               sin_core(fraction * 3.141592653589793)));
    const vd reflected = log_wide(select_if(sine == 0.0, 1.0, 3.141592653589793 / sine)) - y;
    vd r = select(negative, reflected, y);
    r = select_if((negative & (fraction == 0.0)) | (abs(v) == infinity), infinity, r);
    return select(v != v, v, r);
  });
}

INLINE vf digamma(vf x) {
  return in_double(x, [](vd v) {
    constexpr double infinity = __builtin_inf();
    const vl negative = v < 0.0;
    const vd u = select(negative, 1.0 - v, v);
    // Recurrence up to u + 8, then the asymptotic series.
    const vl shifted = u < 8.0;
    vd sum{};
    for (int k = 0; k < 8; ++k) sum += 1.0 / (u + static_cast<double>(k));
    const vd z = select(shifted, u + 8.0, u), inverse = 1.0 / z, square = inverse * inverse;
    constexpr double series[] = {1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240, 1.0 / 132, -691.0 / 32760, 1.0 / 12};
    vd y = log_wide(z) - 0.5 * inverse - square * polynomial(series, square) - select(shifted, sum, vd{});
    // psi(1 - x) - psi(x) = pi / tan(pi x)
    const vd fraction = v - round(v);
    const vl outer = abs(fraction) > 0.25;
    const vd r = select(outer, copysign(0.5 - abs(fraction), fraction), fraction) * 3.141592653589793;
    const vd tangent = sin_core(r) / cos_core(r);
    y = select(negative, y - 3.141592653589793 * select(outer, tangent, 1.0 / tangent), y);
    y = select((negative & (fraction == 0.0)) | (v == -infinity), splat(__builtin_nan("")), y);
    y = select(v == 0.0, copysign(splat(infinity), -v), y);
    return select((v != v) | (v == infinity), v, y);
  });
}

}  // namespace neuron::engine::NEURON_ISA::vmath
