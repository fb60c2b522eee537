#include "engine/tile/frame.h"

#include <stdexcept>

#include "engine/element.h"

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
  for (const uint32_t at : constant_at_) {
    if (std::memcmp(&constants_[at], &bits, 8) == 0) {
      places_.push_back({true, at});
      return static_cast<uint16_t>(slots() - 1);
    }
  }
  const uint16_t slot = add(true, 8);
  const size_t at = places_.back().offset;
  constant_at_.push_back(static_cast<uint32_t>(at));
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

uint64_t load_number(Dtype dtype, const char* p) {
  return with_dtype(dtype, [&](auto element) -> uint64_t {
    using E = decltype(element);
    typename E::Stored stored;
    std::memcpy(&stored, p, sizeof stored);
    const auto x = E::get(stored);
    uint64_t bits = 0;
    std::memcpy(&bits, &x, sizeof x);
    return bits;
  });
}

}  // namespace neuron::engine
