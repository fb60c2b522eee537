// I64: operands and results are vectors in memory, so that these stages leave nothing in the accumulator (comparisons
// and conversions to a 32-bit kind excepted). Compiled with -fwrapv: overflow wraps.
#include "engine/kernels/integer.h"
#include "engine/kernels/stage.h"

namespace neuron::engine::NEURON_ISA {
namespace {

constexpr int kWide = kWidth / 2;         // elements of a vector
constexpr int kVectors = kGroup / kWide;  // vectors of a group

template <Form F>
INLINE vl left(Context* c, const Step* s, size_t i, int k) {
  if constexpr (F == Form::SV) return splat(number<int64_t>(c->slots[s->a]));
  return load<vl>(ADDRESS(a) + k * sizeof(vl));
}
template <Form F>
INLINE vl right(Context* c, const Step* s, size_t i, int k) {
  if constexpr (F == Form::VS) return splat(number<int64_t>(c->slots[s->b]));
  return load<vl>(ADDRESS(b) + k * sizeof(vl));
}

template <class Op, Form F>
void binary_wide(STAGE_ARGS) {
  char* d = ADDRESS(dst);
  for (int k = 0; k < kVectors; ++k) {
    store(d + k * sizeof(vl), (vl)Op::apply(left<F>(c, s, i, k), right<F>(c, s, i, k)));
  }
  NEXT;
}
template <class Op, Form F>
void divide_wide(STAGE_ARGS) {
  char* d = ADDRESS(dst);
  for (int k = 0; k < kVectors; ++k) {
    const vl x = left<F>(c, s, i, k), y = right<F>(c, s, i, k);
    vl r;
    for (int j = 0; j < kWide; ++j) {
      if (y[j] == 0 && i + static_cast<size_t>(k * kWide + j) < c->n) c->fault = 1;
      r[j] = Op::one(x[j] + 0, y[j] + 0);
    }
    store(d + k * sizeof(vl), r);
  }
  NEXT;
}

INLINE vi join(vl low, vl high) {
  const vhi l = __builtin_convertvector(low, vhi), h = __builtin_convertvector(high, vhi);
  vi r;
  __builtin_memcpy(&r, &l, sizeof l);
  __builtin_memcpy(reinterpret_cast<char*>(&r) + sizeof l, &h, sizeof h);
  return r;
}
template <class Op, Form F>
void compare_wide(STAGE_ARGS) {
  vf r[4];
  for (int k = 0; k < 4; ++k) {
    const vl low = Op::apply(left<F>(c, s, i, 2 * k), right<F>(c, s, i, 2 * k));
    const vl high = Op::apply(left<F>(c, s, i, 2 * k + 1), right<F>(c, s, i, 2 * k + 1));
    r[k] = (vf)(join(low, high) & 1);
  }
  a0 = r[0], a1 = r[1], a2 = r[2], a3 = r[3];
  NEXT;
}

template <class Op>
void unary_wide(STAGE_ARGS) {
  char* d = ADDRESS(dst);
  const char* p = ADDRESS(a);
  for (int k = 0; k < kVectors; ++k) store(d + k * sizeof(vl), (vl)Op::apply(load<vl>(p + k * sizeof(vl))));
  NEXT;
}

struct Eq {
  static INLINE vl apply(vl a, vl b) { return a == b; }
};
struct Ne {
  static INLINE vl apply(vl a, vl b) { return a != b; }
};
struct Lt {
  static INLINE vl apply(vl a, vl b) { return a < b; }
};
struct Le {
  static INLINE vl apply(vl a, vl b) { return a <= b; }
};
struct Gt {
  static INLINE vl apply(vl a, vl b) { return a > b; }
};
struct Ge {
  static INLINE vl apply(vl a, vl b) { return a >= b; }
};
struct Copy {
  static INLINE vl apply(vl a) { return a; }
};

// Condition: an I32 vector in memory. F as in compare_stages.cpp.
template <int F>
void choose_wide(STAGE_ARGS) {
  char* d = ADDRESS(dst);
  const char* m = ADDRESS(a);
  const char* x = F & 1 ? c->slots[s->b] : ADDRESS(b);
  const char* y = F & 2 ? c->slots[s->c] : ADDRESS(c);
  for (int k = 0; k < kVectors; ++k) {
    const vl mask = __builtin_convertvector(load<vhi>(m + k * sizeof(vhi)), vl);
    const vl l = F & 1 ? splat(number<int64_t>(x)) : load<vl>(x + k * sizeof(vl));
    const vl r = F & 2 ? splat(number<int64_t>(y)) : load<vl>(y + k * sizeof(vl));
    store(d + k * sizeof(vl), mask != 0 ? l : r);
  }
  NEXT;
}

void broadcast_wide(STAGE_ARGS) {
  char* d = ADDRESS(dst);
  const vl v = splat(number<int64_t>(c->slots[s->b]));
  for (int k = 0; k < kVectors; ++k) store(d + k * sizeof(vl), v);
  NEXT;
}

void float_to_wide(STAGE_ARGS) {
  char* d = ADDRESS(dst);
  const vf acc[4] = {a0, a1, a2, a3};
  for (int k = 0; k < 4; ++k) {
    vl r[2];
    for (int j = 0; j < kWidth; ++j) {
      const float x = acc[k][j];
      const bool good = x >= -0x1p63f && x < 0x1p63f;
      r[j / kWide][j % kWide] = good ? static_cast<int64_t>(good ? x : 0.0f) : INT64_MIN;
    }
    store(d + 2 * k * sizeof(vl), r[0]);
    store(d + (2 * k + 1) * sizeof(vl), r[1]);
  }
  NEXT;
}
void int_to_wide(STAGE_ARGS) {
  char* d = ADDRESS(dst);
  const vf acc[4] = {a0, a1, a2, a3};
  for (int k = 0; k < 4; ++k) {
    store(d + 2 * k * sizeof(vl), __builtin_convertvector((vhi)low_half(acc[k]), vl));
    store(d + (2 * k + 1) * sizeof(vl), __builtin_convertvector((vhi)high_half(acc[k]), vl));
  }
  NEXT;
}
INLINE vf wide_to_float(const char* p) {
  vf r;
  for (int j = 0; j < kWidth; ++j) r[j] = static_cast<float>(number<int64_t>(p + j * 8));
  return r;
}
void wide_to_float(STAGE_ARGS) {
  const char* p = ADDRESS(a);
  a0 = wide_to_float(p);
  a1 = wide_to_float(p + kWidth * 8);
  a2 = wide_to_float(p + kWidth * 16);
  a3 = wide_to_float(p + kWidth * 24);
  NEXT;
}
void wide_to_int(STAGE_ARGS) {
  const char* p = ADDRESS(a);
  vf r[4];
  for (int k = 0; k < 4; ++k) {
    r[k] = (vf)join(load<vl>(p + 2 * k * sizeof(vl)), load<vl>(p + (2 * k + 1) * sizeof(vl)));
  }
  a0 = r[0], a1 = r[1], a2 = r[2], a3 = r[3];
  NEXT;
}

#define ADD_FORMS(stage, op, code)                                                    \
  do {                                                                                \
    Stage* row = t.micro[static_cast<int>(Micro::code)][static_cast<int>(Kind::I64)]; \
    row[static_cast<int>(Form::VV)] = erase(stage<op, Form::VV>);                     \
    row[static_cast<int>(Form::VS)] = erase(stage<op, Form::VS>);                     \
    row[static_cast<int>(Form::SV)] = erase(stage<op, Form::SV>);                     \
  } while (0)
#define ADD_UNARY(op, code) \
  t.micro[static_cast<int>(Micro::code)][static_cast<int>(Kind::I64)][static_cast<int>(Form::A)] = erase(unary_wide<op>)

}  // namespace

void add_wide_stages(Isa& t) {
  ADD_FORMS(binary_wide, integer::Add, ADD);
  ADD_FORMS(binary_wide, integer::Sub, SUB);
  ADD_FORMS(binary_wide, integer::Mul, MUL);
  ADD_FORMS(binary_wide, integer::Max, MAX);
  ADD_FORMS(binary_wide, integer::Min, MIN);
  ADD_FORMS(binary_wide, integer::Pow, POW);
  ADD_FORMS(binary_wide, integer::And, AND);
  ADD_FORMS(binary_wide, integer::Or, OR);
  ADD_FORMS(binary_wide, integer::Xor, XOR);
  ADD_FORMS(binary_wide, integer::Shl, SHL);
  ADD_FORMS(binary_wide, integer::Shr, SHR);
  ADD_FORMS(binary_wide, integer::Shru, SHRU);
  ADD_FORMS(divide_wide, integer::Div, DIV);
  ADD_FORMS(divide_wide, integer::Rem, REM);
  ADD_FORMS(compare_wide, Eq, EQ);
  ADD_FORMS(compare_wide, Ne, NE);
  ADD_FORMS(compare_wide, Lt, LT);
  ADD_FORMS(compare_wide, Le, LE);
  ADD_FORMS(compare_wide, Gt, GT);
  ADD_FORMS(compare_wide, Ge, GE);
  ADD_UNARY(integer::Not, NOT);
  ADD_UNARY(integer::Neg, NEG);
  ADD_UNARY(integer::Abs, ABS);
  ADD_UNARY(integer::Sign, SIGN);
  t.select_wide[0] = erase(choose_wide<0>);
  t.select_wide[1] = erase(choose_wide<1>);
  t.select_wide[2] = erase(choose_wide<2>);
  t.select_wide[3] = erase(choose_wide<3>);
  t.broadcast_wide = erase(broadcast_wide);
  t.copy_wide = erase(unary_wide<Copy>);
  t.convert[0][2] = erase(float_to_wide);
  t.convert[1][2] = erase(int_to_wide);
  t.convert[2][0] = erase(wide_to_float);
  t.convert[2][1] = erase(wide_to_int);
}

}  // namespace neuron::engine::NEURON_ISA
