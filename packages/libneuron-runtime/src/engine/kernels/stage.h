// How a stage is written. A stage does its work on one group of elements and calls the next one as its last act, so
// that compilers turn the call into a jump and the accumulator stays in registers (kernels are always compiled with -O2
// or more for that reason).
#pragma once

#include "engine/isa.h"
#include "engine/kernels/simd.h"

namespace neuron::engine::NEURON_ISA {

// a0-a3: the accumulator, elements i to i + kGroup - 1. 32-bit integers travel bit for bit in the same vectors.
#define STAGE_ARGS                                                                                                \
  [[maybe_unused]] Context *c, [[maybe_unused]] const Step *s, [[maybe_unused]] size_t i, [[maybe_unused]] vf a0, \
      [[maybe_unused]] vf a1, [[maybe_unused]] vf a2, [[maybe_unused]] vf a3
using StageFunction = void (*)(Context*, const Step*, size_t, vf, vf, vf, vf);
#if defined(__clang__)
#define TAIL_CALL [[clang::musttail]]
#else
#define TAIL_CALL
#endif
#define NEXT TAIL_CALL return reinterpret_cast<StageFunction>(s[1].stage)(c, s + 1, i, a0, a1, a2, a3)

#define ADDRESS(x) (c->slots[s->x] + i * s->x##_step)

INLINE Stage erase(StageFunction f) { return reinterpret_cast<Stage>(f); }

template <class T>
INLINE T number(const char* p) {
  T x;
  __builtin_memcpy(&x, p, sizeof x);
  return x;
}

template <class V>
struct ElementOf;
template <>
struct ElementOf<vf> {
  using type = float;
};
template <>
struct ElementOf<vi> {
  using type = int32_t;
};
template <>
struct ElementOf<vl> {
  using type = int64_t;
};
template <>
struct ElementOf<vd> {
  using type = double;
};
template <class V>
using Element = typename ElementOf<V>::type;

// Registration of the families, each in its own file.
void add_float_stages(Isa& t);
void add_compare_stages(Isa& t);
void add_integer_stages(Isa& t);
void add_wide_stages(Isa& t);
void add_memory_stages(Isa& t);
void add_reduction_stages(Isa& t);
void add_math_stages(Isa& t);
void add_copies(Isa& t);
void add_philox(Isa& t);
void add_scans(Isa& t);
void add_gemm(Isa& t);
void add_gemm_bf16(Isa& t);

}  // namespace neuron::engine::NEURON_ISA
