// DMA, GATHER, SCATTER and SCAN.
#include <doctest/doctest.h>

#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "builder.h"
#include "engine/element.h"
#include "engine/isa.h"
#include "engine/pool.h"

namespace neuron::engine::test {
namespace {

TEST_CASE_TEMPLATE("copies with any strides", T, uint8_t, uint16_t, uint32_t, uint64_t) {
  const Dtype dtype = sizeof(T) == 1   ? Dtype::UINT8
                      : sizeof(T) == 2 ? Dtype::BF16
                      : sizeof(T) == 4 ? Dtype::FP32
                                       : Dtype::FP64;
  const int64_t a = 19, b = 70, c = 67;
  std::vector<T> x(a * b * c), expected, out;
  std::mt19937_64 random(3);
  for (T& v : x) v = static_cast<T>(random());
  struct Case {
    std::string name;
    Window from, to;
  };
  const Case cases[] = {
      {"contiguous", window(0, dtype, {b * c, c, 1}), window(1, dtype, {b * c, c, 1})},
      {"transposed", window(0, dtype, {1, a, a * b}), window(1, dtype, {b * c, c, 1})},
      {"transposed result", window(0, dtype, {b * c, c, 1}), window(1, dtype, {1, a, a * b})},
      {"middle first", window(0, dtype, {c, a * c, 1}), window(1, dtype, {b * c, c, 1})},
      {"backwards", window(0, dtype, {b * c, -c, -1}, b * c - 1), window(1, dtype, {b * c, c, 1})},
      {"broadcast", window(0, dtype, {0, 1, 0}), window(1, dtype, {b * c, c, 1})},
      {"gaps", window(0, dtype, {b * c, c, 1}), window(1, dtype, {2 * b * c, 2 * c, 2})},
  };
  for (const Case& k : cases) {
    CAPTURE(k.name);
    out.assign(2 * x.size(), T(1));
    expected = out;
    for (int64_t i = 0; i < a; ++i) {
      for (int64_t j = 0; j < b; ++j) {
        for (int64_t l = 0; l < c; ++l) {
          const auto at = [&](const Window& w) {
            return w.offset + i * w.strides[0] + j * w.strides[1] + l * w.strides[2];
          };
          expected[at(k.to)] = x[at(k.from)];
        }
      }
    }
    Builder d(Opcode::DMA, {a, b, c});
    d.add(k.from);
    d.add(k.to);
    d.run({x.data(), out.data()});
    CHECK(out == expected);
  }
}

TEST_CASE("a large copy goes around the caches") {
  const int64_t n = (9 << 20) / 4 + 5;
  std::vector<float> x(n), y(n + 1, 7);
  std::iota(x.begin(), x.end(), 0.0f);
  Builder d(Opcode::DMA, {n});
  d.add(window(0, Dtype::FP32, {1}));
  d.add(window(1, Dtype::FP32, {1}));
  d.run({x.data(), y.data()});
  CHECK(std::equal(x.begin(), x.end(), y.begin()));
  CHECK(y[n] == 7);
}

TEST_CASE("conversions") {
  const auto convert = [](Dtype from, const void* x, Dtype to, void* y, int64_t n) {
    Builder d(Opcode::DMA, {n});
    d.add(window(0, from, {1}));
    d.add(window(1, to, {1}));
    d.run({const_cast<void*>(x), y});
  };
  const std::vector<float> x = {0, -0.0f, 1.5f, -2.5f, 3e9f, 1e20f, 65519.0f, 65520.0f, 1e-8f, 6e-8f, 1.00390625f};
  std::vector<uint16_t> half(x.size()), bf16(x.size());
  convert(Dtype::FP32, x.data(), Dtype::FP16, half.data(), 11);
  convert(Dtype::FP32, x.data(), Dtype::BF16, bf16.data(), 11);
  for (size_t i = 0; i < x.size(); ++i) {
    CHECK(half[i] == float_to_half(x[i]));
    CHECK(bf16[i] == float_to_bf16(x[i]));
  }
  CHECK(half[6] == 0x7bff);
  CHECK(half[7] == 0x7c00);
  CHECK(bf16[10] == 0x3f80);  // a tie goes to the even neighbour
  std::vector<int32_t> ints(x.size());
  convert(Dtype::FP32, x.data(), Dtype::INT32, ints.data(), 11);
  CHECK(ints == std::vector<int32_t>{0, 0, 1, -2, INT32_MIN, INT32_MIN, 65519, 65520, 0, 0, 1});
  std::vector<int64_t> wide(x.size());
  convert(Dtype::FP32, x.data(), Dtype::INT64, wide.data(), 11);
  CHECK(wide == std::vector<int64_t>{0, 0, 1, -2, 3000000000, INT64_MIN, 65519, 65520, 0, 0, 1});
  const std::vector<int64_t> big = {0, int64_t{1} << 40, -1, 255};
  std::vector<uint8_t> truth(4), low(4);
  convert(Dtype::INT64, big.data(), Dtype::BOOL, truth.data(), 4);
  convert(Dtype::INT64, big.data(), Dtype::UINT8, low.data(), 4);
  CHECK(truth == std::vector<uint8_t>{0, 1, 1, 1});
  CHECK(low == std::vector<uint8_t>{0, 0, 255, 255});
}

TEST_CASE("every fp16 and bf16 number survives a load and a store on every instruction set") {
  std::vector<uint16_t> x(65536), y(65536), z(65536);
  std::iota(x.begin(), x.end(), uint16_t{0});
  const IsaList list = available_isas();
  for (int s = 0; s < list.count; ++s) {
    use_isa(*list.sets[s]);
    for (const Dtype dtype : {Dtype::FP16, Dtype::BF16}) {
      std::vector<float> f(65536);
      Builder b = Builder::tile({65536});
      b.store(b.load(window(0, dtype, {1})), window(1, Dtype::FP32, {1}));
      b.run({x.data(), f.data()});
      Builder c = Builder::tile({65536});
      c.store(c.load(window(0, Dtype::FP32, {1})), window(1, dtype, {1}));
      c.run({f.data(), y.data()});
      size_t different = 0;
      for (size_t i = 0; i < x.size(); ++i) {
        const float exact = dtype == Dtype::FP16 ? Fp16::get(x[i]) : Bf16::get(x[i]);
        different += std::bit_cast<uint32_t>(exact) != std::bit_cast<uint32_t>(f[i]);
        const uint16_t quiet = exact == exact ? 0 : dtype == Dtype::FP16 ? 0x200 : 0x40;
        different += y[i] != (x[i] | quiet);
      }
      CHECK(different == 0);
    }
  }
  use_isa(*list.sets[0]);
}

// Rows of a table: indices along dimension 0, whole rows as windows.
Builder rows(Opcode opcode, int64_t count, int64_t size, int64_t width, IndexMode mode, Combine combine,
             Dtype dtype = Dtype::FP32) {
  Builder b(opcode, {count, width});
  b.instruction.params = {1, 1, 0, static_cast<int64_t>(mode), static_cast<int64_t>(combine), 0};
  b.add(window(0, dtype, {0, 1}));
  b.add(window(1, Dtype::INT64, {1, 0}));
  b.add(window(2, dtype, {width, 1}));
  b.add(window(0, dtype, {width}));
  b.add(window(0, dtype, {size - 1}));
  return b;
}

TEST_CASE("rows of a table") {
  const int64_t size = 50, width = 37;
  std::vector<float> table(size * width);
  std::iota(table.begin(), table.end(), 0.0f);
  std::vector<int64_t> indices(1000);
  for (size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<int64_t>(i * 7919 % size);
  std::vector<float> out(indices.size() * width);
  rows(Opcode::GATHER, 1000, size, width, IndexMode::CHECK, Combine::SET)
      .run({table.data(), indices.data(), out.data()});
  bool equal = true;
  for (size_t i = 0; i < indices.size(); ++i) {
    for (int64_t k = 0; k < width; ++k) equal &= out[i * width + k] == table[indices[i] * width + k];
  }
  CHECK(equal);
}

TEST_CASE("indices out of range") {
  std::vector<float> table(50 * 4), out(3 * 4, -1);
  std::iota(table.begin(), table.end(), 0.0f);
  std::vector<int64_t> indices = {3, 50, -1};
  const Builder check = rows(Opcode::GATHER, 3, 50, 4, IndexMode::CHECK, Combine::SET);
  try {
    check.run({table.data(), indices.data(), out.data()});
    FAIL("no error");
  } catch (const Error& e) {
    CHECK(e.status() == NRT_EXEC_OOB);
    CHECK(std::string(e.what()) ==
          "gather: index 50 (component 0 of index 1) is out of range: legal are 0 to 49; in test");
  }
  rows(Opcode::GATHER, 3, 50, 4, IndexMode::CLAMP, Combine::SET).run({table.data(), indices.data(), out.data()});
  CHECK(out == std::vector<float>{12, 13, 14, 15, 196, 197, 198, 199, 0, 1, 2, 3});
  const auto before = table;
  rows(Opcode::SCATTER, 3, 50, 4, IndexMode::CLAMP, Combine::ADD).run({table.data(), indices.data(), out.data()});
  for (size_t i = 0; i < table.size(); ++i) CHECK(table[i] == before[i] + (i >= 12 && i < 16 ? out[i - 12] : 0));
  CHECK_THROWS_AS(
      rows(Opcode::SCATTER, 3, 50, 4, IndexMode::CHECK, Combine::ADD).run({table.data(), indices.data(), out.data()}),
      Error);
}

TEST_CASE("gather of single elements by two components") {
  std::vector<int16_t> x(20 * 30);
  std::iota(x.begin(), x.end(), int16_t{0});
  std::vector<int32_t> indices = {1, 2, 19, 29, 0, 0, 7, 11};
  std::vector<int16_t> out(4);
  Builder b(Opcode::GATHER, {4});
  b.instruction.params = {1, 2, 1, 0, 0, 0};
  b.add(window(0, Dtype::INT16, {0}));
  b.add(window(1, Dtype::INT32, {2}));
  b.add(window(2, Dtype::INT16, {1}));
  b.add(window(0, Dtype::INT16, {30, 1}));
  b.add(window(0, Dtype::INT16, {19, 29}));
  b.run({x.data(), indices.data(), out.data()});
  CHECK(out == std::vector<int16_t>{32, 599, 0, 221});
}

TEST_CASE("duplicate updates combine in the order of the indices, for any number of threads") {
  for (const int64_t width : {1, 3, 700}) {
    const int64_t size = 23, count = 5000;
    std::vector<int64_t> indices(count);
    std::vector<float> updates(count * width);
    std::mt19937 random(5);
    for (auto& i : indices) i = static_cast<int64_t>(random() % size);
    for (auto& u : updates) u = static_cast<float>(random() % 10000) / 77;
    for (const Combine combine : {Combine::SET, Combine::ADD, Combine::MIN, Combine::MAX}) {
      std::vector<float> expected(size * width, 10);
      for (int64_t i = 0; i < count; ++i) {
        for (int64_t k = 0; k < width; ++k) {
          float& o = expected[indices[i] * width + k];
          const float u = updates[i * width + k];
          o = combine == Combine::SET   ? u
              : combine == Combine::ADD ? o + u
              : combine == Combine::MIN ? std::min(o, u)
                                        : std::max(o, u);
        }
      }
      for (const int n : {1, 2, 5}) {
        set_threads(n);
        std::vector<float> out(size * width, 10);
        rows(Opcode::SCATTER, count, size, width, IndexMode::CHECK, combine)
            .run({out.data(), indices.data(), updates.data()});
        CHECK(out == expected);
      }
    }
  }
  set_threads(2);
}

TEST_CASE("updates whose windows overlap") {
  // Windows of 3 elements at starts 0 to 7 of 10 elements.
  std::vector<float> out(10, 0);
  std::vector<int64_t> indices(40000);
  for (size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<int64_t>(i * 5 % 8);
  std::vector<float> updates(indices.size() * 3), expected(10, 0);
  for (size_t i = 0; i < updates.size(); ++i) updates[i] = 1.0f / static_cast<float>(i + 1);
  for (size_t i = 0; i < indices.size(); ++i) {
    for (int k = 0; k < 3; ++k) expected[indices[i] + k] += updates[3 * i + k];
  }
  Builder b(Opcode::SCATTER, {40000, 3});
  b.instruction.params = {1, 1, 0, 0, static_cast<int64_t>(Combine::ADD), 0};
  b.add(window(0, Dtype::FP32, {0, 1}));
  b.add(window(1, Dtype::INT64, {1, 0}));
  b.add(window(2, Dtype::FP32, {3, 1}));
  b.add(window(0, Dtype::FP32, {1}));
  b.add(window(0, Dtype::FP32, {7}));
  b.run({out.data(), indices.data(), updates.data()});
  CHECK(out == expected);
}

template <class T>
void check_scan(Dtype dtype, Combine combine, std::array<int64_t, 3> extents, std::array<int64_t, 3> strides,
                bool reverse) {
  std::vector<T> x(static_cast<size_t>(extents[0] * extents[1] * extents[2]));
  for (size_t i = 0; i < x.size(); ++i)
    x[i] =
        static_cast<T>(i * 37 % 101) / static_cast<T>(combine == Combine::MUL && std::is_floating_point_v<T> ? 50 : 3);
  std::vector<T> expected(x.size());
  for (int64_t i = 0; i < extents[0]; ++i) {
    for (int64_t j = 0; j < extents[1]; ++j) {
      T sum = 0;
      for (int64_t k = 0; k < extents[2]; ++k) {
        const int64_t at = i * strides[0] + j * strides[1] + (reverse ? extents[2] - 1 - k : k) * strides[2];
        using W = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;
        const auto wrap = [](W v) { return static_cast<T>(v); };
        sum = k == 0                    ? x[at]
              : combine == Combine::ADD ? wrap(static_cast<W>(sum) + static_cast<W>(x[at]))
              : combine == Combine::MUL ? wrap(static_cast<W>(sum) * static_cast<W>(x[at]))
              : combine == Combine::MIN ? std::min(sum, x[at])
                                        : std::max(sum, x[at]);
        expected[at] = sum;
      }
    }
  }
  Builder s(Opcode::SCAN, {extents[0], extents[1], extents[2]});
  s.instruction.params = {static_cast<int64_t>(combine), reverse, 0, 0, 0, 0};
  for (const uint32_t buffer : {0u, 1u}) s.add(window(buffer, dtype, {strides[0], strides[1], strides[2]}));
  const IsaList list = available_isas();
  for (int k = 0; k < list.count; ++k) {
    use_isa(*list.sets[k]);
    std::vector<T> out(x.size());
    s.run({x.data(), out.data()});
    CHECK(out == expected);
    out = x;
    s.run({out.data(), out.data()});
    CHECK(out == expected);
  }
  use_isa(*list.sets[0]);
}

TEST_CASE("scans along each dimension, from both ends, in place too") {
  for (const Combine combine : {Combine::ADD, Combine::MUL, Combine::MIN, Combine::MAX}) {
    for (const bool reverse : {false, true}) {
      for (const int64_t b : {1, 15, 16, 33, 300}) {
        CAPTURE(static_cast<int>(combine));
        CAPTURE(reverse);
        CAPTURE(b);
        const int64_t a = 5, c = 7;
        check_scan<float>(Dtype::FP32, combine, {a, c, b}, {b * c, b, 1}, reverse);
        check_scan<float>(Dtype::FP32, combine, {a, c, b}, {b * c, 1, c}, reverse);
        check_scan<int32_t>(Dtype::INT32, combine, {a, c, b}, {b * c, b, 1}, reverse);
        check_scan<int64_t>(Dtype::INT64, combine, {a, c, b}, {b * c, b, 1}, reverse);
        check_scan<int64_t>(Dtype::INT64, combine, {a, c, b}, {b, a * b, 1}, reverse);
      }
    }
  }
}

}  // namespace
}  // namespace neuron::engine::test
