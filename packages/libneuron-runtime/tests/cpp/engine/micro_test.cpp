// Every micro-operation on every kind and every class of operands (vectors, launch scalars, results of other
// operations, the same register twice) against scalar references, on every instruction set.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "base/error.h"
#include "builder.h"
#include "engine/element.h"
#include "engine/isa.h"

namespace neuron::engine::test {
namespace {

constexpr int64_t kCount = 403;  // some groups and a part of one on every instruction set

template <class T>
std::vector<T> values(int seed) {
  std::vector<T> special;
  if constexpr (std::is_floating_point_v<T>) {
    const T inf = std::numeric_limits<T>::infinity();
    special = {T(0),    -T(0),    1,       -1,       T(0.5),    T(-2.5), inf, -inf, std::numeric_limits<T>::quiet_NaN(),
               T(3e38), T(1e-40), T(7.75), T(-1e-3), T(8388609)};
  } else {
    special = {0,       1,    -1, 2, -7, 31, 63, 64, 40, std::numeric_limits<T>::max(), std::numeric_limits<T>::min(),
               1000003, -255, 127};
  }
  std::vector<T> x(kCount);
  for (int64_t i = 0; i < kCount; ++i) {
    x[i] = i % 3 ? special[static_cast<size_t>((i / (seed == 1 ? 1 : 13) + i) % special.size())]
                 : static_cast<T>(static_cast<int>(i * (seed == 1 ? 7919 : 104729) % 2001) - 1000) /
                       (std::is_floating_point_v<T> ? T(16) : T(1));
  }
  return x;
}

template <class T>
using Unsigned = std::make_unsigned_t<T>;
template <class T>
constexpr int kBits = static_cast<int>(sizeof(T) * 8);

template <class T>
T integer_power(T base, T exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent & 1 ? -1 : 1) : 0;
  T r = 1;
  for (T e = 0; e < exponent; ++e) {
    r = static_cast<T>(static_cast<Unsigned<T>>(r) * static_cast<Unsigned<T>>(base));
  }
  return r;
}

template <class T>
double compare(Micro op, T a, T b) {
  switch (op) {
    case Micro::EQ:
      return a == b;
    case Micro::NE:
      return a != b;
    case Micro::LT:
      return a < b;
    case Micro::LE:
      return a <= b;
    case Micro::GT:
      return a > b;
    default:
      return a >= b;
  }
}
template <class T>
T binary(Micro op, T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    switch (op) {
      case Micro::ADD:
        return a + b;
      case Micro::SUB:
        return a - b;
      case Micro::MUL:
        return a * b;
      case Micro::DIV:
        return a / b;
      case Micro::REM:
        return std::fmod(a, b);
      case Micro::MAX:
        return std::isnan(a) || std::isnan(b) ? std::numeric_limits<T>::quiet_NaN() : std::max(a, b);
      case Micro::MIN:
        return std::isnan(a) || std::isnan(b) ? std::numeric_limits<T>::quiet_NaN() : std::min(a, b);
      default:
        return static_cast<T>(std::pow(static_cast<double>(a), static_cast<double>(b)));
    }
  } else {
    using U = Unsigned<T>;
    const bool inside = b >= 0 && b < kBits<T>;
    switch (op) {
      case Micro::ADD:
        return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
      case Micro::SUB:
        return static_cast<T>(static_cast<U>(a) - static_cast<U>(b));
      case Micro::MUL:
        return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
      case Micro::DIV:
        return b == -1 ? static_cast<T>(U{0} - static_cast<U>(a)) : a / b;
      case Micro::REM:
        return b == -1 ? 0 : a % b;
      case Micro::MAX:
        return std::max(a, b);
      case Micro::MIN:
        return std::min(a, b);
      case Micro::POW:
        return integer_power(a, b);
      case Micro::AND:
        return a & b;
      case Micro::OR:
        return a | b;
      case Micro::XOR:
        return a ^ b;
      case Micro::SHL:
        return inside ? static_cast<T>(static_cast<U>(a) << b) : 0;
      case Micro::SHR:
        return inside ? a >> b : a >> (kBits<T> - 1);
      default:
        return inside ? static_cast<T>(static_cast<U>(a) >> b) : 0;
    }
  }
}
template <class T>
T unary(Micro op, T a) {
  if constexpr (std::is_floating_point_v<T>) {
    switch (op) {
      case Micro::NEG:
        return -a;
      case Micro::ABS:
        return std::fabs(a);
      case Micro::SIGN:
        return std::isnan(a) || a == 0 ? a : std::copysign(T(1), a);
      case Micro::FLOOR:
        return std::floor(a);
      case Micro::CEIL:
        return std::ceil(a);
      case Micro::ROUND:
        return std::nearbyint(a);
      case Micro::TRUNC:
        return std::trunc(a);
      case Micro::ROUND_BF16:
        return Bf16::get(float_to_bf16(a));
      case Micro::ROUND_FP16:
        return half_to_float(float_to_half(a));
      default:
        return std::sqrt(a);
    }
  } else {
    switch (op) {
      case Micro::NEG:
        return static_cast<T>(Unsigned<T>{0} - static_cast<Unsigned<T>>(a));
      case Micro::ABS:
        return a < 0 ? static_cast<T>(Unsigned<T>{0} - static_cast<Unsigned<T>>(a)) : a;
      case Micro::SIGN:
        return (a > 0) - (a < 0);
      case Micro::NOT:
        return ~a;
      case Micro::WRAP_INT8:
        return static_cast<int8_t>(a);
      case Micro::WRAP_UINT8:
        return static_cast<uint8_t>(a);
      default:
        return static_cast<int16_t>(a);
    }
  }
}

