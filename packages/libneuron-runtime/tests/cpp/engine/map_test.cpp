// TILE in MAP mode: windows of every shape and dtype, broadcasts, in-place results, indices and random numbers.
#include <doctest/doctest.h>

#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "builder.h"
#include "engine/isa.h"

namespace neuron::engine::test {
namespace {

template <class T>
struct DtypeOf;
template <>
struct DtypeOf<uint8_t> {
  static constexpr Dtype value = Dtype::UINT8;
};
template <>
struct DtypeOf<int8_t> {
  static constexpr Dtype value = Dtype::INT8;
};
template <>
struct DtypeOf<int16_t> {
  static constexpr Dtype value = Dtype::INT16;
};
template <>
struct DtypeOf<int32_t> {
  static constexpr Dtype value = Dtype::INT32;
};
template <>
struct DtypeOf<int64_t> {
  static constexpr Dtype value = Dtype::INT64;
};
template <>
struct DtypeOf<float> {
  static constexpr Dtype value = Dtype::FP32;
};
template <>
struct DtypeOf<double> {
  static constexpr Dtype value = Dtype::FP64;
};

TEST_CASE_TEMPLATE("add of contiguous vectors", T, uint8_t, int8_t, int16_t, int32_t, int64_t, float, double) {
  constexpr Dtype dtype = DtypeOf<T>::value;
  for (const int64_t n : {0, 1, 2, 15, 16, 17, 63, 64, 65, 255, 256, 511, 512, 513, 8191, 8193, 100001}) {
    CAPTURE(n);
    std::vector<T> x(n), y(n), out(n + 1, T(99));
    for (int64_t i = 0; i < n; ++i) x[i] = static_cast<T>(i % 100), y[i] = static_cast<T>((i * 7) % 90);
    Builder b = Builder::tile({n});
    const int s =
        b.op(Micro::ADD, schema::find(dtype)->kind, b.load(window(0, dtype, {1})), b.load(window(1, dtype, {1})));
    b.store(s, window(2, dtype, {1}));
    b.run({x.data(), y.data(), out.data()});
    bool equal = true;
    for (int64_t i = 0; i < n; ++i) equal &= out[i] == static_cast<T>(x[i] + y[i]);
    CHECK(equal);
    CHECK(out[n] == T(99));
  }
}

TEST_CASE("windows of any stride") {
  const int64_t rows = 37, columns = 53, depth = 5;
  std::vector<float> x(rows * columns * depth), out(x.size() * 2, -1);
  std::iota(x.begin(), x.end(), 0.0f);
  struct Case {
    std::string name;
    Window in, other, result;
  };
  const Case cases[] = {
      {"contiguous", window(0, Dtype::FP32, {columns * depth, depth, 1}), window(0, Dtype::FP32, {0, 0, 0}),
       window(1, Dtype::FP32, {columns * depth, depth, 1})},
      {"transposed in", window(0, Dtype::FP32, {1, rows, rows * columns}),
       window(0, Dtype::FP32, {columns * depth, depth, 1}), window(1, Dtype::FP32, {columns * depth, depth, 1})},
      {"transposed out", window(0, Dtype::FP32, {columns * depth, depth, 1}), window(0, Dtype::FP32, {0, 1, 0}),
       window(1, Dtype::FP32, {1, rows, rows * columns})},
      {"both transposed", window(0, Dtype::FP32, {1, rows, rows * columns}), window(0, Dtype::FP32, {1, 0, 0}),
       window(1, Dtype::FP32, {1, rows, rows * columns})},
      {"backwards", window(0, Dtype::FP32, {columns * depth, depth, -1}, depth - 1), window(0, Dtype::FP32, {0, 0, 1}),
       window(1, Dtype::FP32, {columns * depth, depth, 1})},
      {"broadcast rows", window(0, Dtype::FP32, {0, depth, 1}), window(0, Dtype::FP32, {1, 0, 0}),
       window(1, Dtype::FP32, {columns * depth, depth, 1})},
      {"gaps in result", window(0, Dtype::FP32, {columns * depth, depth, 1}), window(0, Dtype::FP32, {0, 1, 0}),
       window(1, Dtype::FP32, {2 * columns * depth, 2 * depth, 2})},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    std::fill(out.begin(), out.end(), -1.0f);
    std::vector<float> expected = out;
    Builder b = Builder::tile({rows, columns, depth});
    b.store(b.f32(Micro::ADD, b.load(c.in), b.load(c.other)), c.result);
    b.run({x.data(), out.data()});
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        for (int64_t k = 0; k < depth; ++k) {
          const auto at = [&](const Window& w) {
            return w.offset + i * w.strides[0] + j * w.strides[1] + k * w.strides[2];
          };
          expected[at(c.result)] = x[at(c.in)] + x[at(c.other)];
        }
      }
    }
    CHECK(out == expected);
  }
}

