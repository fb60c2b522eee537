// One stored element of each dtype: how it becomes a register's number and back. For code that moves few elements or
// none at a time; vectors of them are the business of kernels/.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "engine/instruction.h"

namespace neuron::engine {

inline float half_to_float(uint16_t h) {
  const uint32_t sign = (h & 0x8000u) << 16, magnitude = h & 0x7fffu;
  if (magnitude > 0x7c00) return std::bit_cast<float>(sign | 0x7fc00000u | magnitude << 13);
  if (magnitude == 0x7c00) return std::bit_cast<float>(sign | 0x7f800000u);
  const float f = std::bit_cast<float>(magnitude << 13) * 0x1p112f;  // also makes denormals normal
  return sign ? -f : f;
}
inline uint16_t float_to_half(float f) {
  const uint32_t bits = std::bit_cast<uint32_t>(f), magnitude = bits & 0x7fffffff, sign = bits >> 16 & 0x8000;
  uint32_t h;
  if (magnitude > 0x7f800000) {
    h = (magnitude >> 13 & 0x3ff) | 0x7e00;
  } else if (magnitude >= 0x477ff000) {  // rounds to 65536 or more
    h = 0x7c00;
  } else if (magnitude >= 0x38800000) {
    h = (magnitude + 0xfff + (magnitude >> 13 & 1) - 0x38000000) >> 13;
  } else {
    h = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) -
        0x3f000000;  // 0.5 has the ulp of the smallest half
  }
  return static_cast<uint16_t>(h | sign);
}
inline uint16_t float_to_bf16(float f) {
  const uint32_t bits = std::bit_cast<uint32_t>(f);
  if (f != f) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

template <class S, class R>
struct Plain {
  using Stored = S;
  using Register = R;
  static R get(S x) { return static_cast<R>(x); }
  static S put(R x) { return static_cast<S>(x); }
};
struct Bool {
  using Stored = uint8_t;
  using Register = int32_t;
  static int32_t get(uint8_t x) { return x != 0; }
  static uint8_t put(int32_t x) { return x != 0; }
};
struct Bf16 {
  using Stored = uint16_t;
  using Register = float;
  static float get(uint16_t x) { return std::bit_cast<float>(static_cast<uint32_t>(x) << 16); }
  static uint16_t put(float x) { return float_to_bf16(x); }
};
struct Fp16 {
  using Stored = uint16_t;
  using Register = float;
  static float get(uint16_t x) { return half_to_float(x); }
  static uint16_t put(float x) { return float_to_half(x); }
};

// Calls f with the element type of the dtype.
template <class F>
auto with_dtype(Dtype dtype, F&& f) {
  switch (dtype) {
    case Dtype::UINT8:
      return f(Plain<uint8_t, int32_t>{});
    case Dtype::INT8:
      return f(Plain<int8_t, int32_t>{});
    case Dtype::BOOL:
      return f(Bool{});
    case Dtype::INT16:
      return f(Plain<int16_t, int32_t>{});
    case Dtype::INT32:
      return f(Plain<int32_t, int32_t>{});
    case Dtype::INT64:
      return f(Plain<int64_t, int64_t>{});
    case Dtype::BF16:
      return f(Bf16{});
    case Dtype::FP16:
      return f(Fp16{});
    case Dtype::FP64:
      return f(Plain<double, float>{});
    case Dtype::FP32:
      break;
  }
  return f(Plain<float, float>{});
}

}  // namespace neuron::engine
