// MD5 (RFC 1321), for the hash field of a NEFF. Not for security.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace neuron {

class Md5 {
 public:
  void update(std::span<const std::byte> bytes);
  std::array<std::byte, 16> finish();  // ends this object's use

 private:
  void block(const std::byte* bytes);

  std::array<uint32_t, 4> state_{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  std::array<std::byte, 64> pending_{};
  size_t pending_size_ = 0;
  uint64_t total_ = 0;
};

}  // namespace neuron
