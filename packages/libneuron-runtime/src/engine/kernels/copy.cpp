// Strided copies of two dimensions, by size of element.
#include "engine/kernels/stage.h"

namespace neuron::engine::NEURON_ISA {
namespace {

constexpr int64_t kTile = 16;  // a transposed copy reads and writes whole cache lines of 4-byte elements

template <class T>
void copy(char* to, int64_t to_row, int64_t to_column, const char* from, int64_t from_row, int64_t from_column, int64_t rows,
          int64_t columns) {
  T* d = reinterpret_cast<T*>(to);
  const T* s = reinterpret_cast<const T*>(from);
  if (to_column == 1 && from_column == 1) {
    if (to_row == columns && from_row == columns) {
      __builtin_memcpy(d, s, static_cast<size_t>(rows * columns) * sizeof(T));
      return;
    }
    if (columns * sizeof(T) >= 64) {
      for (int64_t r = 0; r < rows; ++r) __builtin_memcpy(d + r * to_row, s + r * from_row, static_cast<size_t>(columns) * sizeof(T));
      return;
    }
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c) d[r * to_row + c] = s[r * from_row + c];
    }
    return;
  }
  if (to_column == 1 && from_column == 0) {
    for (int64_t r = 0; r < rows; ++r) {
      const T x = s[r * from_row];
      for (int64_t c = 0; c < columns; ++c) d[r * to_row + c] = x;
    }
    return;
  }
  if ((from_row == 1 && to_column == 1) || (from_column == 1 && to_row == 1)) {
    for (int64_t r = 0; r < rows; r += kTile) {
      const int64_t r_end = r + kTile < rows ? r + kTile : rows;
      for (int64_t c = 0; c < columns; c += kTile) {
        const int64_t c_end = c + kTile < columns ? c + kTile : columns;
        for (int64_t j = r; j < r_end; ++j) {
          for (int64_t k = c; k < c_end; ++k) d[j * to_row + k * to_column] = s[j * from_row + k * from_column];
        }
      }
    }
    return;
  }
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) d[r * to_row + c * to_column] = s[r * from_row + c * from_column];
  }
}

void stream(char* to, const char* from, size_t bytes) {
#if defined(__x86_64__)
  const size_t head = -reinterpret_cast<uintptr_t>(to) & (kVectorBytes - 1);
  if (bytes >= head + kVectorBytes) {
    __builtin_memcpy(to, from, head);
    size_t at = head;
    for (; at + kVectorBytes <= bytes; at += kVectorBytes) {
      const vf x = load<vf>(from + at);
#if defined(__AVX512F__)
      _mm512_stream_ps(reinterpret_cast<float*>(to + at), (__m512)x);
#elif defined(__AVX2__)
      _mm256_stream_ps(reinterpret_cast<float*>(to + at), (__m256)x);
#else
      _mm_stream_ps(reinterpret_cast<float*>(to + at), (__m128)x);
#endif
    }
    __builtin_memcpy(to + at, from + at, bytes - at);
    return;
  }
#endif
  __builtin_memcpy(to, from, bytes);
}

}  // namespace

void add_copies(Isa& t) {
  t.copy[0] = copy<uint8_t>;
  t.copy[1] = copy<uint16_t>;
  t.copy[2] = copy<uint32_t>;
  t.copy[3] = copy<uint64_t>;
  t.stream = stream;
}

}  // namespace neuron::engine::NEURON_ISA
