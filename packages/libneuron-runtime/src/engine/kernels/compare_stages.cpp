// Comparisons and selections on the 32-bit kinds, IS_FINITE, and conversions between F32 and I32.
#include "engine/kernels/binary.h"

namespace neuron::engine::NEURON_ISA {
namespace {

template <class V>
struct Eq {
  static INLINE vi apply(V a, V b) { return (vi)(a == b) & 1; }
};
template <class V>
struct Ne {
  static INLINE vi apply(V a, V b) { return (vi)(a != b) & 1; }
};
template <class V>
struct Lt {
  static INLINE vi apply(V a, V b) { return (vi)(a < b) & 1; }
};
template <class V>
struct Le {
  static INLINE vi apply(V a, V b) { return (vi)(a <= b) & 1; }
};
template <class V>
struct Gt {
  static INLINE vi apply(V a, V b) { return (vi)(a > b) & 1; }
};
template <class V>
struct Ge {
  static INLINE vi apply(V a, V b) { return (vi)(a >= b) & 1; }
};
struct IsFinite {
  static INLINE vi apply(vf a) { return (((vi)a & 0x7f800000) != 0x7f800000) & 1; }
};

template <class V>
void add_comparisons(Isa& t, Kind kind) {
  add_binary<V, Eq<V>>(t, Micro::EQ, kind);
  add_binary<V, Ne<V>>(t, Micro::NE, kind);
  add_binary<V, Lt<V>>(t, Micro::LT, kind);
  add_binary<V, Le<V>>(t, Micro::LE, kind);
  add_binary<V, Gt<V>>(t, Micro::GT, kind);
  add_binary<V, Ge<V>>(t, Micro::GE, kind);
}

// F: bit 0: b is one number; bit 1: c is one number.
template <int F>
void choose(STAGE_ARGS) {
  vi m[4] = {(vi)a0, (vi)a1, (vi)a2, (vi)a3};
  const char* x = F & 1 ? c->slots[s->b] : ADDRESS(b);
  const char* y = F & 2 ? c->slots[s->c] : ADDRESS(c);
  vf r[4];
  for (int k = 0; k < 4; ++k) {
    const vf left = F & 1 ? (vf)splat(number<int32_t>(x)) : load<vf>(x + k * sizeof(vf));
    const vf right = F & 2 ? (vf)splat(number<int32_t>(y)) : load<vf>(y + k * sizeof(vf));
    r[k] = m[k] != 0 ? left : right;
  }
  a0 = r[0], a1 = r[1], a2 = r[2], a3 = r[3];
  NEXT;
}

void float_to_int(STAGE_ARGS) {
  a0 = (vf)to_int32(a0), a1 = (vf)to_int32(a1), a2 = (vf)to_int32(a2), a3 = (vf)to_int32(a3);
  NEXT;
}
void int_to_float(STAGE_ARGS) {
  a0 = to_float((vi)a0), a1 = to_float((vi)a1), a2 = to_float((vi)a2), a3 = to_float((vi)a3);
  NEXT;
}

}  // namespace

void add_compare_stages(Isa& t) {
  add_comparisons<vf>(t, Kind::F32);
  add_comparisons<vi>(t, Kind::I32);
  add_unary<vf, IsFinite>(t, Micro::IS_FINITE, Kind::F32);
  t.select[0] = erase(choose<0>);
  t.select[1] = erase(choose<1>);
  t.select[2] = erase(choose<2>);
  t.select[3] = erase(choose<3>);
  t.convert[0][1] = erase(float_to_int);
  t.convert[1][0] = erase(int_to_float);
}

}  // namespace neuron::engine::NEURON_ISA
