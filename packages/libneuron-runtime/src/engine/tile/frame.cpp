#include "engine/tile/frame.h"

#include <bit>
#include <stdexcept>

namespace neuron::engine {

uint16_t FrameLayout::add(bool shared, size_t bytes) {
  size_t& end = shared ? shared_ : local_;
  const size_t alignment = bytes >= 64 ? 64 : 8;
  end = (end + alignment - 1) & ~(alignment - 1);
  places_.push_back({shared, static_cast<uint32_t>(end)});
  end += bytes;
  if (end > UINT32_MAX || slots() > UINT16_MAX) throw std::length_error("instruction needs too much local memory");
  return static_cast<uint16_t>(slots() - 1);
}

uint16_t FrameLayout::add_constant(Kind, uint64_t bits) {
  for (size_t at = 0; at + 8 <= constants_.size(); at += 8) {
    if (std::memcmp(&constants_[at], &bits, 8) == 0) {
      places_.push_back({true, static_cast<uint32_t>(at)});
      return static_cast<uint16_t>(slots() - 1);
    }
  }
  const uint16_t slot = add(true, 8);
  const size_t at = places_.back().offset;
  constants_.resize(at + 8);
  std::memcpy(&constants_[at], &bits, 8);
  return slot;
}

uint16_t FrameLayout::add_group(Kind kind) {
  auto& list = free_[kind == Kind::I64];
  if (!list.empty()) {
    const uint16_t slot = list.back();
    list.pop_back();
    return slot;
  }
  return add_local(static_cast<size_t>(group_) * (kind == Kind::I64 ? 8 : 4));
}

namespace {

float half_to_float(uint16_t h) {
  const uint32_t sign = (h & 0x8000u) << 16, magnitude = h & 0x7fffu;
  if (magnitude > 0x7c00) return std::bit_cast<float>(sign | 0x7fc00000u | magnitude << 13);
  if (magnitude == 0x7c00) return std::bit_cast<float>(sign | 0x7f800000u);
  const float f = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
  return sign ? -f : f;
}

template <class T>
T read(const char* p) {
  T x;
  std::memcpy(&x, p, sizeof x);
  return x;
}
uint64_t bits(float x) { return std::bit_cast<uint32_t>(x); }
uint64_t bits(int32_t x) { return static_cast<uint32_t>(x); }

}  // namespace

uint64_t load_number(Dtype dtype, const char* p) {
  switch (dtype) {
    case Dtype::UINT8: return bits(static_cast<int32_t>(read<uint8_t>(p)));
    case Dtype::INT8: return bits(static_cast<int32_t>(read<int8_t>(p)));
    case Dtype::BOOL: return *p != 0;
    case Dtype::INT16: return bits(static_cast<int32_t>(read<int16_t>(p)));
    case Dtype::INT32: return bits(read<int32_t>(p));
    case Dtype::INT64: return read<uint64_t>(p);
    case Dtype::BF16: return static_cast<uint64_t>(read<uint16_t>(p)) << 16;
    case Dtype::FP16: return bits(half_to_float(read<uint16_t>(p)));
    case Dtype::FP32: return read<uint32_t>(p);
    case Dtype::FP64: return bits(static_cast<float>(read<double>(p)));
  }
  return 0;
}

}  // namespace neuron::engine
