// Matrix multiplication in F32 and I64: packing, and the tile that stays in registers.
#include <type_traits>

#include "engine/kernels/half.h"
#include "engine/kernels/stage.h"
#include "engine/kernels/transpose.h"

namespace neuron::engine::NEURON_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int kRows = 12, kColumnVectors = 2;  // 24 accumulators of 32 registers
#elif defined(__AVX2__)
constexpr int kRows = 6, kColumnVectors = 2;  // 12 of 16
#elif defined(__aarch64__)
constexpr int kRows = 6, kColumnVectors = 4;  // 24 of 32
#else
constexpr int kRows = 4, kColumnVectors = 2;  // 8 of 16
#endif
constexpr int kWideRows = 4;

struct Float {
  using V = vf;
  using T = float;
  static INLINE vf step(vf a, vf b, vf c) { return fma(a, b, c); }
};
struct Wide {
  using V = vl;
  using T = int64_t;
  static INLINE vl step(vl a, vl b, vl c) { return a * b + c; }
};

template <class K, int Rows, int MR>
void tile_rows(int64_t k, const typename K::T* a, const typename K::T* b, int64_t b_stride, typename K::T* c,
               int64_t c_stride, bool accumulate) {
  using V = typename K::V;
  constexpr int kElements = static_cast<int>(sizeof(V) / sizeof(typename K::T));
  V acc[Rows][kColumnVectors];
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
    for (int j = 0; j < kColumnVectors; ++j) acc[r][j] = V{};
  }
  for (int64_t i = 0; i < k; ++i, a += MR, b += b_stride) {
    V column[kColumnVectors];
#pragma GCC unroll 4
    for (int j = 0; j < kColumnVectors; ++j) column[j] = load<V>(b + j * kElements);
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) {
      const V left = splat(a[r]);
#pragma GCC unroll 4
      for (int j = 0; j < kColumnVectors; ++j) acc[r][j] = K::step(left, column[j], acc[r][j]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
    for (int j = 0; j < kColumnVectors; ++j) {
      typename K::T* p = c + r * c_stride + j * kElements;
      store(p, accumulate ? load<V>(p) + acc[r][j] : acc[r][j]);
    }
  }
}

template <class K, int MR, int Rows = MR>
INLINE void choose_rows(int rows, int64_t k, const typename K::T* a, const typename K::T* b, int64_t b_stride,
                        typename K::T* c, int64_t c_stride, bool accumulate) {
  if constexpr (Rows > 0) {
    if (rows == Rows) return tile_rows<K, Rows, MR>(k, a, b, b_stride, c, c_stride, accumulate);
    choose_rows<K, MR, Rows - 1>(rows, k, a, b, b_stride, c, c_stride, accumulate);
  }
}

template <class K, int MR>
void tile(int64_t k, const void* a, const void* b, int64_t b_stride, void* c, int64_t c_stride, int rows, int columns,
          bool accumulate) {
  using T = typename K::T;
  constexpr int kColumns = kColumnVectors * static_cast<int>(sizeof(typename K::V) / sizeof(T));
  T* out = static_cast<T*>(c);
  if (columns == kColumns) {
    choose_rows<K, MR>(rows, k, static_cast<const T*>(a), static_cast<const T*>(b), b_stride, out, c_stride,
                       accumulate);
    return;
  }
  alignas(64) T whole[MR * kColumns];
  if (accumulate) {
    for (int r = 0; r < rows; ++r) {
      for (int j = 0; j < columns; ++j) whole[r * kColumns + j] = out[r * c_stride + j];
      for (int j = columns; j < kColumns; ++j) whole[r * kColumns + j] = 0;
    }
  }
  choose_rows<K, MR>(rows, k, static_cast<const T*>(a), static_cast<const T*>(b), b_stride, whole, kColumns,
                     accumulate);
  for (int r = 0; r < rows; ++r) {
    for (int j = 0; j < columns; ++j) out[r * c_stride + j] = whole[r * kColumns + j];
  }
}

// Few rows: the operand passes through the registers once and is not packed.
constexpr int64_t kStrip = 1024;  // columns whose sums stay in the first-level cache

