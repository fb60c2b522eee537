// Transcendental functions against libm in double or long double, over all magnitudes: errors in units of the last
// place, and the special numbers. The bounds are the schema's.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "builder.h"
#include "engine/isa.h"

namespace neuron::engine::test {
namespace {

using Limits = std::numeric_limits<float>;
constexpr float kInf = Limits::infinity();

double digamma_reference(double x) {
  if (x == 0) return std::copysign(INFINITY, -x);
  if (std::isnan(x) || x == -INFINITY || (x < 0 && x == std::floor(x))) return NAN;
  if (x == INFINITY) return x;
  constexpr long double pi = 3.14159265358979323846264338327950288L;
  long double y = x, r = 0;
  if (y < 0) {
    r = -pi / std::tan(pi * (y - std::round(y)));
    y = 1 - y;
  }
  for (; y < 40; ++y) r -= 1 / y;
  const long double q = 1 / (y * y);
  return static_cast<double>(r + std::log(y) - 0.5L / y -
                             q * (1.0L / 12 - q * (1.0L / 120 - q * (1.0L / 252 - q * (1.0L / 240)))));
}
double erf_inv_reference(double x) {
  if (!(std::fabs(x) < 1)) return std::fabs(x) == 1 ? std::copysign(INFINITY, x) : NAN;
  if (std::fabs(x) < 1e-4)
    return x * 0.88622692545275801365 * (1 + x * x * 0.26179938779914943654);  // sqrt(pi) / 2, pi / 12
  long double z = 0.5L * x;
  for (int i = 0; i < 60; ++i) {
    // Newton on log(1 - |erf|) converges in the tails too.
    const long double tail = std::erfc(std::fabs(z)), want = 1 - std::fabs(static_cast<long double>(x));
    const long double slope = 1.12837916709551257390L * std::exp(-z * z);
    z = std::copysign(std::fabs(z) + (std::log(tail) - std::log(want)) * tail / slope, static_cast<long double>(x));
  }
  return static_cast<double>(z);
}
double logistic_reference(double x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }
double lgamma_reference(double x) { return static_cast<double>(std::lgamma(static_cast<long double>(x))); }

struct Function {
  std::string name;
  Micro op;
  double (*reference)(double);
};
const Function kFunctions[] = {
    {"sqrt", Micro::SQRT, std::sqrt},
    {"rsqrt", Micro::RSQRT, [](double x) { return 1 / std::sqrt(x); }},
    {"exp", Micro::EXP, std::exp},
    {"expm1", Micro::EXPM1, std::expm1},
    {"log", Micro::LOG, std::log},
    {"log1p", Micro::LOG1P, std::log1p},
    {"sin", Micro::SIN, std::sin},
    {"cos", Micro::COS, std::cos},
    {"tan", Micro::TAN, std::tan},
    {"tanh", Micro::TANH, std::tanh},
    {"logistic", Micro::LOGISTIC, logistic_reference},
    {"erf", Micro::ERF, std::erf},
    {"erfc", Micro::ERFC, std::erfc},
    {"erf_inv", Micro::ERF_INV, erf_inv_reference},
    {"lgamma", Micro::LGAMMA, lgamma_reference},
    {"digamma", Micro::DIGAMMA, digamma_reference},
    {"asin", Micro::ASIN, std::asin},
    {"acos", Micro::ACOS, std::acos},
    {"atan", Micro::ATAN, std::atan},
    {"sinh", Micro::SINH, std::sinh},
    {"cosh", Micro::COSH, std::cosh},
    {"asinh", Micro::ASINH, std::asinh},
    {"acosh", Micro::ACOSH, std::acosh},
    {"atanh", Micro::ATANH, std::atanh},
};

std::vector<float> evaluate(Micro op, std::vector<float>& x) {
  std::vector<float> y(x.size());
  const auto n = static_cast<int64_t>(x.size());
  Builder b = Builder::tile({n});
  b.store(b.f32(op, b.load(window(0, Dtype::FP32, {1}))), window(1, Dtype::FP32, {1}));
  b.run({x.data(), y.data()});
  return y;
}

// Distance from the exact value in units of the last place of a float of its size.
double ulps(float got, double exact) {
  const auto rounded = static_cast<float>(exact);
  if (std::isnan(rounded) || std::isnan(got)) return std::isnan(rounded) && std::isnan(got) ? 0 : 1e9;
  if (std::isinf(rounded) || std::isinf(got)) {
    if (rounded == got) return 0;
    return std::isinf(got) && std::signbit(got) == std::signbit(rounded) && std::fabs(exact) > 0.9999995 * Limits::max()
               ? 1
               : 1e9;
  }
  int e;
  std::frexp(std::fabs(exact), &e);
  return std::fabs(static_cast<double>(got) - exact) / std::ldexp(1.0, std::max(e - 24, -149));
}

std::vector<float> arguments() {
  std::vector<float> x;
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 20011)
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  for (float v = -12; v < 12; v += 0.0003f) x.push_back(v);
  for (float v = -1.001f; v < 1.001f; v += 0.00003f) x.push_back(v);
  for (const float v : {0.0f,
                        -0.0f,
                        1.0f,
                        -1.0f,
                        2.0f,
                        0.5f,
                        kInf,
                        -kInf,
                        Limits::quiet_NaN(),
                        Limits::min(),
                        Limits::denorm_min(),
                        -Limits::denorm_min(),
                        Limits::max(),
                        Limits::lowest(),
                        88.72284f,
                        -103.97208f,
                        89.0f,
                        1.4616321f,
                        105615.0f,
                        1e20f}) {
    x.push_back(v);
  }
  return x;
}

TEST_CASE("functions are within the schema's bounds") {
  std::vector<float> x = arguments();
  for (const Function& f : kFunctions) {
    std::vector<double> exact(x.size());
    for (size_t i = 0; i < x.size(); ++i) exact[i] = f.reference(x[i]);
    const IsaList list = available_isas();
    std::vector<float> first;
    for (int s = 0; s < list.count; ++s) {
      use_isa(*list.sets[s]);
      const std::vector<float> y = evaluate(f.op, x);
      double worst = 0;
      float at = 0, got = 0;
      bool signs = true;
      for (size_t i = 0; i < x.size(); ++i) {
        const double e = ulps(y[i], exact[i]);
        if (e > worst) worst = e, at = x[i], got = y[i];
        if (exact[i] == 0) signs &= std::signbit(y[i]) == std::signbit(exact[i]);
      }
      CAPTURE(f.name);
      const std::string isa_name = list.sets[s]->name;
      CAPTURE(isa_name);
      CAPTURE(at);
      CAPTURE(got);
      CHECK(worst <= schema::find(f.op)->ulp);
      CHECK(signs);
      if (s == 0) {
        first = y;
      } else {
        size_t different = 0;
        for (size_t i = 0; i < y.size(); ++i) {
          different += std::bit_cast<uint32_t>(y[i]) != std::bit_cast<uint32_t>(first[i]) &&
                       !(std::isnan(y[i]) && std::isnan(first[i]));
        }
        CHECK(different == 0);
      }
    }
    use_isa(*list.sets[0]);
  }
}

TEST_CASE("pow and atan2") {
  const float values[] = {0.0f,          -0.0f,
                          1.0f,          -1.0f,
                          2.0f,          -2.0f,
                          0.5f,          -0.5f,
                          3.0f,          -3.0f,
                          1.5f,          -1.5f,
                          1e-3f,         1e10f,
                          -1e10f,        1e-40f,
                          -1e-40f,       0.9999999f,
                          16777217.0f,   kInf,
                          -kInf,         Limits::quiet_NaN(),
                          Limits::max(), 100.25f,
                          -7.0f,         8.0f,
                          0.3333f,       -127.0f,
                          1.0000001f};
  std::vector<float> x, y;
  for (const float a : values) {
    for (const float b : values) x.push_back(a), y.push_back(b);
  }
  for (int i = 0; i < 200000; ++i) {
    x.push_back(std::exp(std::fmod(i * 0.61803f, 20.0f) - 10));
    y.push_back(std::fmod(i * 0.3701f, 16.0f) - 8);
  }
  std::vector<float> out(x.size());
  struct {
    Micro op;
    double (*reference)(double, double);
    double bound;
  } const cases[] = {{Micro::POW, std::pow, 1.0}, {Micro::ATAN2, std::atan2, 1.0}};
  for (const auto& c : cases) {
    Builder b = Builder::tile({static_cast<int64_t>(x.size())});
    b.store(b.f32(c.op, b.load(window(0, Dtype::FP32, {1})), b.load(window(1, Dtype::FP32, {1}))),
            window(2, Dtype::FP32, {1}));
    b.run({x.data(), y.data(), out.data()});
    double worst = 0;
    size_t at = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double exact = c.reference(x[i], y[i]);
      double e = ulps(out[i], exact);
      if (exact == 0 && std::signbit(out[i]) != std::signbit(exact)) e = 1e9;
      if (e > worst) worst = e, at = i;
    }
    const std::string name = schema::find(c.op)->name;
    CAPTURE(name);
    CAPTURE(x[at]);
    CAPTURE(y[at]);
    CAPTURE(out[at]);
    CHECK(worst <= c.bound);
  }
}

}  // namespace
}  // namespace neuron::engine::test
