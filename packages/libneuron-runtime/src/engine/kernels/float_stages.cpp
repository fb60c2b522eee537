// F32 arithmetic that is exact or correctly rounded.
#include "engine/kernels/binary.h"
#include "engine/kernels/floating.h"
#include "engine/kernels/half.h"

namespace neuron::engine::NEURON_ISA {
namespace {

struct Sub {
  static INLINE vf apply(vf a, vf b) { return a - b; }
};
struct Div {
  static INLINE vf apply(vf a, vf b) { return a / b; }
};
struct Rem {  // exact, so that any libm gives the same
  static INLINE vf apply(vf a, vf b) {
    vf r;
    for (int k = 0; k < kWidth; ++k) r[k] = __builtin_fmodf(a[k], b[k]);
    return r;
  }
};

struct Neg {
  static INLINE vf apply(vf a) { return -a; }
};
struct Abs {
  static INLINE vf apply(vf a) { return abs(a); }
};
struct Sign {
  static INLINE vf apply(vf a) { return select((a != a) | (a == 0.0f), a, copysign(splat(1.0f), a)); }
};
struct Floor {
  static INLINE vf apply(vf a) { return floor(a); }
};
struct Ceil {
  static INLINE vf apply(vf a) { return ceil(a); }
};
struct Round {
  static INLINE vf apply(vf a) { return round(a); }
};
struct Trunc {
  static INLINE vf apply(vf a) { return trunc(a); }
};
struct Sqrt {
  static INLINE vf apply(vf a) { return sqrt(a); }
};
struct Rsqrt {
  static INLINE vf apply(vf a) { return 1.0f / sqrt(a); }
};
struct RoundBf16 {
  static INLINE vf apply(vf a) { return (vf)((vi)round_bf16(a) << 16); }
};
struct RoundFp16 {
  static INLINE vf apply(vf a) { return round_fp16(a); }
};

}  // namespace

void add_float_stages(Isa& t) {
  add_binary<vf, floating::Add>(t, Micro::ADD, Kind::F32);
  add_binary<vf, Sub>(t, Micro::SUB, Kind::F32);
  add_binary<vf, floating::Mul>(t, Micro::MUL, Kind::F32);
  add_binary<vf, Div>(t, Micro::DIV, Kind::F32);
  add_binary<vf, Rem>(t, Micro::REM, Kind::F32);
  add_binary<vf, floating::Max>(t, Micro::MAX, Kind::F32);
  add_binary<vf, floating::Min>(t, Micro::MIN, Kind::F32);
  add_unary<vf, Neg>(t, Micro::NEG, Kind::F32);
  add_unary<vf, Abs>(t, Micro::ABS, Kind::F32);
  add_unary<vf, Sign>(t, Micro::SIGN, Kind::F32);
  add_unary<vf, Floor>(t, Micro::FLOOR, Kind::F32);
  add_unary<vf, Ceil>(t, Micro::CEIL, Kind::F32);
  add_unary<vf, Round>(t, Micro::ROUND, Kind::F32);
  add_unary<vf, Trunc>(t, Micro::TRUNC, Kind::F32);
  add_unary<vf, Sqrt>(t, Micro::SQRT, Kind::F32);
  add_unary<vf, Rsqrt>(t, Micro::RSQRT, Kind::F32);
  add_unary<vf, RoundBf16>(t, Micro::ROUND_BF16, Kind::F32);
  add_unary<vf, RoundFp16>(t, Micro::ROUND_FP16, Kind::F32);
}

}  // namespace neuron::engine::NEURON_ISA