// Its rows lie in memory: four of them at a time, along the columns.
template <int Rows>
void few_along_columns(int64_t k, const float* a, const float* b, int64_t k_stride, float* c, int64_t c_stride,
                       int64_t columns, bool accumulate) {
  float sums[Rows * kStrip];
  for (int64_t begin = 0; begin < columns; begin += kStrip) {
    const int64_t count = columns - begin < kStrip ? columns - begin : kStrip, whole = count / kWidth * kWidth;
    for (int r = 0; r < Rows; ++r) __builtin_memset(sums + r * kStrip, 0, static_cast<size_t>(count) * sizeof(float));
    const auto add = [&](int64_t first, auto depth) {
      constexpr int kDepth = decltype(depth)::value;
      vf left[Rows][kDepth];
      for (int r = 0; r < Rows; ++r) {
        for (int d = 0; d < kDepth; ++d) left[r][d] = splat(a[(first + d) * kRows + r]);
      }
      const float* p = b + first * k_stride + begin;
      for (int64_t j = 0; j < whole; j += kWidth) {
        vf right[kDepth];
        for (int d = 0; d < kDepth; ++d) right[d] = load<vf>(p + d * k_stride + j);
        for (int r = 0; r < Rows; ++r) {
          vf sum = load<vf>(sums + r * kStrip + j);
          for (int d = 0; d < kDepth; ++d) sum = fma(left[r][d], right[d], sum);
          store(sums + r * kStrip + j, sum);
        }
      }
      for (int64_t j = whole; j < count; ++j) {
        for (int r = 0; r < Rows; ++r) {
          vf sum = splat(sums[r * kStrip + j]);
          for (int d = 0; d < kDepth; ++d) sum = fma(left[r][d], splat(p[d * k_stride + j]), sum);
          sums[r * kStrip + j] = sum[0];
        }
      }
    };
    int64_t i = 0;
    for (; i + 4 <= k; i += 4) add(i, std::integral_constant<int, 4>{});
    for (; i < k; ++i) add(i, std::integral_constant<int, 1>{});
    for (int r = 0; r < Rows; ++r) {
      float* out = c + r * c_stride + begin;
      for (int64_t j = 0; j < count; ++j) out[j] = accumulate ? out[j] + sums[r * kStrip + j] : sums[r * kStrip + j];
    }
  }
}

// Its columns lie in memory: squares are transposed in registers.
template <int Rows>
void few_along_k(int64_t k, const float* a, const float* b, int64_t n_stride, float* c, int64_t c_stride,
                 int64_t columns, bool accumulate) {
  for (int64_t begin = 0; begin < columns; begin += kWidth) {
    const int64_t count = columns - begin < kWidth ? columns - begin : kWidth;
    const float* p = b + begin * n_stride;
    vf sums[Rows] = {};
    int64_t i = 0;
    for (; i + kWidth <= k; i += kWidth) {
      vf x[kWidth];
      if (count == kWidth) {
#pragma GCC unroll 16
        for (int j = 0; j < kWidth; ++j) x[j] = load<vf>(p + j * n_stride + i);
      } else {
        for (int j = 0; j < kWidth; ++j) x[j] = j < count ? load<vf>(p + j * n_stride + i) : vf{};
      }
      transpose(x);
#pragma GCC unroll 16
      for (int d = 0; d < kWidth; ++d) {
        for (int r = 0; r < Rows; ++r) sums[r] = fma(splat(a[(i + d) * kRows + r]), x[d], sums[r]);
      }
    }
    for (; i < k; ++i) {
      vf x{};
      for (int j = 0; j < count; ++j) x[j] = p[j * n_stride + i];
      for (int r = 0; r < Rows; ++r) sums[r] = fma(splat(a[i * kRows + r]), x, sums[r]);
    }
    for (int r = 0; r < Rows; ++r) {
      float* out = c + r * c_stride + begin;
      for (int j = 0; j < count; ++j) out[j] = accumulate ? out[j] + sums[r][j] : sums[r][j];
    }
  }
}

template <int Rows>
INLINE void few(int64_t k, const float* a, const float* b, int64_t n_stride, int64_t k_stride, float* c,
                int64_t c_stride, int64_t columns, bool accumulate) {
  if (n_stride == 1) {
    few_along_columns<Rows>(k, a, b, k_stride, c, c_stride, columns, accumulate);
  } else {
    few_along_k<Rows>(k, a, b, n_stride, c, c_stride, columns, accumulate);
  }
}
void few_rows(int64_t k, const void* left, const char* right, int64_t n_stride, int64_t k_stride, void* out,
              int64_t c_stride, int rows, int64_t columns, bool accumulate) {
  const auto* a = static_cast<const float*>(left);
  const auto* b = reinterpret_cast<const float*>(right);
  auto* c = static_cast<float*>(out);
  switch (rows) {
    case 1:
      return few<1>(k, a, b, n_stride, k_stride, c, c_stride, columns, accumulate);
    case 2:
      return few<2>(k, a, b, n_stride, k_stride, c, c_stride, columns, accumulate);
    case 3:
      return few<3>(k, a, b, n_stride, k_stride, c, c_stride, columns, accumulate);
    default:
      return few<4>(k, a, b, n_stride, k_stride, c, c_stride, columns, accumulate);
  }
}

// Storage types of the left and right operands in F32: kWidth elements at p.
struct Fp32Source {
  using T = float;
  static INLINE vf get(const T* p) { return load<vf>(p); }
  static INLINE float one(T x) { return x; }
};
struct Bf16Source {
  using T = uint16_t;
  static INLINE vf get(const T* p) { return from_bf16(load<v16>(p)); }
  static INLINE float one(T x) {
    const uint32_t bits = static_cast<uint32_t>(x) << 16;
    return number<float>(reinterpret_cast<const char*>(&bits));
  }
};
struct Fp16Source {
  using T = uint16_t;
  static INLINE vf get(const T* p) { return from_fp16(load<v16>(p)); }
  static INLINE float one(T x) { return from_fp16(v16{} + x)[0]; }
};
struct Fp64Source {
  using T = double;
  static INLINE vf get(const T* p) { return narrow({load<vd>(p), load<vd>(p + kWidth / 2)}); }
  static INLINE float one(T x) { return static_cast<float>(x); }
};

