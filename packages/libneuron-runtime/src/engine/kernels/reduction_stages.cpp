// Reductions. The order of every sum is part of the format (schema, tile_mode): sixteen accumulators along a row,
// joined pairwise.
#include <utility>

#include "engine/kernels/integer.h"
#include "engine/kernels/stage.h"

namespace neuron::engine::NEURON_ISA {
namespace {

template <class V>
INLINE V floor_of();
template <>
INLINE vf floor_of() {
  return splat(-__builtin_inff());
}
template <>
INLINE vi floor_of() {
  return splat(INT32_MIN);
}
template <>
INLINE vl floor_of() {
  return splat(INT64_MIN);
}
template <class V>
INLINE V ceiling_of();
template <>
INLINE vf ceiling_of() {
  return splat(__builtin_inff());
}
template <>
INLINE vi ceiling_of() {
  return splat(INT32_MAX);
}
template <>
INLINE vl ceiling_of() {
  return splat(INT64_MAX);
}

template <class V>
struct Sum {
  static INLINE V identity() { return V{}; }
  static INLINE V apply(V a, V b) { return a + b; }
};
template <class V>
struct Prod {
  static INLINE V identity() { return splat(static_cast<Element<V>>(1)); }
  static INLINE V apply(V a, V b) { return a * b; }
};
template <class V>
struct Max {
  static INLINE V identity() { return floor_of<V>(); }
  static INLINE V apply(V a, V b) { return NEURON_ISA::maximum(a, b); }
};
template <class V>
struct Min {
  static INLINE V identity() { return ceiling_of<V>(); }
  static INLINE V apply(V a, V b) { return NEURON_ISA::minimum(a, b); }
};
template <>
struct Max<vi> {
  static INLINE vi identity() { return floor_of<vi>(); }
  static INLINE vi apply(vi a, vi b) { return a > b ? a : b; }
};
template <>
struct Min<vi> {
  static INLINE vi identity() { return ceiling_of<vi>(); }
  static INLINE vi apply(vi a, vi b) { return a < b ? a : b; }
};
template <>
struct Max<vl> {
  static INLINE vl identity() { return floor_of<vl>(); }
  static INLINE vl apply(vl a, vl b) { return a > b ? a : b; }
};
template <>
struct Min<vl> {
  static INLINE vl identity() { return ceiling_of<vl>(); }
  static INLINE vl apply(vl a, vl b) { return a < b ? a : b; }
};
template <class V>
struct And {
  static INLINE V identity() { return ~V{}; }
  static INLINE V apply(V a, V b) { return a & b; }
};
template <class V>
struct Or {
  static INLINE V identity() { return V{}; }
  static INLINE V apply(V a, V b) { return a | b; }
};

template <class V>
constexpr int kCount = static_cast<int>(sizeof(V) / sizeof(Element<V>));  // elements of a vector
template <class V>
constexpr int kLaneVectors = kLanes / kCount<V>;
template <class V>
constexpr int kGroupVectors = kGroup / kCount<V>;

template <class V>
struct Mask;
template <>
struct Mask<vf> {
  using type = vi;
};
template <>
struct Mask<vi> {
  using type = vi;
};
template <>
struct Mask<vl> {
  using type = vl;
};
template <class V>
INLINE typename Mask<V>::type count_up(int64_t first) {
  using M = typename Mask<V>::type;
  M r;
  for (int k = 0; k < kCount<V>; ++k) r[k] = static_cast<Element<M>>(first + k);
  return r;
}
// Lanes first ... of a group of which `valid` elements exist.
template <class V>
INLINE typename Mask<V>::type exists(int first, int64_t valid) {
  return count_up<V>(first) < splat(static_cast<Element<typename Mask<V>::type>>(valid));
}

// The group's vectors: the accumulator, or 64-bit elements in memory.
template <class V>
INLINE void fetch(STAGE_ARGS, V (&x)[kGroupVectors<V>]) {
  if constexpr (sizeof(Element<V>) == 8) {
    const char* p = ADDRESS(a);
    for (int k = 0; k < kGroupVectors<V>; ++k) x[k] = load<V>(p + k * sizeof(V));
  } else {
    x[0] = (V)a0, x[1] = (V)a1, x[2] = (V)a2, x[3] = (V)a3;
  }
}

template <class V, class Op>
void row_stage(STAGE_ARGS) {
  V x[kGroupVectors<V>];
  fetch<V>(c, s, i, a0, a1, a2, a3, x);
  if (i + kGroup > c->n) {
    for (int k = 0; k < kGroupVectors<V>; ++k) {
      x[k] = select(exists<V>(k * kCount<V>, static_cast<int64_t>(c->n - i)), x[k], Op::identity());
    }
  }
  char* lanes = c->slots[s->dst];
  V lane[kLaneVectors<V>];
  for (int k = 0; k < kLaneVectors<V>; ++k) lane[k] = load<V>(lanes + k * sizeof(V));
  for (int k = 0; k < kGroupVectors<V>; ++k) lane[k % kLaneVectors<V>] = Op::apply(lane[k % kLaneVectors<V>], x[k]);
  for (int k = 0; k < kLaneVectors<V>; ++k) store(lanes + k * sizeof(V), lane[k]);
  NEXT;
}
template <class V, class Op>
void column_stage(STAGE_ARGS) {
  V x[kGroupVectors<V>];
  fetch<V>(c, s, i, a0, a1, a2, a3, x);
  char* p = ADDRESS(dst);
  for (int k = 0; k < kGroupVectors<V>; ++k) store(p + k * sizeof(V), Op::apply(load<V>(p + k * sizeof(V)), x[k]));
  NEXT;
}

template <int Width, class V, int... J>
INLINE V rotated(V x, std::integer_sequence<int, J...>) {
  return __builtin_shufflevector(x, x, ((J + Width) % int{sizeof...(J)})...);
}
// One step inside a vector: element j takes in element j + Width.
template <class V, class Op, int Width>
INLINE V join_halves(V x) {
  if constexpr (Width == 0) {
    return x;
  } else {
    const V other = rotated<Width>(x, std::make_integer_sequence<int, kCount<V>>());
    return join_halves<V, Op, Width / 2>(Op::apply(x, other));
  }
}
// 8 + 8, 4 + 4, 2 + 2, 1 + 1: first between vectors, then inside one.
template <class V, class Op>
INLINE Element<V> join_lanes(V (&lane)[kLaneVectors<V>]) {
#pragma GCC unroll 4
  for (int count = kLaneVectors<V> / 2; count >= 1; count /= 2) {
    for (int j = 0; j < count; ++j) lane[j] = Op::apply(lane[j], lane[j + count]);
  }
  return join_halves<V, Op, kCount<V> / 2>(lane[0])[0];
}
template <class V, class Op>
void fold(const char* lanes, const int32_t*, char* value, int64_t*) {
  V lane[kLaneVectors<V>];
  for (int k = 0; k < kLaneVectors<V>; ++k) lane[k] = load<V>(lanes + k * sizeof(V));
  store(value, join_lanes<V, Op>(lane));
}
// `Rows` of them side by side: a row's additions wait for each other, those of different rows do not.
template <class V, class Op, int Rows>
INLINE void rows_together(const char* from, int64_t stride, int64_t columns, char* values) {
  V lane[Rows][kLaneVectors<V>];
  for (int r = 0; r < Rows; ++r) {
    for (int k = 0; k < kLaneVectors<V>; ++k) lane[r][k] = Op::identity();
  }
  const int64_t whole = columns & ~int64_t{kLanes - 1}, row_bytes = stride * static_cast<int64_t>(sizeof(Element<V>));
  for (int64_t i = 0; i < whole; i += kLanes) {
    const char* p = from + i * sizeof(Element<V>);
#pragma GCC unroll 4
    for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 8
      for (int k = 0; k < kLaneVectors<V>; ++k)
        lane[r][k] = Op::apply(lane[r][k], load<V>(p + r * row_bytes + k * sizeof(V)));
    }
  }
  for (int r = 0; r < Rows; ++r) {
    for (int k = 0; whole < columns && k < kLaneVectors<V>; ++k) {
      // Reads past the row, never past the buffer, which has room for whole groups.
      const V x = load<V>(from + r * row_bytes + whole * sizeof(Element<V>) + k * sizeof(V));
      lane[r][k] = Op::apply(lane[r][k], select(exists<V>(k * kCount<V>, columns - whole), x, Op::identity()));
    }
    store(values + r * sizeof(Element<V>), join_lanes<V, Op>(lane[r]));
  }
}
template <class V, class Op>
void rows(const char* from, int64_t rows, int64_t stride, int64_t columns, char* values, int64_t*) {
  constexpr int kTogether = kLaneVectors<V> == 1 ? 4 : 2;
  int64_t r = 0;
  const auto at = [&] { return from + r * stride * static_cast<int64_t>(sizeof(Element<V>)); };
  for (; r + kTogether <= rows; r += kTogether)
    rows_together<V, Op, kTogether>(at(), stride, columns, values + r * sizeof(Element<V>));
  for (; r < rows; ++r) rows_together<V, Op, 1>(at(), stride, columns, values + r * sizeof(Element<V>));
}

// ARGMAX and ARGMIN: `indices` runs beside the accumulators (slot c).
struct Larger {
  template <class T>
  static INLINE auto beats(T x, T best) {
    return (x > best) | ((x != x) & (best == best));
  }
};
struct Smaller {
  template <class T>
  static INLINE auto beats(T x, T best) {
    return (x < best) | ((x != x) & (best == best));
  }
};

template <class V, class Op>
void arg_row_stage(STAGE_ARGS) {
  V x[kGroupVectors<V>];
  fetch<V>(c, s, i, a0, a1, a2, a3, x);
  const int64_t valid = static_cast<int64_t>(c->n - i), position = c->position + static_cast<int64_t>(i);
  if constexpr (sizeof(Element<V>) == 4) {
    char *values = c->slots[s->dst], *indices = c->slots[s->c];
    V best[kLaneVectors<V>];
    vi at[kLaneVectors<V>];
    for (int k = 0; k < kLaneVectors<V>; ++k)
      best[k] = load<V>(values + k * sizeof(V)), at[k] = load<vi>(indices + k * sizeof(vi));
    for (int k = 0; k < 4; ++k) {
      const int j = k % kLaneVectors<V>;
      vi better = Op::beats(x[k], best[j]);
      if (valid < kGroup) better &= exists<V>(k * kCount<V>, valid);
      best[j] = select(better, x[k], best[j]);
      at[j] = select(better, count_up<vi>(position + k * kWidth), at[j]);
    }
    for (int k = 0; k < kLaneVectors<V>; ++k)
      store(values + k * sizeof(V), best[k]), store(indices + k * sizeof(vi), at[k]);
  } else {
    auto* values = reinterpret_cast<int64_t*>(c->slots[s->dst]);
    auto* indices = reinterpret_cast<int32_t*>(c->slots[s->c]);
    const auto* p = reinterpret_cast<const int64_t*>(x);
    for (int64_t j = 0; j < kGroup && j < valid; ++j) {
      if (Op::beats(p[j], values[j % kLanes])) {
        values[j % kLanes] = p[j];
        indices[j % kLanes] = static_cast<int32_t>(position + j);
      }
    }
  }
  NEXT;
}
template <class V, class Op>
void arg_column_stage(STAGE_ARGS) {
  V x[kGroupVectors<V>];
  fetch<V>(c, s, i, a0, a1, a2, a3, x);
  char *values = ADDRESS(dst), *indices = ADDRESS(c);
  if constexpr (sizeof(Element<V>) == 4) {
    const vi position = splat(static_cast<int32_t>(c->position));
    for (int k = 0; k < 4; ++k) {
      const V best = load<V>(values + k * sizeof(V));
      const vi better = Op::beats(x[k], best);
      store(values + k * sizeof(V), select(better, x[k], best));
      store(indices + k * sizeof(vi), select(better, position, load<vi>(indices + k * sizeof(vi))));
    }
  } else {
    const auto* p = reinterpret_cast<const int64_t*>(x);
    auto* v = reinterpret_cast<int64_t*>(values);
    auto* n = reinterpret_cast<int32_t*>(indices);
    for (int j = 0; j < kGroup; ++j) {
      if (Op::beats(p[j], v[j])) v[j] = p[j], n[j] = static_cast<int32_t>(c->position);
    }
  }
  NEXT;
}
template <class T, class Op>
INLINE void arg_fold_lanes(const T* values, const int32_t* indices, T* value, int64_t* index) {
  T best = values[0];
  int32_t at = indices[0];
  for (int k = 1; k < kLanes; ++k) {
    const bool tie = !Op::beats(values[k], best) && !Op::beats(best, values[k]);
    if (Op::beats(values[k], best) || (tie && indices[k] < at)) best = values[k], at = indices[k];
  }
  *value = best;
  *index = at;
}
template <class V, class Op>
void arg_fold(const char* lanes, const int32_t* indices, char* value, int64_t* index) {
  using T = Element<V>;
  arg_fold_lanes<T, Op>(reinterpret_cast<const T*>(lanes), indices, reinterpret_cast<T*>(value), index);
}
template <class V, class Op>
void arg_rows(const char* from, int64_t rows, int64_t stride, int64_t columns, char* values, int64_t* indices) {
  using T = Element<V>;
  const T* p = reinterpret_cast<const T*>(from);
  for (int64_t r = 0; r < rows; ++r, p += stride) {
    T best = p[0];
    int64_t at = 0;
    for (int64_t i = 1; i < columns; ++i) {
      if (Op::beats(p[i], best)) best = p[i], at = i;
    }
    reinterpret_cast<T*>(values)[r] = best;
    indices[r] = at;
  }
}

// acc[c] = acc[c] (op) from[r][c], row after row.
template <class V, class Op>
void columns(const char* from, int64_t rows, int64_t columns, char* acc, int32_t*, int64_t) {
  const int64_t bytes = columns * static_cast<int64_t>(sizeof(Element<V>));
  for (int64_t at = 0; at < bytes; at += sizeof(V)) {
    V x = load<V>(acc + at);
    for (int64_t r = 0; r < rows; ++r)
      x = Op::apply(x, load<V>(from + r * bytes + at));  // lanes past the row are not used
    store(acc + at, x);
  }
}
template <class V, class Op>
void arg_columns(const char* from, int64_t rows, int64_t columns, char* acc, int32_t* indices, int64_t position) {
  using T = Element<V>;
  const T* p = reinterpret_cast<const T*>(from);
  T* best = reinterpret_cast<T*>(acc);
  for (int64_t r = 0; r < rows; ++r, p += columns) {
    for (int64_t i = 0; i < columns; ++i) {
      if (Op::beats(p[i], best[i])) best[i] = p[i], indices[i] = static_cast<int32_t>(position + r);
    }
  }
}

template <class V, class Op>
void add(Isa& t, Micro op, Kind kind) {
  const int r = reduction_index(op), k = static_cast<int>(kind);
  t.reduce_row[r][k] = erase(row_stage<V, Op>);
  t.reduce_column[r][k] = erase(column_stage<V, Op>);
  t.fold[r][k] = fold<V, Op>;
  t.reduce_rows[r][k] = rows<V, Op>;
  t.reduce_columns[r][k] = columns<V, Op>;
}
template <class V, class Op>
void add_arg(Isa& t, Micro op, Kind kind) {
  const int r = reduction_index(op), k = static_cast<int>(kind);
  t.reduce_row[r][k] = erase(arg_row_stage<V, Op>);
  t.reduce_column[r][k] = erase(arg_column_stage<V, Op>);
  t.fold[r][k] = arg_fold<V, Op>;
  t.reduce_rows[r][k] = arg_rows<V, Op>;
  t.reduce_columns[r][k] = arg_columns<V, Op>;
}
template <class V>
void add_kind(Isa& t, Kind kind) {
  add<V, Sum<V>>(t, Micro::REDUCE_SUM, kind);
  add<V, Prod<V>>(t, Micro::REDUCE_PROD, kind);
  add<V, Max<V>>(t, Micro::REDUCE_MAX, kind);
  add<V, Min<V>>(t, Micro::REDUCE_MIN, kind);
  add_arg<V, Larger>(t, Micro::REDUCE_ARGMAX, kind);
  add_arg<V, Smaller>(t, Micro::REDUCE_ARGMIN, kind);
}

}  // namespace

void add_reduction_stages(Isa& t) {
  add_kind<vf>(t, Kind::F32);
  add_kind<vi>(t, Kind::I32);
  add_kind<vl>(t, Kind::I64);
  add<vi, And<vi>>(t, Micro::REDUCE_AND, Kind::I32);
  add<vi, Or<vi>>(t, Micro::REDUCE_OR, Kind::I32);
}

}  // namespace neuron::engine::NEURON_ISA
