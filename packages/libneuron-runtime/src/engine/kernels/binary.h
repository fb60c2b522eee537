// Stages with two operands on 32-bit kinds, from a struct Op with `apply(V, V)`. The result may be a vector of the
// other kind.
#pragma once

#include "engine/kernels/stage.h"

namespace neuron::engine::NEURON_ISA {

template <class V, class Op, Form F>
void binary(STAGE_ARGS) {
  V x[4] = {(V)a0, (V)a1, (V)a2, (V)a3}, y[4] = {(V)a0, (V)a1, (V)a2, (V)a3};
  if constexpr (F == Form::VA || F == Form::VV || F == Form::VS) {
    const char* p = ADDRESS(a);
    for (int k = 0; k < 4; ++k) x[k] = load<V>(p + k * sizeof(V));
  }
  if constexpr (F == Form::SA || F == Form::SV) {
    const V v = splat(number<Element<V>>(c->slots[s->a]));
    for (int k = 0; k < 4; ++k) x[k] = v;
  }
  if constexpr (F == Form::AV || F == Form::VV || F == Form::SV) {
    const char* p = ADDRESS(b);
    for (int k = 0; k < 4; ++k) y[k] = load<V>(p + k * sizeof(V));
  }
  if constexpr (F == Form::AS || F == Form::VS) {
    const V v = splat(number<Element<V>>(c->slots[s->b]));
    for (int k = 0; k < 4; ++k) y[k] = v;
  }
  a0 = (vf)Op::apply(x[0], y[0]);
  a1 = (vf)Op::apply(x[1], y[1]);
  a2 = (vf)Op::apply(x[2], y[2]);
  a3 = (vf)Op::apply(x[3], y[3]);
  NEXT;
}

template <class V, class Op>
void add_binary(Isa& t, Micro op, Kind kind) {
  Stage* row = t.micro[static_cast<int>(op)][static_cast<int>(kind)];
  row[static_cast<int>(Form::AV)] = erase(binary<V, Op, Form::AV>);
  row[static_cast<int>(Form::VA)] = erase(binary<V, Op, Form::VA>);
  row[static_cast<int>(Form::AS)] = erase(binary<V, Op, Form::AS>);
  row[static_cast<int>(Form::SA)] = erase(binary<V, Op, Form::SA>);
  row[static_cast<int>(Form::VV)] = erase(binary<V, Op, Form::VV>);
  row[static_cast<int>(Form::VS)] = erase(binary<V, Op, Form::VS>);
  row[static_cast<int>(Form::SV)] = erase(binary<V, Op, Form::SV>);
  row[static_cast<int>(Form::AA)] = erase(binary<V, Op, Form::AA>);
}

template <class V, class Op>
void unary(STAGE_ARGS) {
  a0 = (vf)Op::apply((V)a0);
  a1 = (vf)Op::apply((V)a1);
  a2 = (vf)Op::apply((V)a2);
  a3 = (vf)Op::apply((V)a3);
  NEXT;
}

template <class V, class Op>
void add_unary(Isa& t, Micro op, Kind kind) {
  t.micro[static_cast<int>(op)][static_cast<int>(kind)][static_cast<int>(Form::A)] = erase(unary<V, Op>);
}

}  // namespace neuron::engine::NEURON_ISA