template <class T>
bool equal(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
    return a == b && (a != 0 || std::signbit(a) == std::signbit(b));
  }
  return a == b;
}

template <class T>
struct KindOf;
template <>
struct KindOf<float> {
  static constexpr Kind kind = Kind::F32;
  static constexpr Dtype dtype = Dtype::FP32;
};
template <>
struct KindOf<int32_t> {
  static constexpr Kind kind = Kind::I32;
  static constexpr Dtype dtype = Dtype::INT32;
};
template <>
struct KindOf<int64_t> {
  static constexpr Kind kind = Kind::I64;
  static constexpr Dtype dtype = Dtype::INT64;
};

template <class T>
uint64_t scalar_bits(T x) {
  if constexpr (std::is_floating_point_v<T>) return std::bit_cast<uint64_t>(static_cast<double>(x));
  return static_cast<uint64_t>(static_cast<int64_t>(x));
}

template <class F>
void on_every_isa(F&& body) {
  const IsaList list = available_isas();
  for (int s = 0; s < list.count; ++s) {
    use_isa(*list.sets[s]);
    const std::string isa_name = list.sets[s]->name;
    CAPTURE(isa_name);
    body();
  }
  use_isa(*list.sets[0]);
}

enum Operand { VECTOR, NUMBER, COMPUTED };  // COMPUTED: NOT NOT x or - - x, so that it is a result and not a LOAD

template <class T>
int operand(Builder& b, Operand form, int buffer) {
  constexpr Kind kind = KindOf<T>::kind;
  if (form == NUMBER) return b.scalar(kind, buffer);
  const int x = b.load(window(static_cast<uint32_t>(buffer), KindOf<T>::dtype, {1}));
  return form == VECTOR ? x : b.op(Micro::NEG, kind, b.op(Micro::NEG, kind, x));
}

template <class T>
void check_binary(Micro op, bool comparison) {
  auto x = values<T>(1), y = values<T>(2);
  constexpr bool integer = std::is_integral_v<T>;
  if (integer && (op == Micro::DIV || op == Micro::REM)) {
    for (T& v : y) v = v == 0 ? T(3) : v;
  }
  if constexpr (integer) {
    if (op == Micro::POW) {
      for (T& v : y) v %= 70;
    }
  }
  const std::string name = schema::find(op)->name, kind = name_of(KindOf<T>::kind);
  CAPTURE(name);
  CAPTURE(kind);
  for (const Operand left : {VECTOR, NUMBER, COMPUTED}) {
    for (const Operand right : {VECTOR, NUMBER, COMPUTED}) {
      CAPTURE(static_cast<int>(left));
      CAPTURE(static_cast<int>(right));
      Builder b = Builder::tile({kCount});
      const int l = operand<T>(b, left, 0), r = operand<T>(b, right, 1);
      b.store(b.op(op, KindOf<T>::kind, l, r), window(2, comparison ? Dtype::INT32 : KindOf<T>::dtype, {1}));
      for (const int64_t which : {int64_t{4}, int64_t{200}}) {
        on_every_isa([&] {
          std::vector<T> out(kCount);
          std::vector<int32_t> truth(kCount);
          b.run({x.data(), y.data(), comparison ? static_cast<void*>(truth.data()) : out.data()},
                {scalar_bits(x[which]), scalar_bits(y[which])});
          int64_t wrong = 0;
          for (int64_t i = 0; i < kCount; ++i) {
            const T a = left == NUMBER ? x[which] : x[i], c = right == NUMBER ? y[which] : y[i];
            if (comparison) {
              wrong += truth[i] != compare(op, a, c);
            } else if ((op == Micro::MAX || op == Micro::MIN) && a == 0 && c == 0) {
              wrong += out[i] != 0;  // either zero
            } else {
              wrong += !equal(out[i], binary(op, a, c));
            }
          }
          CHECK(wrong == 0);
        });
      }
    }
  }
  // The same register twice.
  if (integer && (op == Micro::DIV || op == Micro::REM || op == Micro::POW)) return;
  for (const Operand form : {VECTOR, COMPUTED}) {
    Builder b = Builder::tile({kCount});
    const int v = operand<T>(b, form, 0);
    b.store(b.op(op, KindOf<T>::kind, v, v), window(1, comparison ? Dtype::INT32 : KindOf<T>::dtype, {1}));
    on_every_isa([&] {
      std::vector<T> out(kCount);
      std::vector<int32_t> truth(kCount);
      b.run({x.data(), comparison ? static_cast<void*>(truth.data()) : out.data()});
      int64_t wrong = 0;
      for (int64_t i = 0; i < kCount; ++i)
        wrong += comparison ? truth[i] != compare(op, x[i], x[i]) : !equal(out[i], binary(op, x[i], x[i]));
      CHECK(wrong == 0);
    });
  }
}

