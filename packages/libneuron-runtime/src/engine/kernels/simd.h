// Vector types of the instruction set that this object is compiled for, and the few operations that GCC's vector
// extensions lack. Only kernels/*.cpp include this. Everything lives in a namespace of its own per instruction set
// (NEURON_ISA, set by CMake), and nothing here may instantiate a template of the standard library: the linker keeps one
// copy of such a function, and the copy compiled for a newer processor must never be the one that an older processor
// runs.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#ifndef NEURON_ISA
#error "kernels are compiled through neuron_engine_isa() in CMakeLists.txt"
#endif

namespace neuron::engine::NEURON_ISA {

#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
inline constexpr int kVectorBytes = 32;
#else
inline constexpr int kVectorBytes = 16;
#endif
inline constexpr int kWidth = kVectorBytes / 4;  // 32-bit elements of a vector
inline constexpr int kGroup = 4 * kWidth;        // elements that a stage handles in its four vector arguments

typedef float vf __attribute__((vector_size(kVectorBytes)));
typedef int32_t vi __attribute__((vector_size(kVectorBytes)));
typedef uint32_t vu __attribute__((vector_size(kVectorBytes)));
typedef double vd __attribute__((vector_size(kVectorBytes)));
typedef int64_t vl __attribute__((vector_size(kVectorBytes)));
typedef uint64_t vul __attribute__((vector_size(kVectorBytes)));
typedef float vhf __attribute__((vector_size(kVectorBytes / 2)));
typedef int32_t vhi __attribute__((vector_size(kVectorBytes / 2)));

#define INLINE inline __attribute__((always_inline))

template <class V>
INLINE V load(const void* p) {
  V v;
  __builtin_memcpy(&v, p, sizeof(V));
  return v;
}
template <class V>
INLINE void store(void* p, V v) {
  __builtin_memcpy(p, &v, sizeof(V));
}

INLINE vf splat(float x) { return x - vf{}; }  // x - 0 is x for every x, and one broadcast
INLINE vi splat(int32_t x) { return x - vi{}; }
INLINE vd splat(double x) { return x - vd{}; }
INLINE vl splat(int64_t x) { return x - vl{}; }

// m: all bits of a lane set or none.
INLINE vf select(vi m, vf a, vf b) { return m ? a : b; }
INLINE vi select(vi m, vi a, vi b) { return m ? a : b; }
INLINE vd select(vl m, vd a, vd b) { return m ? a : b; }
INLINE vl select(vl m, vl a, vl b) { return m ? a : b; }

INLINE bool any(vi m) {
#if defined(__AVX512F__)
  return _mm512_test_epi32_mask((__m512i)m, (__m512i)m) != 0;
#elif defined(__AVX2__)
  return _mm256_movemask_ps((__m256)m) != 0;
#elif defined(__x86_64__)
  return _mm_movemask_ps((__m128)m) != 0;
#elif defined(__aarch64__)
  return vmaxvq_u32((uint32x4_t)m) != 0;
#else
  for (int i = 0; i < kWidth; ++i) {
    if (m[i]) return true;
  }
  return false;
#endif
}

INLINE vf fma(vf a, vf b, vf c) {
#if defined(__AVX512F__)
  return (vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__FMA__)
  return (vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined(__aarch64__)
  return (vf)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
  // In double the product is exact. The sum is rounded to odd, which makes its second rounding, to float, the only one
  // that counts.
  vhf r[2];
  for (int h = 0; h < 2; ++h) {
    const auto half = [h](vf v) {
      vhf x;
      __builtin_memcpy(&x, reinterpret_cast<const char*>(&v) + h * sizeof x, sizeof x);
      return __builtin_convertvector(x, vd);
    };
    const vd p = half(a) * half(b), w = half(c), sum = p + w, t = sum - p;
    const vd lost = (p - (sum - t)) + (w - t);
    const vl bits = (vl)sum, inexact = (lost > 0.0) | (lost < 0.0), even = (bits & 1) == 0;
    const vl away = (lost > 0.0) == (sum > 0.0);  // what was lost would make the magnitude larger
    const vl odd = bits + (away ? vl{} + 1 : vl{} - 1);
    r[h] = __builtin_convertvector((vd)((inexact & even) ? odd : bits), vhf);
  }
  vf result;
  __builtin_memcpy(&result, r, sizeof result);
  return result;
#endif
}
INLINE vd fma(vd a, vd b, vd c) {
#if defined(__AVX512F__)
  return (vd)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif defined(__FMA__)
  return (vd)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#elif defined(__aarch64__)
  return (vd)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
#else
  vd r;
  for (int i = 0; i < kWidth / 2; ++i) r[i] = __builtin_fma(a[i], b[i], c[i]);
  return r;
#endif
}
INLINE vf fma(float a, vf b, vf c) { return fma(splat(a), b, c); }
INLINE vf fma(vf a, vf b, float c) { return fma(a, b, splat(c)); }
INLINE vf fma(vf a, float b, vf c) { return fma(a, splat(b), c); }
INLINE vd fma(vd a, vd b, double c) { return fma(a, b, splat(c)); }
INLINE vd fma(vd a, double b, vd c) { return fma(a, splat(b), c); }

INLINE vf sqrt(vf a) {
#if defined(__AVX512F__)
  return (vf)_mm512_sqrt_ps((__m512)a);
#elif defined(__AVX2__)
  return (vf)_mm256_sqrt_ps((__m256)a);
#elif defined(__x86_64__)
  return (vf)_mm_sqrt_ps((__m128)a);
#elif defined(__aarch64__)
  return (vf)vsqrtq_f32((float32x4_t)a);
#else
  vf r;
  for (int i = 0; i < kWidth; ++i) r[i] = __builtin_sqrtf(a[i]);
  return r;
#endif
}
INLINE vd sqrt(vd a) {
#if defined(__AVX512F__)
  return (vd)_mm512_sqrt_pd((__m512d)a);
#elif defined(__AVX2__)
  return (vd)_mm256_sqrt_pd((__m256d)a);
#elif defined(__x86_64__)
  return (vd)_mm_sqrt_pd((__m128d)a);
#elif defined(__aarch64__)
  return (vd)vsqrtq_f64((float64x2_t)a);
#else
  vd r;
  for (int i = 0; i < kWidth / 2; ++i) r[i] = __builtin_sqrt(a[i]);
  return r;
#endif
}

INLINE vi sign_bit(vf a) { return (vi)a & (int32_t)0x80000000; }
INLINE vf abs(vf a) { return (vf)((vi)a & 0x7fffffff); }
INLINE vd abs(vd a) { return (vd)((vl)a & 0x7fffffffffffffff); }
INLINE vf copysign(vf magnitude, vf sign) { return (vf)(((vi)magnitude & 0x7fffffff) | sign_bit(sign)); }
INLINE vd copysign(vd magnitude, vd sign) {
  return (vd)(((vl)magnitude & 0x7fffffffffffffff) | ((vl)sign & (int64_t)0x8000000000000000));
}

// To the nearest integer, ties to even.
INLINE vf round(vf a) {
#if defined(__AVX512F__)
  return (vf)_mm512_roundscale_ps((__m512)a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#elif defined(__AVX2__)
  return (vf)_mm256_round_ps((__m256)a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#elif defined(__aarch64__)
  return (vf)vrndnq_f32((float32x4_t)a);
#else
  const vf magic = copysign(splat(8388608.0f), a);  // 2^23: the sum has no fraction bits
  const vf r = copysign((a + magic) - magic, a);
  return select(abs(a) < 8388608.0f, r, a);
#endif
}
INLINE vf floor(vf a) {
#if defined(__AVX512F__)
  return (vf)_mm512_roundscale_ps((__m512)a, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
#elif defined(__AVX2__)
  return (vf)_mm256_round_ps((__m256)a, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
#elif defined(__aarch64__)
  return (vf)vrndmq_f32((float32x4_t)a);
#else
  const vf r = round(a);
  return copysign(select(r > a, r - 1.0f, r), a);
#endif
}
INLINE vf ceil(vf a) {
#if defined(__AVX512F__)
  return (vf)_mm512_roundscale_ps((__m512)a, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC);
#elif defined(__AVX2__)
  return (vf)_mm256_round_ps((__m256)a, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC);
#elif defined(__aarch64__)
  return (vf)vrndpq_f32((float32x4_t)a);
#else
  const vf r = round(a);
  return copysign(select(r < a, r + 1.0f, r), a);
#endif
}
INLINE vf trunc(vf a) {
#if defined(__AVX512F__)
  return (vf)_mm512_roundscale_ps((__m512)a, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
#elif defined(__AVX2__)
  return (vf)_mm256_round_ps((__m256)a, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
#elif defined(__aarch64__)
  return (vf)vrndq_f32((float32x4_t)a);
#else
  const vf r = round(abs(a));
  return copysign(select(r > abs(a), r - 1.0f, r), a);
#endif
}
INLINE vd round(vd a) {
#if defined(__AVX512F__)
  return (vd)_mm512_roundscale_pd((__m512d)a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#elif defined(__AVX2__)
  return (vd)_mm256_round_pd((__m256d)a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#elif defined(__aarch64__)
  return (vd)vrndnq_f64((float64x2_t)a);
#else
  const vd magic = copysign(splat(4503599627370496.0), a);
  const vd r = copysign((a + magic) - magic, a);
  return select(abs(a) < 4503599627370496.0, r, a);
#endif
}

// The larger and the smaller number; NaN if either is NaN; the second of two equal numbers.
INLINE vf maximum(vf a, vf b) {
#if defined(__AVX512F__)
  const __m512 x = (__m512)a, m = _mm512_max_ps(x, (__m512)b);  // b if either is NaN
  return (vf)_mm512_mask_mov_ps(m, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), x);
#elif defined(__AVX2__)
  const __m256 x = (__m256)a, m = _mm256_max_ps(x, (__m256)b);
  return (vf)_mm256_blendv_ps(m, x, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
#else
  return ((a > b) | (a != a)) ? a : b;
#endif
}
INLINE vf minimum(vf a, vf b) {
#if defined(__AVX512F__)
  const __m512 x = (__m512)a, m = _mm512_min_ps(x, (__m512)b);
  return (vf)_mm512_mask_mov_ps(m, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), x);
#elif defined(__AVX2__)
  const __m256 x = (__m256)a, m = _mm256_min_ps(x, (__m256)b);
  return (vf)_mm256_blendv_ps(m, x, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
#else
  return ((a < b) | (a != a)) ? a : b;
#endif
}

// Toward zero; a number out of range or NaN gives the smallest integer.
INLINE vi to_int32(vf a) {
#if defined(__AVX512F__)
  return (vi)_mm512_cvttps_epi32((__m512)a);
#elif defined(__AVX2__)
  return (vi)_mm256_cvttps_epi32((__m256)a);
#elif defined(__x86_64__)
  return (vi)_mm_cvttps_epi32((__m128)a);
#else
  const vi good = (a >= -2147483648.0f) & (a < 2147483648.0f);
  const vi r = __builtin_convertvector(select(good, a, vf{}), vi);
  return select(good, r, splat((int32_t)0x80000000));
#endif
}
INLINE vf to_float(vi a) { return __builtin_convertvector(a, vf); }

// The low and the high half of a vector's elements as doubles, and back.
INLINE vhf low_half(vf a) {
  vhf h;
  __builtin_memcpy(&h, &a, sizeof h);
  return h;
}
INLINE vhf high_half(vf a) {
  vhf h;
  __builtin_memcpy(&h, reinterpret_cast<const char*>(&a) + sizeof h, sizeof h);
  return h;
}
struct vd2 {
  vd low, high;
};
INLINE vd2 widen(vf a) { return {__builtin_convertvector(low_half(a), vd), __builtin_convertvector(high_half(a), vd)}; }
INLINE vf narrow(vd2 a) {
  const vhf low = __builtin_convertvector(a.low, vhf), high = __builtin_convertvector(a.high, vhf);
  vf r;
  __builtin_memcpy(&r, &low, sizeof low);
  __builtin_memcpy(reinterpret_cast<char*>(&r) + sizeof low, &high, sizeof high);
  return r;
}

}  // namespace neuron::engine::NEURON_ISA
