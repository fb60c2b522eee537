// MATMUL. In F32 the order of summation is fixed, so that the reference is met bit for bit on every instruction set,
// for every layout and number of threads.
#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "builder.h"
#include "engine/element.h"
#include "engine/isa.h"
#include "engine/pool.h"

namespace neuron::engine::test {
namespace {

struct Layout {
  std::string name;
  // Strides of the left operand along M, K; of the right one along K, N; of the result along M, N.
  int64_t am, ak, bk, bn, cm, cn;
};
std::vector<Layout> layouts(int64_t m, int64_t n, int64_t k) {
  return {{"nn", k, 1, n, 1, n, 1},
          {"nt", k, 1, 1, k, n, 1},
          {"tn", 1, m, n, 1, n, 1},
          {"tt", 1, m, 1, k, n, 1},
          {"nn, result transposed", k, 1, n, 1, 1, m},
          {"gaps", 2 * k, 2, 3 * n, 3, 2 * n, 2}};
}

template <class T>
std::vector<T> numbers(int64_t n, uint32_t seed) {
  std::vector<T> x(static_cast<size_t>(n));
  std::mt19937 random(seed);
  for (T& v : x)
    v = static_cast<T>(static_cast<int>(random() % 2001) - 1000) / (std::is_floating_point_v<T> ? T(256) : T(1));
  return x;
}

Builder matmul(int64_t m, int64_t n, int64_t k, const Layout& l, Dtype a, Dtype b, Kind kind = Kind::F32) {
  Builder mm(Opcode::MATMUL, {m, n, k});
  mm.instruction.params = {0, static_cast<int64_t>(kind), 0, 0, 0, 0};
  mm.add(window(0, a, {l.am, 0, l.ak}));
  mm.add(window(1, b, {0, l.bn, l.bk}));
  return mm;
}

// The contract: blocks of 384, products added one by one to 0, blocks added in order.
float dot_reference(const float* a, int64_t a_stride, const float* b, int64_t b_stride, int64_t k) {
  float total = 0;
  for (int64_t begin = 0; begin < k; begin += 384) {
    float sum = 0;
    for (int64_t i = begin; i < std::min(begin + 384, k); ++i) sum = std::fma(a[i * a_stride], b[i * b_stride], sum);
    total = begin == 0 ? sum : total + sum;
  }
  return total;
}

template <class F>
void on_every_machine(F&& body) {
  const IsaList list = available_isas();
  for (int s = 0; s < list.count; ++s) {
    use_isa(*list.sets[s]);
    for (const int count : {1, 2, 3}) {
      set_threads(count);
      const std::string isa_name = list.sets[s]->name;
      CAPTURE(isa_name);
      CAPTURE(count);
      body();
    }
  }
  use_isa(*list.sets[0]);
  set_threads(2);
}

TEST_CASE("fp32") {
  const int64_t sizes[][3] = {{1, 1, 1},      {1, 1, 1000},   {1, 100, 77},  {100, 1, 77},  {3, 5, 7},   {12, 32, 384},
                              {13, 33, 385},  {64, 64, 64},   {5, 300, 800}, {300, 5, 800}, {1, 257, 0}, {0, 4, 3},
                              {301, 129, 50}, {290, 310, 70}, {2, 1000, 3},  {31, 17, 1}};
  for (const auto& s : sizes) {
    const int64_t m = s[0], n = s[1], k = s[2];
    for (const Layout& l : layouts(m, n, k)) {
      CAPTURE(m);
      CAPTURE(n);
      CAPTURE(k);
      CAPTURE(l.name);
      auto a = numbers<float>(2 * m * k + 1, 1), b = numbers<float>(3 * k * n + 1, 2);
      std::vector<float> expected(2 * m * n + 1, -7);
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j)
          expected[i * l.cm + j * l.cn] = dot_reference(&a[i * l.am], l.ak, &b[j * l.bn], l.bk, k);
      }
      Builder mm = matmul(m, n, k, l, Dtype::FP32, Dtype::FP32);
      mm.store(mm.f32(Micro::ACC, 0), window(2, Dtype::FP32, {l.cm, l.cn, 0}));
      on_every_machine([&] {
        std::vector<float> c(expected.size(), -7);
        mm.run({a.data(), b.data(), c.data()});
        CHECK(c == expected);
      });
    }
  }
}