template <class T>
void check_unary(Micro op) {
  auto x = values<T>(1);
  const std::string name = schema::find(op)->name;
  CAPTURE(name);
  for (const Operand form : {VECTOR, NUMBER, COMPUTED}) {
    Builder b = Builder::tile({kCount});
    b.store(b.op(op, KindOf<T>::kind, operand<T>(b, form, 0)), window(1, KindOf<T>::dtype, {1}));
    on_every_isa([&] {
      std::vector<T> out(kCount);
      b.run({x.data(), out.data()}, {scalar_bits(x[5])});
      int64_t wrong = 0;
      for (int64_t i = 0; i < kCount; ++i) wrong += !equal(out[i], unary(op, form == NUMBER ? x[5] : x[i]));
      CHECK(wrong == 0);
    });
  }
}

const Micro kComparisons[] = {Micro::EQ, Micro::NE, Micro::LT, Micro::LE, Micro::GT, Micro::GE};

TEST_CASE("operations on floats") {
  for (const Micro op : {Micro::ADD, Micro::SUB, Micro::MUL, Micro::DIV, Micro::REM, Micro::MAX, Micro::MIN})
    check_binary<float>(op, false);
  for (const Micro op : kComparisons) check_binary<float>(op, true);
  for (const Micro op : {Micro::NEG, Micro::ABS, Micro::SIGN, Micro::FLOOR, Micro::CEIL, Micro::ROUND, Micro::TRUNC,
                         Micro::SQRT, Micro::ROUND_BF16, Micro::ROUND_FP16}) {
    check_unary<float>(op);
  }
}

TEST_CASE_TEMPLATE("operations on integers", T, int32_t, int64_t) {
  for (const Micro op : {Micro::ADD, Micro::SUB, Micro::MUL, Micro::DIV, Micro::REM, Micro::MAX, Micro::MIN, Micro::POW,
                         Micro::AND, Micro::OR, Micro::XOR, Micro::SHL, Micro::SHR, Micro::SHRU}) {
    check_binary<T>(op, false);
  }
  for (const Micro op : kComparisons) check_binary<T>(op, true);
  for (const Micro op : {Micro::NEG, Micro::ABS, Micro::SIGN, Micro::NOT}) check_unary<T>(op);
  if constexpr (sizeof(T) == 4) {
    for (const Micro op : {Micro::WRAP_INT8, Micro::WRAP_UINT8, Micro::WRAP_INT16}) check_unary<T>(op);
  }
}

TEST_CASE_TEMPLATE("selection", T, float, int32_t, int64_t) {
  auto x = values<T>(1), y = values<T>(2);
  std::vector<uint8_t> mask(kCount);
  for (int64_t i = 0; i < kCount; ++i) mask[i] = i * 7 % 5 < 2;
  for (const bool mask_number : {false, true}) {
    for (const Operand left : {VECTOR, NUMBER, COMPUTED}) {
      for (const Operand right : {VECTOR, NUMBER, COMPUTED}) {
        Builder b = Builder::tile({kCount});
        const int m = mask_number ? b.scalar(Kind::I32, 2) : b.load(window(2, Dtype::BOOL, {1}));
        const int l = operand<T>(b, left, 0), r = operand<T>(b, right, 1);
        b.store(b.op(Micro::SELECT, KindOf<T>::kind, m, l, r), window(3, KindOf<T>::dtype, {1}));
        on_every_isa([&] {
          std::vector<T> out(kCount);
          b.run({x.data(), y.data(), mask.data(), out.data()}, {scalar_bits(x[3]), scalar_bits(y[3]), 1});
          int64_t wrong = 0;
          for (int64_t i = 0; i < kCount; ++i) {
            const T a = left == NUMBER ? x[3] : x[i], c = right == NUMBER ? y[3] : y[i];
            wrong += !equal(out[i], mask_number || mask[i] ? a : c);
          }
          CHECK(wrong == 0);
        });
      }
    }
  }
}

