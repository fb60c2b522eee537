// TILE in ROW and COLUMN mode. The references follow the schema's order of summation, so that results must be equal bit
// for bit, on every instruction set and for any number of threads.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "builder.h"
#include "engine/isa.h"
#include "engine/pool.h"
#include "engine/reduction.h"
#include "engine/tile/reduce.h"

namespace neuron::engine::test {
namespace {

// Elements of one row or column in the order of reduction; an ARG reduction gives the index.
template <class T>
double reduce_reference(Micro op, TileMode mode, const std::vector<T>& x) {
  if (is_arg(op)) {
    size_t at = 0;
    for (size_t i = 1; i < x.size(); ++i) {
      if (beats(op, x[i], x[at])) at = i;
    }
    return static_cast<double>(at);
  }
  T total = identity<T>(op);
  const size_t chunk = mode == TileMode::ROW ? 32768 : 1024;
  for (size_t begin = 0; begin < x.size(); begin += chunk) {
    const size_t end = std::min(begin + chunk, x.size());
    const size_t lanes = mode == TileMode::ROW ? 16 : 1;
    std::vector<T> lane(lanes, identity<T>(op));
    for (size_t i = begin; i < end; ++i) lane[(i - begin) % lanes] = combine(op, lane[(i - begin) % lanes], x[i]);
    for (size_t width = lanes / 2; width; width /= 2) {
      for (size_t j = 0; j < width; ++j) lane[j] = combine(op, lane[j], lane[j + width]);
    }
    total = combine(op, total, lane[0]);
  }
  return static_cast<double>(total);
}

struct Shape {
  std::string name;
  std::vector<int64_t> extents;
  int reduced;
  std::vector<int64_t> strides;
};

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

template <class T>
void check(const Shape& s, Micro op, TileMode mode, Dtype dtype) {
  const auto rank = static_cast<int>(s.extents.size());
  int64_t low = 0, high = 0;
  for (int d = 0; d < rank; ++d)
    (s.strides[d] < 0 ? low : high) += s.strides[d] * std::max<int64_t>(s.extents[d] - 1, 0);
  std::vector<T> memory(static_cast<size_t>(high - low + 1));
  std::mt19937 random(7);
  for (T& x : memory) {
    x = static_cast<T>(static_cast<int>(random() % 2001) - 1000) / (std::is_floating_point_v<T> ? T(37) : T(1));
    if (op == Micro::REDUCE_PROD && std::is_floating_point_v<T>) x = 1 + x / T(30000);
  }
  if constexpr (std::is_floating_point_v<T>) {
    if (op >= Micro::REDUCE_MAX && memory.size() > 40) memory[memory.size() / 3] = std::numeric_limits<T>::quiet_NaN();
  }

  Builder b(Opcode::TILE, {});
  int64_t kept_size = 1, reduced_size = 1;
  Window in = window(0, dtype, {}, -low), out = window(1, is_arg(op) ? Dtype::INT64 : dtype, {});
  for (int d = rank - 1; d >= 0; --d) {
    in.strides[d] = s.strides[d];
    if (d < rank - s.reduced) out.strides[d] = kept_size;
    (d < rank - s.reduced ? kept_size : reduced_size) *= s.extents[d];
  }
  b.instruction.rank = rank;
  for (int d = 0; d < rank; ++d) b.instruction.extents[d] = s.extents[d];
  b.instruction.params = {static_cast<int64_t>(mode), s.reduced};
  b.store(b.op(op, schema::find(dtype)->kind, b.load(in)), out);

  std::vector<double> expected(kept_size);
  for (int64_t k = 0; k < kept_size; ++k) {
    std::vector<T> row(reduced_size);
    for (int64_t r = 0; r < reduced_size; ++r) {
      int64_t address = in.offset, rest = r;
      for (int d = rank - 1; d >= rank - s.reduced; --d)
        address += rest % s.extents[d] * s.strides[d], rest /= s.extents[d];
      rest = k;
      for (int d = rank - s.reduced - 1; d >= 0; --d)
        address += rest % s.extents[d] * s.strides[d], rest /= s.extents[d];
      row[r] = memory[address];
    }
    expected[k] = reduce_reference<T>(op, mode, row);
  }

  const IsaList list = available_isas();
  for (int i = 0; i < list.count; ++i) {
    use_isa(*list.sets[i]);
    for (const int count : {1, 2, 3}) {
      set_threads(count);
      std::vector<T> result(kept_size + 1, T(7));
      std::vector<int64_t> indices(kept_size + 1, 7);
      b.run({memory.data(), is_arg(op) ? static_cast<void*>(indices.data()) : result.data()});
      bool equal = true;
      for (int64_t k = 0; k < kept_size; ++k)
        equal &= same(is_arg(op) ? static_cast<double>(indices[k]) : static_cast<double>(result[k]), expected[k]);
      const std::string isa_name = list.sets[i]->name, op_name = schema::find(op)->name;
      const int mode_code = static_cast<int>(mode);
      CAPTURE(s.name);
      CAPTURE(op_name);
      CAPTURE(mode_code);
      CAPTURE(isa_name);
      CAPTURE(count);
      CHECK(equal);
      CHECK((is_arg(op) ? indices[kept_size] == 7 : result[kept_size] == T(7)));
    }
  }
  use_isa(*list.sets[0]);
  set_threads(2);
}

std::vector<Shape> shapes() {
  std::vector<Shape> result;
  for (const int64_t n : {0, 1, 2, 15, 16, 17, 63, 64, 65, 511, 512, 513, 1025, 32769}) {
    for (const int64_t m : {1, 3, 40}) {
      if (n * m > 500000) continue;
      result.push_back({"rows " + std::to_string(m) + "x" + std::to_string(n), {m, n}, 1, {n, 1}});
      result.push_back({"columns " + std::to_string(m) + "x" + std::to_string(n), {m, n}, 1, {1, m}});
    }
  }
  result.push_back({"everything", {100003}, 1, {1}});
  result.push_back({"no rows", {0, 5}, 1, {5, 1}});
  result.push_back({"backwards", {4, 600}, 1, {600, -1}});
  result.push_back({"gaps", {5, 33}, 1, {100, 3}});
  result.push_back({"two kept, two reduced", {3, 4, 5, 6}, 2, {120, 30, 6, 1}});
  result.push_back({"mixed order", {4, 6, 3, 5}, 2, {30, 1, 120, 6}});
  result.push_back({"mixed order, long", {2, 3, 70, 500}, 2, {500, 70000, 1000, 1}});
  result.push_back({"batch statistics", {6, 7, 11, 3}, 3, {33, 198, 3, 1}});
  result.push_back({"wide", {3000, 5}, 1, {1, 3000}});
  result.push_back({"wide, many", {300, 2050}, 1, {1, 300}});
  result.push_back({"tall, narrow", {7, 5000}, 1, {1, 7}});
  result.push_back({"broadcast", {9, 70}, 1, {1, 0}});
  result.push_back({"long, broken", {1, 300, 301}, 2, {0, 302, 1}});
  return result;
}

TEST_CASE("reductions of floats") {
  for (const Shape& s : shapes()) {
    for (const TileMode mode : {TileMode::ROW, TileMode::COLUMN}) {
      for (const Micro op : {Micro::REDUCE_SUM, Micro::REDUCE_PROD, Micro::REDUCE_MAX, Micro::REDUCE_MIN,
                             Micro::REDUCE_ARGMAX, Micro::REDUCE_ARGMIN}) {
        check<float>(s, op, mode, Dtype::FP32);
      }
    }
  }
}

TEST_CASE("reductions of integers") {
  for (const Shape& s : shapes()) {
    if (s.extents[0] * s.extents.back() > 50000) continue;
    for (const TileMode mode : {TileMode::ROW, TileMode::COLUMN}) {
      for (const Micro op : {Micro::REDUCE_SUM, Micro::REDUCE_PROD, Micro::REDUCE_MAX, Micro::REDUCE_MIN,
                             Micro::REDUCE_ARGMAX, Micro::REDUCE_ARGMIN}) {
        check<int32_t>(s, op, mode, Dtype::INT32);
        check<int64_t>(s, op, mode, Dtype::INT64);
      }
      check<int32_t>(s, Micro::REDUCE_AND, mode, Dtype::INT32);
      check<int32_t>(s, Micro::REDUCE_OR, mode, Dtype::INT32);
    }
  }
}

TEST_CASE("softmax and layer norm in one instruction") {
  for (const int64_t rows : {1, 3, 50}) {
    for (const int64_t n : {1, 7, 64, 300, 1000, 1024, 4096, 40000, 70000}) {
      if (rows * n > 200000) continue;
      for (const TileMode mode : {TileMode::ROW, TileMode::COLUMN}) {
        CAPTURE(rows);
        CAPTURE(n);
        std::vector<float> x(rows * n), y(rows * n), z(rows * n);
        for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i) * 0.37f) * 4;
        const Window w = window(0, Dtype::FP32, {n, 1}), wy = window(1, Dtype::FP32, {n, 1}),
                     wz = window(2, Dtype::FP32, {n, 1});
        Builder b = Builder::tile({rows, n}, mode, 1);
        const int v = b.load(w);
        const int e = b.f32(Micro::EXP, b.f32(Micro::SUB, v, b.f32(Micro::REDUCE_MAX, v)));
        b.store(b.f32(Micro::DIV, e, b.f32(Micro::REDUCE_SUM, e)), wy);
        b.run({x.data(), y.data()});
        Builder l = Builder::tile({rows, n}, mode, 1);
        const int u = l.load(w), scale = l.constant(1.0 / static_cast<double>(n));
        const int centred = l.f32(Micro::SUB, u, l.f32(Micro::MUL, l.f32(Micro::REDUCE_SUM, u), scale));
        const int variance = l.f32(Micro::MUL, l.f32(Micro::REDUCE_SUM, l.f32(Micro::MUL, centred, centred)), scale);
        l.store(l.f32(Micro::MUL, centred, l.f32(Micro::RSQRT, l.f32(Micro::ADD, variance, l.constant(1e-5)))), wz);
        l.run({x.data(), nullptr, z.data()});
        double worst = 0;
        for (int64_t r = 0; r < rows; ++r) {
          const float* p = &x[r * n];
          double largest = -1e30, sum = 0, mean = 0, square = 0;
          for (int64_t i = 0; i < n; ++i) largest = std::max<double>(largest, p[i]), mean += p[i];
          mean /= static_cast<double>(n);
          for (int64_t i = 0; i < n; ++i) sum += std::exp(p[i] - largest), square += (p[i] - mean) * (p[i] - mean);
          const double deviation = std::sqrt(square / static_cast<double>(n) + 1e-5);
          for (int64_t i = 0; i < n; ++i) {
            const double soft = std::exp(p[i] - largest) / sum;
            worst = std::max(
                {worst, std::fabs(y[r * n + i] - soft) / soft, std::fabs(z[r * n + i] - (p[i] - mean) / deviation)});
          }
        }
        CHECK(worst < 1e-5);
        std::vector<float> in_place = x;
        b.run({in_place.data(), in_place.data()});
        CHECK(in_place == y);
      }
    }
  }
}