TEST_CASE("batches") {
  struct Case {
    std::string name;
    int64_t batch, a, b;  // strides in matrices
  };
  for (const Case& c : {Case{"each its own", 7, 1, 1}, Case{"one right operand", 7, 1, 0},
                        Case{"one left operand", 5, 0, 1}, Case{"none", 0, 1, 1}}) {
    for (const int64_t m : {1, 20}) {
      CAPTURE(c.name);
      CAPTURE(m);
      const int64_t n = 40, k = 50;
      auto a = numbers<float>(std::max<int64_t>(c.batch, 1) * m * k, 1),
           b = numbers<float>(std::max<int64_t>(c.batch, 1) * n * k, 2);
      std::vector<float> expected(c.batch * m * n);
      for (int64_t t = 0; t < c.batch; ++t) {
        for (int64_t i = 0; i < m; ++i) {
          for (int64_t j = 0; j < n; ++j)
            expected[(t * m + i) * n + j] = dot_reference(&a[(t * c.a * m + i) * k], 1, &b[t * c.b * k * n + j], n, k);
        }
      }
      Builder mm(Opcode::MATMUL, {c.batch, m, n, k});
      mm.instruction.params = {1, 0, 0, 0, 0, 0};
      mm.add(window(0, Dtype::FP32, {c.a * m * k, k, 0, 1}));
      mm.add(window(1, Dtype::FP32, {c.b * n * k, 0, 1, n}));
      mm.store(mm.f32(Micro::ACC, 0), window(2, Dtype::FP32, {m * n, n, 1, 0}));
      on_every_machine([&] {
        std::vector<float> result(expected.size(), -7);
        mm.run({a.data(), b.data(), result.data()});
        CHECK(result == expected);
      });
    }
  }
}

TEST_CASE("epilogue: bias, residual, activation, a scalar and two results") {
  for (const int64_t m : {1, 37, 400}) {
    for (const int64_t n : {1, 50, 300}) {
      const int64_t k = 30;
      CAPTURE(m);
      CAPTURE(n);
      auto a = numbers<float>(m * k, 1), b = numbers<float>(n * k, 2), bias = numbers<float>(n, 3),
           residual = numbers<float>(m * n, 4);
      Builder mm = matmul(m, n, k, layouts(m, n, k)[0], Dtype::FP32, Dtype::FP32);
      const int sum = mm.f32(Micro::ADD, mm.f32(Micro::ACC, 0), mm.load(window(2, Dtype::FP32, {0, 1, 0})));
      const int active = mm.f32(Micro::MAX, sum, mm.f32(Micro::MUL, mm.constant(0.5), mm.scalar(Kind::F32, 0)));
      mm.store(active, window(4, Dtype::BF16, {n, 1, 0}));
      mm.store(mm.f32(Micro::ADD, active, mm.load(window(3, Dtype::FP32, {n, 1, 0}))),
               window(5, Dtype::FP32, {1, m, 0}));
      std::vector<uint16_t> rounded(m * n);
      std::vector<float> expected(m * n);
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          const float x = std::max(dot_reference(&a[i * k], 1, &b[j], n, k) + bias[j], 1.0f);
          rounded[i * n + j] = float_to_bf16(x);
          expected[i + j * m] = x + residual[i * n + j];
        }
      }
      on_every_machine([&] {
        std::vector<uint16_t> first(m * n);
        std::vector<float> second(m * n);
        mm.run({a.data(), b.data(), bias.data(), residual.data(), first.data(), second.data()},
               {std::bit_cast<uint64_t>(2.0)});
        CHECK(first == rounded);
        CHECK(second == expected);
      });
    }
  }
}