TEST_CASE("conversions between kinds and IS_FINITE") {
  auto f = values<float>(1);
  auto i = values<int32_t>(1);
  auto w = values<int64_t>(1);
  const auto to_integer = [](float x, auto zero) {
    using T = decltype(zero);
    const double low = static_cast<double>(std::numeric_limits<T>::min());
    return x >= low && x < -low ? static_cast<T>(x) : std::numeric_limits<T>::min();
  };
  on_every_isa([&] {
    std::vector<float> f_out(kCount), f_from_w(kCount);
    std::vector<int32_t> i_out(kCount), i_from_w(kCount), finite(kCount);
    std::vector<int64_t> w_out(kCount), w_from_i(kCount);
    Builder b = Builder::tile({kCount});
    const int rf = b.load(window(0, Dtype::FP32, {1})), ri = b.load(window(1, Dtype::INT32, {1})),
              rw = b.load(window(2, Dtype::INT64, {1}));
    b.store(b.convert(Kind::F32, Kind::I32, rf), window(3, Dtype::INT32, {1}));
    b.store(b.convert(Kind::F32, Kind::I64, rf), window(4, Dtype::INT64, {1}));
    b.store(b.convert(Kind::I32, Kind::F32, ri), window(5, Dtype::FP32, {1}));
    b.store(b.convert(Kind::I32, Kind::I64, ri), window(6, Dtype::INT64, {1}));
    b.store(b.convert(Kind::I64, Kind::F32, rw), window(7, Dtype::FP32, {1}));
    b.store(b.convert(Kind::I64, Kind::I32, rw), window(8, Dtype::INT32, {1}));
    b.store(b.f32(Micro::IS_FINITE, rf), window(9, Dtype::INT32, {1}));
    b.run({f.data(), i.data(), w.data(), i_out.data(), w_out.data(), f_out.data(), w_from_i.data(), f_from_w.data(),
           i_from_w.data(), finite.data()});
    int64_t wrong = 0;
    for (int64_t k = 0; k < kCount; ++k) {
      wrong += i_out[k] != to_integer(f[k], int32_t{}) || w_out[k] != to_integer(f[k], int64_t{}) ||
               f_out[k] != static_cast<float>(i[k]) || w_from_i[k] != i[k] || f_from_w[k] != static_cast<float>(w[k]) ||
               i_from_w[k] != static_cast<int32_t>(w[k]) || finite[k] != std::isfinite(f[k]);
    }
    CHECK(wrong == 0);
  });
}

TEST_CASE_TEMPLATE("division of integers by zero is an error of the launch", T, int32_t, int64_t) {
  std::vector<T> x(kCount, 6), y(kCount, 2), out(kCount);
  for (const Micro op : {Micro::DIV, Micro::REM}) {
    Builder b = Builder::tile({kCount});
    b.store(b.op(op, KindOf<T>::kind, operand<T>(b, VECTOR, 0), operand<T>(b, VECTOR, 1)),
            window(2, KindOf<T>::dtype, {1}));
    on_every_isa([&] {
      CHECK_NOTHROW(b.run({x.data(), y.data(), out.data()}));
      y[kCount - 1] = 0;
      try {
        b.run({x.data(), y.data(), out.data()});
        FAIL("no error");
      } catch (const Error& e) {
        CHECK(e.status() == NRT_EXEC_BAD_INPUT);
        CHECK(std::string(e.what()) == "integer division or remainder by zero in test");
      }
      y[kCount - 1] = 2;
    });
  }
}

TEST_CASE("a program of many registers") {
  // Sums of pairs, kept alive until the end.
  std::vector<float> x(kCount, 1.5f), out(kCount);
  Builder b = Builder::tile({kCount});
  std::vector<int> regs = {b.load(window(0, Dtype::FP32, {1}))};
  for (int i = 1; i < 100; ++i) regs.push_back(b.f32(Micro::ADD, regs.back(), b.constant(i)));
  int sum = regs[0];
  for (size_t i = 1; i < regs.size(); ++i) sum = b.f32(Micro::MAX, regs[regs.size() - i], sum);
  b.store(sum, window(1, Dtype::FP32, {1}));
  on_every_isa([&] {
    b.run({x.data(), out.data()});
    CHECK(out == std::vector<float>(kCount, 1.5f + 4950));
  });
}

}  // namespace
}  // namespace neuron::engine::test