TEST_CASE("kept operands and stores beside element ones") {
  const int64_t rows = 37, n = 130;
  std::vector<float> x(rows * n, 0.5f), weight(n, 2.0f), bias(rows), out(rows * n);
  std::vector<double> sums(rows);
  for (int64_t i = 0; i < rows; ++i) bias[i] = static_cast<float>(i);
  for (const TileMode mode : {TileMode::ROW, TileMode::COLUMN}) {
    Builder b = Builder::tile({rows, n}, mode, 1);
    const int product =
        b.f32(Micro::MUL, b.load(window(0, Dtype::FP32, {n, 1})), b.load(window(1, Dtype::FP32, {0, 1})));
    const int shift = b.load(window(2, Dtype::FP32, {1, 0}));
    const int sum = b.f32(Micro::ADD, b.f32(Micro::REDUCE_SUM, b.f32(Micro::ADD, product, shift)), shift);
    b.store(sum, window(4, Dtype::FP64, {1, 0}));
    b.store(b.f32(Micro::SUB, product, sum), window(3, Dtype::FP32, {n, 1}));
    b.run({x.data(), weight.data(), bias.data(), out.data(), sums.data()});
    for (int64_t r = 0; r < rows; ++r) {
      const float sum_of_row = static_cast<float>(n) * (1 + bias[r]) + bias[r];
      CHECK(sums[r] == sum_of_row);
      CHECK(out[r * n + 5] == 1 - sum_of_row);
    }
  }
}

