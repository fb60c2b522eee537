// Keys of the caches: a flat sequence of 64-bit words that can be read back, so that two different calls never have
// equal keys.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

namespace torch_neuronx::dispatch {

class Key {
 public:
  Key() = default;
  Key(const Key&) = delete;
  Key& operator=(const Key&) = delete;

  void add(uint64_t word) {
    if (size_ == capacity_) [[unlikely]] {
      grow();
    }
    data_[size_++] = word;
  }
  void add(std::string_view text) {
    add(text.size());
    for (size_t i = 0; i < text.size(); i += 8) {
      uint64_t word = 0;
      std::memcpy(&word, text.data() + i, std::min<size_t>(8, text.size() - i));
      add(word);
    }
  }

  const uint64_t* data() const { return data_; }
  size_t size() const { return size_; }
  std::vector<uint64_t> words() const { return {data_, data_ + size_}; }

  // Spreads well enough for tables; equality is always decided by the words. Two chains of multiplications run side by
  // side.
  uint64_t hash() const {
    uint64_t even = size_, odd = 0x9E3779B97F4A7C15u;
    size_t i = 0;
    for (; i + 1 < size_; i += 2) {
      even = mix(even ^ data_[i]);
      odd = mix(odd ^ data_[i + 1]);
    }
    return mix(mix(even ^ (i < size_ ? data_[i] : 0)) ^ (odd << 1));
  }

  bool equals(const std::vector<uint64_t>& words) const {
    return words.size() == size_ && std::memcmp(words.data(), data_, size_ * sizeof(uint64_t)) == 0;
  }

 private:
  // Enough for four tensors of four dimensions with strides; longer keys move to the heap.
  static constexpr size_t kInline = 48;

  static uint64_t mix(uint64_t value) {
    const auto product = static_cast<unsigned __int128>(value) * 0x9E3779B97F4A7C15u;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  }

  void grow() {
    auto larger = std::make_unique_for_overwrite<uint64_t[]>(capacity_ * 2);
    std::memcpy(larger.get(), data_, size_ * sizeof(uint64_t));
    heap_ = std::move(larger);
    data_ = heap_.get();
    capacity_ *= 2;
  }

  uint64_t inline_[kInline];
  uint64_t* data_ = inline_;
  size_t size_ = 0, capacity_ = kInline;
  std::unique_ptr<uint64_t[]> heap_;
};

}  // namespace torch_neuronx::dispatch