template <class S>
void pack_float(float* out, int width, const typename S::T* from, int64_t stride, int64_t k_stride, int64_t count,
                int64_t k) {
  if (stride == 1 && count >= kWidth) {
    for (int64_t i = 0; i < k; ++i, from += k_stride, out += width) {
      int64_t w = 0;
      for (; w + kWidth <= count; w += kWidth) store(out + w, S::get(from + w));
      for (; w < count; ++w) out[w] = S::one(from[w]);
      for (; w < width; ++w) out[w] = 0;
    }
    return;
  }
  int64_t done = 0;
  if (k_stride == 1) {
    // Squares of kWidth, a strip of kWidth vectors at a time. A store past the strip is repaired by the strips and rows
    // that follow.
    for (; done + kWidth <= k; done += kWidth) {
      for (int64_t w = 0; w < width; w += kWidth) {
        vf x[kWidth];
        for (int j = 0; j < kWidth; ++j) x[j] = w + j < count ? S::get(from + (w + j) * stride + done) : vf{};
        transpose(x);
        const int64_t room = width - w;
        for (int j = 0; j < kWidth; ++j) {
          float* p = out + (done + j) * width + w;
          if (room >= kWidth) {
            store(p, x[j]);
          } else {
            __builtin_memcpy(p, &x[j], static_cast<size_t>(room) * sizeof(float));
          }
        }
      }
    }
  }
  for (int64_t i = done; i < k; ++i) {
    for (int64_t w = 0; w < count; ++w) out[i * width + w] = S::one(from[w * stride + i * k_stride]);
    for (int64_t w = count; w < width; ++w) out[i * width + w] = 0;
  }
}

void pack_any_float(void* panel, int width, const char* from, Dtype dtype, int64_t stride, int64_t k_stride,
                    int64_t count, int64_t k) {
  auto* out = static_cast<float*>(panel);
  switch (dtype) {
    case Dtype::BF16:
      return pack_float<Bf16Source>(out, width, reinterpret_cast<const uint16_t*>(from), stride, k_stride, count, k);
    case Dtype::FP16:
      return pack_float<Fp16Source>(out, width, reinterpret_cast<const uint16_t*>(from), stride, k_stride, count, k);
    case Dtype::FP64:
      return pack_float<Fp64Source>(out, width, reinterpret_cast<const double*>(from), stride, k_stride, count, k);
    default:
      return pack_float<Fp32Source>(out, width, reinterpret_cast<const float*>(from), stride, k_stride, count, k);
  }
}

template <class T>
void pack_integers(int64_t* out, int width, const T* from, int64_t stride, int64_t k_stride, int64_t count, int64_t k) {
  for (int64_t i = 0; i < k; ++i, out += width) {
    for (int64_t w = 0; w < count; ++w) out[w] = static_cast<int64_t>(from[w * stride + i * k_stride]);
    for (int64_t w = count; w < width; ++w) out[w] = 0;
  }
}
void pack_any_integer(void* panel, int width, const char* from, Dtype dtype, int64_t stride, int64_t k_stride,
                      int64_t count, int64_t k) {
  auto* out = static_cast<int64_t*>(panel);
  switch (dtype) {
    case Dtype::UINT8:
      return pack_integers(out, width, reinterpret_cast<const uint8_t*>(from), stride, k_stride, count, k);
    case Dtype::BOOL:
      return pack_integers(out, width, reinterpret_cast<const uint8_t*>(from), stride, k_stride, count, k);
    case Dtype::INT8:
      return pack_integers(out, width, reinterpret_cast<const int8_t*>(from), stride, k_stride, count, k);
    case Dtype::INT16:
      return pack_integers(out, width, reinterpret_cast<const int16_t*>(from), stride, k_stride, count, k);
    case Dtype::INT32:
      return pack_integers(out, width, reinterpret_cast<const int32_t*>(from), stride, k_stride, count, k);
    default:
      return pack_integers(out, width, reinterpret_cast<const int64_t*>(from), stride, k_stride, count, k);
  }
}

}  // namespace

void add_gemm(Isa& t) {
  t.gemm_float.mr = kRows;
  t.gemm_float.nr = kColumnVectors * kWidth;
  t.gemm_float.bytes = 4;
  t.gemm_float.k_multiple = 1;
  t.gemm_float.k_block = 384;
  t.gemm_float.pack = pack_any_float;
  t.gemm_float.tile = tile<Float, kRows>;
  t.gemm_float.few_rows = few_rows;
  t.gemm_wide.mr = kWideRows;
  t.gemm_wide.nr = kColumnVectors * kWidth / 2;
  t.gemm_wide.bytes = 8;
  t.gemm_wide.k_multiple = 1;
  t.gemm_wide.k_block = 256;
  t.gemm_wide.pack = pack_any_integer;
  t.gemm_wide.tile = tile<Wide, kWideRows>;
}

}  // namespace neuron::engine::NEURON_ISA