TEST_CASE("16-bit operands: close to the exact product, and the same for every layout and number of threads") {
  for (const Dtype dtype : {Dtype::BF16, Dtype::FP16}) {
    for (const auto [m, n, k] :
         {std::array<int64_t, 3>{1, 100, 900}, {100, 1, 900}, {70, 90, 1601}, {300, 320, 33}, {5, 3, 1}}) {
      CAPTURE(m);
      CAPTURE(n);
      CAPTURE(k);
      const auto x = numbers<float>(m * k, 1), y = numbers<float>(n * k, 2);
      const auto narrow = [&](float v) { return dtype == Dtype::BF16 ? float_to_bf16(v) : float_to_half(v); };
      const auto wide = [&](uint16_t v) { return dtype == Dtype::BF16 ? Bf16::get(v) : Fp16::get(v); };
      const IsaList list = available_isas();
      for (int s = 0; s < list.count; ++s) {
        use_isa(*list.sets[s]);
        std::vector<float> first;
        for (const Layout& l : layouts(m, n, k)) {
          std::vector<uint16_t> a(2 * m * k), b(3 * n * k);
          for (int64_t i = 0; i < m; ++i) {
            for (int64_t p = 0; p < k; ++p) a[i * l.am + p * l.ak] = narrow(x[i * k + p]);
          }
          for (int64_t j = 0; j < n; ++j) {
            for (int64_t p = 0; p < k; ++p) b[j * l.bn + p * l.bk] = narrow(y[j * k + p]);
          }
          Builder mm = matmul(m, n, k, l, dtype, dtype);
          mm.store(mm.f32(Micro::ACC, 0), window(2, Dtype::FP32, {l.cm, l.cn, 0}));
          for (const int count : {1, 2}) {
            set_threads(count);
            std::vector<float> c(2 * m * n), packed(m * n);
            mm.run({a.data(), b.data(), c.data()});
            for (int64_t i = 0; i < m; ++i) {
              for (int64_t j = 0; j < n; ++j) packed[i * n + j] = c[i * l.cm + j * l.cn];
            }
            if (first.empty()) first = packed;
            CHECK(packed == first);
          }
        }
        double worst = 0;
        for (int64_t i = 0; i < m; ++i) {
          for (int64_t j = 0; j < n; ++j) {
            double sum = 0, size = 0;
            for (int64_t p = 0; p < k; ++p) {
              const double product = static_cast<double>(wide(narrow(x[i * k + p]))) * wide(narrow(y[j * k + p]));
              sum += product;
              size += std::fabs(product);
            }
            worst = std::max(worst, std::fabs(first[i * n + j] - sum) / (size + 1e-30));
          }
        }
        CHECK(worst < 2e-6);  // float accumulation; bf16 rounding of the sum would be 4e-3
      }
      use_isa(*list.sets[0]);
    }
  }
  set_threads(2);
}

TEST_CASE_TEMPLATE("integers are exact", T, uint8_t, int16_t, int32_t, int64_t) {
  const Dtype dtype = sizeof(T) == 1   ? Dtype::UINT8
                      : sizeof(T) == 2 ? Dtype::INT16
                      : sizeof(T) == 4 ? Dtype::INT32
                                       : Dtype::INT64;
  const int64_t m = 19, n = 45, k = 600;
  auto a = numbers<T>(m * k, 1), b = numbers<T>(n * k, 2);
  if (sizeof(T) == 8) a[0] = static_cast<T>(int64_t{1} << 40);
  const Layout l = layouts(m, n, k)[0];
  Builder mm = matmul(m, n, k, l, dtype, dtype, Kind::I64);
  mm.store(mm.op(Micro::ACC, Kind::I64, 0), window(2, Dtype::INT64, {n, 1, 0}));
  std::vector<int64_t> expected(m * n);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t p = 0; p < k; ++p)
        expected[i * n + j] += static_cast<int64_t>(a[i * k + p]) * static_cast<int64_t>(b[p * n + j]);
    }
  }
  on_every_machine([&] {
    std::vector<int64_t> c(m * n);
    mm.run({a.data(), b.data(), c.data()});
    CHECK(c == expected);
  });
}

}  // namespace
}  // namespace neuron::engine::test
