// Conversions between float and the 16-bit formats, to nearest even. A NaN stays a NaN, made quiet.
#pragma once

#include "engine/kernels/simd.h"

namespace neuron::engine::NEURON_ISA {

typedef uint16_t v16 __attribute__((vector_size(kWidth * 2)));

// Bits of the nearest bf16, in the low half of each lane. (The processor's vcvtneps2bf16 would flush denormals.)
INLINE vu round_bf16(vf a) {
  const vu bits = (vu)a;
  const vu rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  return (vu)select(a != a, (vi)((bits >> 16) | 0x40), (vi)rounded);
}

INLINE vf from_bf16(v16 h) { return (vf)(__builtin_convertvector(h, vu) << 16); }

INLINE v16 to_fp16(vf a) {
#if defined(__AVX512F__)
  return (v16)_mm512_cvtps_ph((__m512)a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#elif defined(__F16C__)
  return (v16)_mm256_cvtps_ph((__m256)a, _MM_FROUND_TO_NEAREST_INT);
#elif defined(__aarch64__)
  return (v16)vcvt_f16_f32((float32x4_t)a);
#else
  const vu bits = (vu)a & 0x7fffffff, sign = ((vu)a >> 16) & 0x8000;
  const vu normal = (bits + 0xfff + ((bits >> 13) & 1) - 0x38000000) >> 13;
  const vu small = (vu)((vf)bits + 0.5f) - 0x3f000000;  // 0.5 has the ulp of the smallest half
  vu r = (vu)select((vi)bits >= 0x38800000, (vi)normal, (vi)small);
  r = (vu)select((vi)bits >= 0x477ff000, splat(0x7c00), (vi)r);
  r = (vu)select((vi)bits > 0x7f800000, (vi)(((bits >> 13) & 0x3ff) | 0x7e00), (vi)r);
  return __builtin_convertvector(r | sign, v16);
#endif
}

INLINE vf from_fp16(v16 h) {
#if defined(__AVX512F__)
  return (vf)_mm512_cvtph_ps((__m256i)h);
#elif defined(__F16C__)
  return (vf)_mm256_cvtph_ps((__m128i)h);
#elif defined(__aarch64__)
  return (vf)vcvt_f32_f16((float16x4_t)h);
#else
  const vu bits = __builtin_convertvector(h, vu), magnitude = (bits & 0x7fff) << 13;
  vu r = (vu)((vf)magnitude * 0x1p112f);  // also makes denormals normal
  const vu special = magnitude | 0x7f800000;
  r = (vu)select((vi)magnitude >= 0x0f800000, (vi)special, (vi)r);
  r = (vu)select((vi)magnitude > 0x0f800000, (vi)(r | 0x400000), (vi)r);
  return (vf)(r | ((bits & 0x8000) << 16));
#endif
}

INLINE vf round_fp16(vf a) { return from_fp16(to_fp16(a)); }

}  // namespace neuron::engine::NEURON_ISA