TEST_CASE("rows of a block give what each of them gives alone") {
  const int64_t rows = 11;
  for (const int64_t n : {513, 700, 1024, 4096}) {
    CAPTURE(n);
    std::vector<float> x(rows * n), weight(n);
    for (size_t i = 0; i < x.size(); ++i) x[i] = std::cos(static_cast<float>(i) * 0.71f) * 3;
    for (int64_t i = 0; i < n; ++i) weight[i] = static_cast<float>(i % 13) - 6;
    const auto run = [&](int64_t first, int64_t count, std::vector<uint16_t>& half, std::vector<float>& sums) {
      Builder b = Builder::tile({count, n}, TileMode::ROW, 1);
      const int v = b.f32(Micro::MUL, b.load(window(0, Dtype::FP32, {n, 1}, first * n)), b.constant(0.3));
      const int shifted = b.f32(Micro::SUB, v, b.f32(Micro::REDUCE_MAX, v));
      const int e = b.f32(Micro::EXP, shifted), sum = b.f32(Micro::REDUCE_SUM, e);
      b.store(sum, window(2, Dtype::FP32, {1, 0}, first));
      b.store(b.f32(Micro::MUL, b.f32(Micro::DIV, e, sum), b.load(window(3, Dtype::FP32, {0, 1}))),
              window(1, Dtype::BF16, {n, 1}, first * n));
      b.run({x.data(), half.data(), sums.data(), weight.data()});
    };
    const IsaList list = available_isas();
    for (int i = 0; i < list.count; ++i) {
      use_isa(*list.sets[i]);
      std::vector<uint16_t> together(rows * n), alone(rows * n);
      std::vector<float> sums(rows), sums_alone(rows);
      run(0, rows, together, sums);
      for (int64_t r = 0; r < rows; ++r) run(r, 1, alone, sums_alone);
      CHECK(together == alone);
      CHECK(sums == sums_alone);
    }
    use_isa(*list.sets[0]);
  }
}

TEST_CASE("sum of indices along a reduced dimension") {
  std::vector<int64_t> out(4);
  Builder b = Builder::tile({4, 700}, TileMode::ROW, 1);
  const int index = b.op(Micro::ADD, Kind::I64, b.iota(1), b.iota(0));
  b.store(b.op(Micro::REDUCE_SUM, Kind::I64, index), window(0, Dtype::INT64, {1, 0}));
  b.run({out.data()});
  for (int64_t i = 0; i < 4; ++i) CHECK(out[i] == 699 * 700 / 2 + 700 * i);
}

}  // namespace
}  // namespace neuron::engine::test
