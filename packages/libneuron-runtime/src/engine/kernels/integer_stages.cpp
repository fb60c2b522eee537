// I32 arithmetic. Compiled with -fwrapv: overflow wraps.
#include "engine/kernels/binary.h"
#include "engine/kernels/integer.h"

namespace neuron::engine::NEURON_ISA {
namespace {

struct WrapInt8 {
  static INLINE vi apply(vi a) { return (a << 24) >> 24; }
};
struct WrapUint8 {
  static INLINE vi apply(vi a) { return a & 0xff; }
};
struct WrapInt16 {
  static INLINE vi apply(vi a) { return (a << 16) >> 16; }
};

// Remembers a zero among the divisors of real elements, then computes.
template <class Op, Form F>
void divide(STAGE_ARGS) {
  int32_t x[kGroup], y[kGroup];
  const vf acc[4] = {a0, a1, a2, a3};
  constexpr bool left_acc = F == Form::AV || F == Form::AS || F == Form::AA;
  constexpr bool right_acc = F == Form::VA || F == Form::SA || F == Form::AA;
  if constexpr (left_acc) __builtin_memcpy(x, acc, sizeof x);
  if constexpr (right_acc) __builtin_memcpy(y, acc, sizeof y);
  if constexpr (F == Form::VA || F == Form::VV || F == Form::VS) __builtin_memcpy(x, ADDRESS(a), sizeof x);
  if constexpr (F == Form::AV || F == Form::VV || F == Form::SV) __builtin_memcpy(y, ADDRESS(b), sizeof y);
  for (int k = 0; k < kGroup; ++k) {
    const int32_t left = F == Form::SA || F == Form::SV ? number<int32_t>(c->slots[s->a]) : x[k];
    const int32_t right = F == Form::AS || F == Form::VS ? number<int32_t>(c->slots[s->b]) : y[k];
    if (right == 0 && i + k < c->n) c->fault = 1;
    x[k] = Op::one(left, right);
  }
  a0 = load<vf>(x), a1 = load<vf>(x + kWidth), a2 = load<vf>(x + 2 * kWidth), a3 = load<vf>(x + 3 * kWidth);
  NEXT;
}

template <class Op>
void add_division(Isa& t, Micro op) {
  Stage* row = t.micro[static_cast<int>(op)][static_cast<int>(Kind::I32)];
  row[static_cast<int>(Form::AV)] = erase(divide<Op, Form::AV>);
  row[static_cast<int>(Form::VA)] = erase(divide<Op, Form::VA>);
  row[static_cast<int>(Form::AS)] = erase(divide<Op, Form::AS>);
  row[static_cast<int>(Form::SA)] = erase(divide<Op, Form::SA>);
  row[static_cast<int>(Form::VV)] = erase(divide<Op, Form::VV>);
  row[static_cast<int>(Form::VS)] = erase(divide<Op, Form::VS>);
  row[static_cast<int>(Form::SV)] = erase(divide<Op, Form::SV>);
  row[static_cast<int>(Form::AA)] = erase(divide<Op, Form::AA>);
}

}  // namespace

void add_integer_stages(Isa& t) {
  add_binary<vi, integer::Add>(t, Micro::ADD, Kind::I32);
  add_binary<vi, integer::Sub>(t, Micro::SUB, Kind::I32);
  add_binary<vi, integer::Mul>(t, Micro::MUL, Kind::I32);
  add_binary<vi, integer::Max>(t, Micro::MAX, Kind::I32);
  add_binary<vi, integer::Min>(t, Micro::MIN, Kind::I32);
  add_binary<vi, integer::Pow>(t, Micro::POW, Kind::I32);
  add_binary<vi, integer::And>(t, Micro::AND, Kind::I32);
  add_binary<vi, integer::Or>(t, Micro::OR, Kind::I32);
  add_binary<vi, integer::Xor>(t, Micro::XOR, Kind::I32);
  add_binary<vi, integer::Shl>(t, Micro::SHL, Kind::I32);
  add_binary<vi, integer::Shr>(t, Micro::SHR, Kind::I32);
  add_binary<vi, integer::Shru>(t, Micro::SHRU, Kind::I32);
  add_division<integer::Div>(t, Micro::DIV);
  add_division<integer::Rem>(t, Micro::REM);
  add_unary<vi, integer::Not>(t, Micro::NOT, Kind::I32);
  add_unary<vi, integer::Neg>(t, Micro::NEG, Kind::I32);
  add_unary<vi, integer::Abs>(t, Micro::ABS, Kind::I32);
  add_unary<vi, integer::Sign>(t, Micro::SIGN, Kind::I32);
  add_unary<vi, WrapInt8>(t, Micro::WRAP_INT8, Kind::I32);
  add_unary<vi, WrapUint8>(t, Micro::WRAP_UINT8, Kind::I32);
  add_unary<vi, WrapInt16>(t, Micro::WRAP_INT16, Kind::I32);
}

}  // namespace neuron::engine::NEURON_ISA
