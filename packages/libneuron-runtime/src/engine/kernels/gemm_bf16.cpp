// Matrix multiplication of bf16 by the processor's dot product of pairs. It adds the two products of a pair with
// roundings of its own and takes denormals as zero, so that results differ in the last places from those of an
// instruction set without it; on one processor it is used for every shape and layout.
#include "engine/kernels/half.h"
#include "engine/kernels/stage.h"
#include "engine/kernels/transpose.h"

namespace neuron::engine::NEURON_ISA {

#if defined(__AVX512F__)
namespace {

#define BF16_TARGET __attribute__((target("avx512bf16")))
constexpr int kRows = 12, kColumns = 32;

template <int Rows>
BF16_TARGET void tile_rows(int64_t pairs, const uint32_t* a, const uint32_t* b, int64_t b_stride, float* c,
                           int64_t c_stride, bool accumulate) {
  __m512 acc[Rows][2];
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) acc[r][0] = acc[r][1] = _mm512_setzero_ps();
  for (int64_t i = 0; i < pairs; ++i, a += kRows, b += b_stride) {
    const __m512bh left = (__m512bh)_mm512_loadu_si512(b), right = (__m512bh)_mm512_loadu_si512(b + 16);
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) {
      const __m512bh row = (__m512bh)_mm512_set1_epi32(static_cast<int>(a[r]));
      acc[r][0] = _mm512_dpbf16_ps(acc[r][0], row, left);
      acc[r][1] = _mm512_dpbf16_ps(acc[r][1], row, right);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) {
    for (int j = 0; j < 2; ++j) {
      float* p = c + r * c_stride + 16 * j;
      _mm512_storeu_ps(p, accumulate ? _mm512_add_ps(_mm512_loadu_ps(p), acc[r][j]) : acc[r][j]);
    }
  }
}

template <int Rows = kRows>
INLINE void choose_rows(int rows, int64_t pairs, const uint32_t* a, const uint32_t* b, int64_t b_stride, float* c,
                        int64_t c_stride, bool accumulate) {
  if constexpr (Rows > 0) {
    if (rows == Rows) return tile_rows<Rows>(pairs, a, b, b_stride, c, c_stride, accumulate);
    choose_rows<Rows - 1>(rows, pairs, a, b, b_stride, c, c_stride, accumulate);
  }
}

void tile(int64_t k, const void* a, const void* b, int64_t b_stride, void* c, int64_t c_stride, int rows, int columns,
          bool accumulate) {
  const auto* left = static_cast<const uint32_t*>(a);
  const auto* right = static_cast<const uint32_t*>(b);
  float* out = static_cast<float*>(c);
  const int64_t pairs = (k + 1) / 2;
  if (columns == kColumns) {
    choose_rows(rows, pairs, left, right, b_stride, out, c_stride, accumulate);
    return;
  }
  alignas(64) float whole[kRows * kColumns];
  if (accumulate) {
    for (int r = 0; r < rows; ++r) {
      for (int j = 0; j < kColumns; ++j) whole[r * kColumns + j] = j < columns ? out[r * c_stride + j] : 0;
    }
  }
  choose_rows(rows, pairs, left, right, b_stride, whole, kColumns, accumulate);
  for (int r = 0; r < rows; ++r) {
    for (int j = 0; j < columns; ++j) out[r * c_stride + j] = whole[r * kColumns + j];
  }
}

// Panel of pairs: out[pair][w] holds elements 2 pair (low half) and 2 pair + 1 of vector w.
void pack(void* panel, int width, const char* source, Dtype, int64_t stride, int64_t k_stride, int64_t count,
          int64_t k) {
  auto* out = static_cast<uint32_t*>(panel);
  const auto* from = reinterpret_cast<const uint16_t*>(source);
  const int64_t pairs = k / 2;
  int64_t done = 0;
  if (k_stride == 1) {
    for (; done + kWidth <= pairs; done += kWidth) {
      for (int64_t w = 0; w < width; w += kWidth) {
        vf x[kWidth];
        for (int j = 0; j < kWidth; ++j) x[j] = w + j < count ? load<vf>(from + (w + j) * stride + 2 * done) : vf{};
        transpose(x);
        const int64_t room = width - w;
        for (int j = 0; j < kWidth; ++j) {
          uint32_t* p = out + (done + j) * width + w;
          __builtin_memcpy(p, &x[j], static_cast<size_t>(room < kWidth ? room : kWidth) * 4);
        }
      }
    }
  } else if (stride == 1 && count == width && width % kWidth == 0) {
    for (; done < pairs; ++done) {
      const uint16_t *low = from + 2 * done * k_stride, *high = low + k_stride;
      for (int64_t w = 0; w < width; w += kWidth) {
        const vu x = __builtin_convertvector(load<v16>(low + w), vu),
                 y = __builtin_convertvector(load<v16>(high + w), vu);
        store(out + done * width + w, x | (y << 16));
      }
    }
  }
  for (int64_t i = done; i < (k + 1) / 2; ++i) {
    for (int64_t w = 0; w < width; ++w) {
      const uint16_t* p = from + w * stride + 2 * i * k_stride;
      const uint32_t low = w < count ? p[0] : 0, high = w < count && 2 * i + 1 < k ? p[k_stride] : 0;
      out[i * width + w] = low | high << 16;
    }
  }
}

}  // namespace

void add_gemm_bf16(Isa& t) {
  if (!__builtin_cpu_supports("avx512bf16")) return;
  t.gemm_bf16.mr = kRows;
  t.gemm_bf16.nr = kColumns;
  t.gemm_bf16.bytes = 2;
  t.gemm_bf16.k_multiple = 2;
  t.gemm_bf16.k_block = 768;
  t.gemm_bf16.pack = pack;
  t.gemm_bf16.tile = tile;
}
#else
void add_gemm_bf16(Isa&) {}
#endif

}  // namespace neuron::engine::NEURON_ISA
