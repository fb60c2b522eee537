#include "base/md5.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace neuron {

namespace {

static_assert(std::endian::native == std::endian::little);

// The RFC defines its table as the integer part of 2^32 |sin(i)|.
const std::array<uint32_t, 64> kSines = [] {
  std::array<uint32_t, 64> table{};
  for (size_t i = 0; i < 64; ++i)
    table[i] = static_cast<uint32_t>(std::floor(std::fabs(std::sin(static_cast<double>(i + 1))) * 4294967296.0));
  return table;
}();

constexpr int kShifts[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};

template <int round>
void steps(uint32_t& a, uint32_t& b, uint32_t& c, uint32_t& d, const uint32_t* words) {
  for (uint32_t i = round * 16; i < round * 16 + 16; ++i) {
    uint32_t mixed = 0, word = 0;
    if constexpr (round == 0) {
      mixed = (b & c) | (~b & d);
      word = i;
    } else if constexpr (round == 1) {
      mixed = (d & b) | (~d & c);
      word = (5 * i + 1) % 16;
    } else if constexpr (round == 2) {
      mixed = b ^ c ^ d;
      word = (3 * i + 5) % 16;
    } else {
      mixed = c ^ (b | ~d);
      word = 7 * i % 16;
    }
    const uint32_t sum = a + mixed + kSines[i] + words[word];
    a = d;
    d = c;
    c = b;
    b += std::rotl(sum, kShifts[round][i % 4]);
  }
}

}  // namespace

void Md5::block(const std::byte* bytes) {
  uint32_t words[16];
  std::memcpy(words, bytes, 64);
  auto [a, b, c, d] = state_;
  steps<0>(a, b, c, d, words);
  steps<1>(a, b, c, d, words);
  steps<2>(a, b, c, d, words);
  steps<3>(a, b, c, d, words);
  state_[0] += a;
  state_[1] += b;
  state_[2] += c;
  state_[3] += d;
}

void Md5::update(std::span<const std::byte> bytes) {
  total_ += bytes.size();
  if (pending_size_ > 0) {
    const size_t taken = std::min(bytes.size(), 64 - pending_size_);
    std::copy_n(bytes.begin(), taken, pending_.begin() + pending_size_);
    pending_size_ += taken;
    bytes = bytes.subspan(taken);
    if (pending_size_ < 64) return;
    block(pending_.data());
    pending_size_ = 0;
  }
  while (bytes.size() >= 64) {
    block(bytes.data());
    bytes = bytes.subspan(64);
  }
  std::copy(bytes.begin(), bytes.end(), pending_.begin());
  pending_size_ = bytes.size();
}

std::array<std::byte, 16> Md5::finish() {
  const uint64_t bits = total_ * 8;
  std::array<std::byte, 64> padding{};
  padding[0] = std::byte{0x80};
  update(std::span(padding).first((pending_size_ < 56 ? 56 : 120) - pending_size_));
  std::array<std::byte, 8> length;
  std::memcpy(length.data(), &bits, 8);
  update(length);
  std::array<std::byte, 16> digest;
  std::memcpy(digest.data(), state_.data(), 16);
  return digest;
}

}  // namespace neuron
