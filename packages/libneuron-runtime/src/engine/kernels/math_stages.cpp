// Transcendental functions.
#include "engine/kernels/binary.h"
#include "engine/vmath/exponential.h"
#include "engine/vmath/special.h"

namespace neuron::engine::NEURON_ISA {
namespace {

#define UNARY(Name, function)                                   \
  struct Name {                                                 \
    static INLINE vf apply(vf x) { return vmath::function(x); } \
  }
UNARY(Exp, exp);
UNARY(Expm1, expm1);
UNARY(Log, log);
UNARY(Log1p, log1p);
UNARY(Tanh, tanh);
UNARY(Logistic, logistic);
UNARY(Erf, erf);
#undef UNARY

// Long functions are called, once a vector: four inlined copies would be larger than what they save.
#define UNARY(Name, function)                                                       \
  __attribute__((noinline)) vf call_##function(vf x) { return vmath::function(x); } \
  struct Name {                                                                     \
    static INLINE vf apply(vf x) { return call_##function(x); }                     \
  }
UNARY(Sin, sin);
UNARY(Cos, cos);
UNARY(Tan, tan);
UNARY(Erfc, erfc);
UNARY(ErfInv, erf_inv);
UNARY(Lgamma, lgamma);
UNARY(Digamma, digamma);
UNARY(Asin, asin);
UNARY(Acos, acos);
UNARY(Atan, atan);
UNARY(Sinh, sinh);
UNARY(Cosh, cosh);
UNARY(Asinh, asinh);
UNARY(Acosh, acosh);
UNARY(Atanh, atanh);
#undef UNARY

__attribute__((noinline)) vf call_pow(vf x, vf y) { return vmath::pow(x, y); }
__attribute__((noinline)) vf call_atan2(vf y, vf x) { return vmath::atan2(y, x); }
struct Pow {
  static INLINE vf apply(vf a, vf b) { return call_pow(a, b); }
};
struct Atan2 {
  static INLINE vf apply(vf a, vf b) { return call_atan2(a, b); }
};

}  // namespace

void add_math_stages(Isa& t) {
  add_unary<vf, Exp>(t, Micro::EXP, Kind::F32);
  add_unary<vf, Expm1>(t, Micro::EXPM1, Kind::F32);
  add_unary<vf, Log>(t, Micro::LOG, Kind::F32);
  add_unary<vf, Log1p>(t, Micro::LOG1P, Kind::F32);
  add_unary<vf, Tanh>(t, Micro::TANH, Kind::F32);
  add_unary<vf, Logistic>(t, Micro::LOGISTIC, Kind::F32);
  add_unary<vf, Erf>(t, Micro::ERF, Kind::F32);
  add_unary<vf, Sin>(t, Micro::SIN, Kind::F32);
  add_unary<vf, Cos>(t, Micro::COS, Kind::F32);
  add_unary<vf, Tan>(t, Micro::TAN, Kind::F32);
  add_unary<vf, Erfc>(t, Micro::ERFC, Kind::F32);
  add_unary<vf, ErfInv>(t, Micro::ERF_INV, Kind::F32);
  add_unary<vf, Lgamma>(t, Micro::LGAMMA, Kind::F32);
  add_unary<vf, Digamma>(t, Micro::DIGAMMA, Kind::F32);
  add_unary<vf, Asin>(t, Micro::ASIN, Kind::F32);
  add_unary<vf, Acos>(t, Micro::ACOS, Kind::F32);
  add_unary<vf, Atan>(t, Micro::ATAN, Kind::F32);
  add_unary<vf, Sinh>(t, Micro::SINH, Kind::F32);
  add_unary<vf, Cosh>(t, Micro::COSH, Kind::F32);
  add_unary<vf, Asinh>(t, Micro::ASINH, Kind::F32);
  add_unary<vf, Acosh>(t, Micro::ACOSH, Kind::F32);
  add_unary<vf, Atanh>(t, Micro::ATANH, Kind::F32);
  add_binary<vf, Pow>(t, Micro::POW, Kind::F32);
  add_binary<vf, Atan2>(t, Micro::ATAN2, Kind::F32);
}

}  // namespace neuron::engine::NEURON_ISA