TEST_CASE("two outputs that exchange their inputs in place") {
  std::vector<float> x(1000), y(1000);
  std::iota(x.begin(), x.end(), 0.0f);
  std::iota(y.begin(), y.end(), 5000.0f);
  const auto old_x = x, old_y = y;
  Builder b = Builder::tile({1000});
  const int px = b.add(window(0, Dtype::FP32, {1})), py = b.add(window(1, Dtype::FP32, {1}));
  const int rx = b.load(px), ry = b.load(py);
  b.store(ry, px);
  b.store(rx, py);
  b.run({x.data(), y.data()});
  CHECK(x == old_y);
  CHECK(y == old_x);
}

TEST_CASE("uniform values are computed from launch scalars") {
  std::vector<float> x(300), out(300);
  std::iota(x.begin(), x.end(), 1.0f);
  Builder b = Builder::tile({300});
  const int beta = b.f32(Micro::SUB, b.constant(1.0), b.scalar(Kind::F32, 0));
  b.store(b.f32(Micro::MUL, b.load(window(0, Dtype::FP32, {1})), beta), window(1, Dtype::FP32, {1}));
  b.run({x.data(), out.data()}, {std::bit_cast<uint64_t>(0.25)});
  for (int i = 0; i < 300; ++i) CHECK(out[i] == x[i] * 0.75f);
}

TEST_CASE("fill and iota") {
  std::vector<int64_t> out(7 * 11);
  Builder b = Builder::tile({7, 11});
  const int row = b.op(Micro::MUL, Kind::I64, b.iota(0), b.constant(Kind::I64, 100));
  b.store(b.op(Micro::ADD, Kind::I64, row, b.iota(1)), window(0, Dtype::INT64, {11, 1}));
  b.run({out.data()});
  for (int i = 0; i < 7; ++i) {
    for (int j = 0; j < 11; ++j) CHECK(out[i * 11 + j] == i * 100 + j);
  }
  std::vector<int16_t> filled(5000, 1);
  Builder f = Builder::tile({5000});
  f.store(f.constant(Kind::I32, -3), window(0, Dtype::INT16, {1}));
  f.run({filled.data()});
  CHECK(filled == std::vector<int16_t>(5000, -3));
}

TEST_CASE("random words are Philox4x32-10") {
  // Known answers published with Random123: counter and key all zero, and all ones.
  const uint32_t zeros[4] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
  uint32_t out[4][70] = {};
  for (int word = 0; word < 4; ++word) {
    Builder b = Builder::tile({70});
    b.store(b.random(word, 0), window(0, Dtype::INT32, {1}));
    b.run({out[word]}, {0, 0});
    CHECK(out[word][0] == zeros[word]);
  }
  // Element i has counter offset + i, however the index space is stored.
  uint32_t transposed[70];
  Builder b = Builder::tile({7, 10});
  b.store(b.random(2, 1), window(0, Dtype::INT32, {1, 7}));
  b.run({transposed}, {99, 0, 5});
  uint32_t shifted[80];
  Builder s = Builder::tile({80});
  s.store(s.random(2, 0), window(0, Dtype::INT32, {1}));
  s.run({shifted}, {0, 0});
  for (int i = 0; i < 7; ++i) {
    for (int j = 0; j < 10; ++j) CHECK(transposed[i + 7 * j] == shifted[5 + i * 10 + j]);
  }
}

}  // namespace
}  // namespace neuron::engine::test
