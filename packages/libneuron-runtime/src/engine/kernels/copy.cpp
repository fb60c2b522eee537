// Strided copies of two dimensions, by size of element.
#include <type_traits>

#include "engine/kernels/stage.h"
#include "engine/kernels/transpose.h"

namespace neuron::engine::NEURON_ISA {
namespace {

// Elements of a size in a vector for transposing: small ones travel in 4 bytes.
template <int Bytes>
struct Square {
  using V = vf;
  static constexpr int kSide = kWidth;
  typedef std::conditional_t<Bytes == 1, uint8_t, std::conditional_t<Bytes == 2, uint16_t, uint32_t>> Small;
  typedef Small Packed __attribute__((vector_size(kWidth * Bytes)));
  static INLINE vf get(const char* p) { return (vf) __builtin_convertvector(load<Packed>(p), vu); }
  static INLINE void put(char* p, vf x) { store(p, __builtin_convertvector((vu)x, Packed)); }
};
template <>
struct Square<8> {
  using V = vl;
  static constexpr int kSide = kWidth / 2;
  static INLINE vl get(const char* p) { return load<vl>(p); }
  static INLINE void put(char* p, vl x) { store(p, x); }
};

// Rows of the source are contiguous along r, rows of the result along c.
template <class T>
void copy_transposed(T* d, int64_t to_row, const T* s, int64_t from_column, int64_t rows, int64_t columns) {
  using Q = Square<sizeof(T)>;
  constexpr int64_t kSide = Q::kSide;
  const int64_t whole_rows = rows / kSide * kSide, whole_columns = columns / kSide * kSide;
  for (int64_t r = 0; r < whole_rows; r += kSide) {
    for (int64_t c = 0; c < whole_columns; c += kSide) {
      typename Q::V x[kSide];
#pragma GCC unroll 16
      for (int64_t k = 0; k < kSide; ++k) x[k] = Q::get(reinterpret_cast<const char*>(s + (c + k) * from_column + r));
      transpose(x);
#pragma GCC unroll 16
      for (int64_t k = 0; k < kSide; ++k) Q::put(reinterpret_cast<char*>(d + (r + k) * to_row + c), x[k]);
    }
    for (int64_t k = r; k < r + kSide; ++k) {
      for (int64_t c = whole_columns; c < columns; ++c) d[k * to_row + c] = s[c * from_column + k];
    }
  }
  for (int64_t r = whole_rows; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) d[r * to_row + c] = s[c * from_column + r];
  }
}

template <class T>
void copy(char* to, int64_t to_row, int64_t to_column, const char* from, int64_t from_row, int64_t from_column,
          int64_t rows, int64_t columns) {
  T* d = reinterpret_cast<T*>(to);
  const T* s = reinterpret_cast<const T*>(from);
  if (to_column == 1 && from_column == 1) {
    if (to_row == columns && from_row == columns) {
      __builtin_memmove(d, s, static_cast<size_t>(rows * columns) * sizeof(T));
      return;
    }
    if (columns * sizeof(T) >= 64) {
      for (int64_t r = 0; r < rows; ++r)
        __builtin_memmove(d + r * to_row, s + r * from_row, static_cast<size_t>(columns) * sizeof(T));
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
  if (from_row == 1 && to_column == 1) return copy_transposed(d, to_row, s, from_column, rows, columns);
  if (from_column == 1 && to_row == 1) return copy_transposed(d, to_column, s, from_row, columns, rows);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) d[r * to_row + c * to_column] = s[r * from_row + c * from_column];
  }
}

void stream(char* to, const char* from, size_t bytes) {
#if defined(__x86_64__)
  const size_t head = -reinterpret_cast<uintptr_t>(to) & (kVectorBytes - 1);
  if (bytes >= head + kVectorBytes) {
    __builtin_memmove(to, from, head);
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
    __builtin_memmove(to + at, from + at, bytes - at);
    return;
  }
#endif
  __builtin_memmove(to, from, bytes);
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
