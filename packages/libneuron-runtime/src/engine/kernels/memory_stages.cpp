// The accumulator from and to contiguous memory of every dtype, and the end of a sequence.
#include "engine/kernels/half.h"
#include "engine/kernels/stage.h"

namespace neuron::engine::NEURON_ISA {
namespace {

typedef uint8_t v8 __attribute__((vector_size(kWidth)));
typedef int8_t v8s __attribute__((vector_size(kWidth)));
typedef int16_t v16s __attribute__((vector_size(kWidth * 2)));

// One struct a storage type: `get` reads a vector of kWidth elements, `put` writes one.
struct Uint8 {
  static constexpr int kBytes = 1;
  static INLINE vf get(const char* p) { return (vf) __builtin_convertvector(load<v8>(p), vi); }
  static INLINE void put(char* p, vf a) { store(p, __builtin_convertvector((vi)a, v8)); }
};
struct Int8 {
  static constexpr int kBytes = 1;
  static INLINE vf get(const char* p) { return (vf) __builtin_convertvector(load<v8s>(p), vi); }
  static INLINE void put(char* p, vf a) { store(p, __builtin_convertvector((vi)a, v8)); }
};
struct Bool {
  static constexpr int kBytes = 1;
  static INLINE vf get(const char* p) { return (vf)((__builtin_convertvector(load<v8>(p), vi) != 0) & 1); }
  static INLINE void put(char* p, vf a) { store(p, __builtin_convertvector(((vi)a != 0) & 1, v8)); }
};
struct Int16 {
  static constexpr int kBytes = 2;
  static INLINE vf get(const char* p) { return (vf) __builtin_convertvector(load<v16s>(p), vi); }
  static INLINE void put(char* p, vf a) { store(p, __builtin_convertvector((vi)a, v16s)); }
};
struct Bf16 {
  static constexpr int kBytes = 2;
  static INLINE vf get(const char* p) { return from_bf16(load<v16>(p)); }
  static INLINE void put(char* p, vf a) { store(p, __builtin_convertvector(round_bf16(a), v16)); }
};
struct Fp16 {
  static constexpr int kBytes = 2;
  static INLINE vf get(const char* p) { return from_fp16(load<v16>(p)); }
  static INLINE void put(char* p, vf a) { store(p, to_fp16(a)); }
};
struct Word {  // FP32 and INT32
  static constexpr int kBytes = 4;
  static INLINE vf get(const char* p) { return load<vf>(p); }
  static INLINE void put(char* p, vf a) { store(p, a); }
};
struct Fp64 {
  static constexpr int kBytes = 8;
  static INLINE vf get(const char* p) { return narrow({load<vd>(p), load<vd>(p + sizeof(vd))}); }
  static INLINE void put(char* p, vf a) {
    const vd2 w = widen(a);
    store(p, w.low);
    store(p + sizeof(vd), w.high);
  }
};

template <class T>
void load_stage(STAGE_ARGS) {
  const char* p = ADDRESS(a);
  a0 = T::get(p);
  a1 = T::get(p + kWidth * T::kBytes);
  a2 = T::get(p + kWidth * T::kBytes * 2);
  a3 = T::get(p + kWidth * T::kBytes * 3);
  NEXT;
}
template <class T>
void store_stage(STAGE_ARGS) {
  char* p = ADDRESS(dst);
  T::put(p, a0);
  T::put(p + kWidth * T::kBytes, a1);
  T::put(p + kWidth * T::kBytes * 2, a2);
  T::put(p + kWidth * T::kBytes * 3, a3);
  NEXT;
}

#if defined(__x86_64__)
INLINE void stream(char* p, vf a) {
#if defined(__AVX512F__)
  _mm512_stream_ps(reinterpret_cast<float*>(p), (__m512)a);
#elif defined(__AVX2__)
  _mm256_stream_ps(reinterpret_cast<float*>(p), (__m256)a);
#else
  _mm_stream_ps(reinterpret_cast<float*>(p), (__m128)a);
#endif
}
#if defined(__AVX2__)
template <class T>  // a 16-bit type
void store_half_streaming(STAGE_ARGS) {
  char* p = ADDRESS(dst);
  const vf acc[4] = {a0, a1, a2, a3};
  for (int k = 0; k < 4; ++k, p += kWidth * 2) {
    v16 x;
    T::put(reinterpret_cast<char*>(&x), acc[k]);
#if defined(__AVX512F__)
    _mm256_stream_si256(reinterpret_cast<__m256i*>(p), (__m256i)x);
#else
    _mm_stream_si128(reinterpret_cast<__m128i*>(p), (__m128i)x);
#endif
  }
  NEXT;
}
#endif
void store_streaming(STAGE_ARGS) {
  char* p = ADDRESS(dst);
  stream(p, a0);
  stream(p + sizeof(vf), a1);
  stream(p + sizeof(vf) * 2, a2);
  stream(p + sizeof(vf) * 3, a3);
  NEXT;
}
#endif

void prefetch(STAGE_ARGS) {
  const char* p = ADDRESS(a) + s->aux * size_t{64};
  for (int k = 0; k < kGroup * 4; k += 64) __builtin_prefetch(p + k, 0, 2);
  NEXT;
}

void broadcast(STAGE_ARGS) {
  a0 = a1 = a2 = a3 = (vf)splat(number<int32_t>(c->slots[s->b]));
  NEXT;
}

void next(STAGE_ARGS) {
  i += kGroup;
  if (i >= c->n) return;
  s = c->first;
  TAIL_CALL return reinterpret_cast<StageFunction>(s->stage)(c, s, i, a0, a1, a2, a3);
}

void run(Context* c, size_t start) {
  if (start >= c->n) return;
  const vf zero{};
  reinterpret_cast<StageFunction>(c->first->stage)(c, c->first, start, zero, zero, zero, zero);
}

template <class T>
void add(Isa& t, Dtype dtype) {
  t.load[dtype_index(dtype)] = erase(load_stage<T>);
  t.store[dtype_index(dtype)] = erase(store_stage<T>);
}

}  // namespace

void add_memory_stages(Isa& t) {
  add<Uint8>(t, Dtype::UINT8);
  add<Int8>(t, Dtype::INT8);
  add<Bool>(t, Dtype::BOOL);
  add<Int16>(t, Dtype::INT16);
  add<Bf16>(t, Dtype::BF16);
  add<Fp16>(t, Dtype::FP16);
  add<Word>(t, Dtype::FP32);
  add<Word>(t, Dtype::INT32);
  add<Fp64>(t, Dtype::FP64);
#if defined(__x86_64__)
  t.store_streaming[dtype_index(Dtype::FP32)] = erase(store_streaming);
  t.store_streaming[dtype_index(Dtype::INT32)] = erase(store_streaming);
#if defined(__AVX2__)
  t.store_streaming[dtype_index(Dtype::BF16)] = erase(store_half_streaming<Bf16>);
  t.store_streaming[dtype_index(Dtype::FP16)] = erase(store_half_streaming<Fp16>);
#endif
#endif
  t.prefetch = erase(prefetch);
  t.broadcast = erase(broadcast);
  t.next = erase(next);
  t.run = run;
}

}  // namespace neuron::engine::NEURON_ISA
