#include "program/bind.h"

#include <doctest/doctest.h>

#include <limits>
#include <string>

#include "program/executable.h"
#include "samples.h"

namespace neuron::test {

namespace {

constexpr int64_t kMin = std::numeric_limits<int64_t>::min(), kMax = std::numeric_limits<int64_t>::max();

// The value of `op` on two slots, or the refusal.
struct Outcome {
  int64_t number = 0;
  std::string refusal;
};

Outcome evaluate_one(ValueOp op, int64_t a, int64_t b, int64_t imm = 0) {
  ProgramBuilder p;
  p.scratch = p.number(0);
  const uint32_t x = p.slot(0), y = p.slot(1);
  const uint32_t result = p.value(op, x, op == ValueOp::ALIGN ? 0 : y, imm);
  const auto program = Program::load(p.bytes());
  try {
    return {evaluate(*program, std::vector<int64_t>{a, b})[result], ""};
  } catch (const Error& error) {
    return {0, error.what()};
  }
}

std::string bind_refusal(const ProgramBuilder& p, std::vector<int64_t> slots = {}) {
  try {
    Executable::bind(Program::load(p.bytes()), slots);
  } catch (const Error& error) {
    CHECK(error.status() == NRT_INVALID);
    return error.what();
  }
  return "accepted";
}

// Copies `extents` elements between windows of two buffers of `nbytes`, all given by slots:
// {nbytes, extent 0, extent 1, offset, stride 0, stride 1}.
ProgramBuilder window_program() {
  ProgramBuilder p;
  p.scratch = p.number(0);
  const uint32_t nbytes = p.slot(0), rows = p.slot(1), columns = p.slot(2), offset = p.slot(3), s0 = p.slot(4),
                 s1 = p.slot(5);
  const uint32_t one = p.number(1);
  const uint32_t total = p.value(
      ValueOp::MUL, p.value(ValueOp::MAX, p.value(ValueOp::MUL, rows, columns, 0), p.number(0), 0), p.number(4), 0);
  const uint32_t x = p.argument(BufferKind::INPUT, "x", Dtype::FP32, {}, nbytes);
  const uint32_t y = p.argument(BufferKind::OUTPUT, "y", Dtype::FP32, {}, total);
  p.instruction(Opcode::TILE, {rows, columns});
  const uint16_t in = p.pattern(x, Dtype::FP32, {s0, s1});
  p.patterns.back().offset = offset;
  const uint16_t out = p.pattern(y, Dtype::FP32, {columns, one});
  p.store(out, Kind::F32, p.op(Micro::LOAD, Kind::F32, in));
  return p;
}

}  // namespace

TEST_CASE("values: arithmetic") {
  CHECK(evaluate_one(ValueOp::ADD, 3, -5).number == -2);
  CHECK(evaluate_one(ValueOp::SUB, 3, -5).number == 8);
  CHECK(evaluate_one(ValueOp::MUL, -3, 5).number == -15);
  CHECK(evaluate_one(ValueOp::MAX, -3, 5).number == 5);
  CHECK(evaluate_one(ValueOp::MIN, -3, 5).number == -3);
  for (const int64_t a : {-7, -6, -1, 0, 1, 6, 7}) {
    for (const int64_t b : {-3, 3, 1, -1}) {
      const int64_t q = evaluate_one(ValueOp::FLOORDIV, a, b).number, r = evaluate_one(ValueOp::MOD, a, b).number;
      CAPTURE(a);
      CAPTURE(b);
      CHECK(q * b + r == a);
      CHECK((r == 0 || (r < 0) == (b < 0)));
      CHECK(std::abs(r) < std::abs(b));
    }
  }
  CHECK(evaluate_one(ValueOp::ALIGN, 65, 0, 64).number == 128);
  CHECK(evaluate_one(ValueOp::ALIGN, 64, 0, 64).number == 64);
  CHECK(evaluate_one(ValueOp::ALIGN, -65, 0, 64).number == -64);
  CHECK(evaluate_one(ValueOp::ALIGN, 0, 0, 64).number == 0);
}

TEST_CASE("values: overflow and division by 0 are errors") {
  const auto refused = [](const Outcome& outcome) {
    return outcome.refusal.find("overflows or divides by 0 (rule B2)") != std::string::npos;
  };
  CHECK(refused(evaluate_one(ValueOp::ADD, kMax, 1)));
  CHECK(refused(evaluate_one(ValueOp::SUB, kMin, 1)));
  CHECK(refused(evaluate_one(ValueOp::MUL, kMax, 2)));
  CHECK(refused(evaluate_one(ValueOp::FLOORDIV, 1, 0)));
  CHECK(refused(evaluate_one(ValueOp::FLOORDIV, kMin, -1)));
  CHECK(refused(evaluate_one(ValueOp::MOD, 1, 0)));
  CHECK(refused(evaluate_one(ValueOp::MOD, kMin, -1)));
  CHECK(refused(evaluate_one(ValueOp::ALIGN, kMax, 0, 64)));
}

TEST_CASE("guards: the number of the first broken one is known") {
  ProgramBuilder p;
  p.scratch = p.number(0);
  const uint32_t a = p.slot(0), b = p.slot(1);
  for (const GuardOp op : {GuardOp::LE, GuardOp::LT, GuardOp::NE, GuardOp::EQ}) p.guards.push_back({op, a, b, 0});
  const auto program = Program::load(p.bytes());
  const auto broken = [&](int64_t x, int64_t y) {
    try {
      evaluate(*program, std::vector{x, y});
    } catch (const GuardError& error) {
      CHECK(std::string(error.what()).find("does not hold") != std::string::npos);
      return error.guard();
    }
    return -1;
  };
  CHECK(broken(2, 1) == 0);
  CHECK(broken(1, 1) == 1);
  CHECK(broken(1, 2) == 3);
}

TEST_CASE("windows inside their buffers are accepted") {
  const ProgramBuilder p = window_program();
  CHECK(bind_refusal(p, {24, 2, 3, 0, 3, 1}) == "accepted");
  CHECK(bind_refusal(p, {24, 2, 3, 5, -3, -1}) == "accepted");     // backwards from the end
  CHECK(bind_refusal(p, {24, 2, 3, 3, -3, 1}) == "accepted");      // one dimension backwards
  CHECK(bind_refusal(p, {4, 2, 3, 0, 0, 0}) == "accepted");        // one element, read six times
  CHECK(bind_refusal(p, {0, 0, 3, 0, 3, 1}) == "accepted");        // nothing
  CHECK(bind_refusal(p, {0, 2, 0, 1000, 3, 1}) == "accepted");     // nothing, wherever it begins
  CHECK(bind_refusal(p, {4, 1, 1, 0, kMax, kMax}) == "accepted");  // strides along single elements do not matter
}

TEST_CASE("windows that leave their buffers are refused") {
  const ProgramBuilder p = window_program();
  const auto refused = [&](std::vector<int64_t> slots, const char* text) {
    CAPTURE(text);
    const std::string refusal = bind_refusal(p, slots);
    CAPTURE(refusal);
    CHECK(refusal.find(text) != std::string::npos);
  };
  refused({23, 2, 3, 0, 3, 1}, "reaches elements 0 to 5 of buffer 0, which has 23 bytes of 4 each (rule B7)");
  refused({24, 2, 3, 1, 3, 1}, "reaches elements 1 to 6");
  refused({24, 2, 3, 4, -3, -1}, "reaches elements -1 to 4");
  refused({24, 2, 3, -1, 3, 1}, "reaches elements -1 to 4");
  refused({24, 2, 3, 0, kMax, 1}, "reaches elements 0 to 9223372036854775807");
  refused({24, 2, 3, 0, kMin, kMin}, "reaches elements -9223372036854775808 to 0");
  refused({24, 2, 3, kMax, 3, 1}, "reaches elements 9223372036854775807 to 9223372036854775807");
  refused({24, -1, 3, 0, 3, 1}, "extent 0 is -1, expected at least 0 (rule B6)");
  refused({-8, 0, 3, 0, 3, 1}, "nbytes is -8, expected 0 to 70368744177664 (rule B4)");
  refused({24, 2, 3, 0, 3}, "5 slots are given, expected 6 (rule B1)");
}

TEST_CASE("a reduction over nothing still writes its rows inside the output") {
  const auto program = [](int64_t output_bytes, int64_t input_stride) {
    ProgramBuilder p;
    p.scratch = p.number(0);
    const uint32_t rows = p.number(4), none = p.number(0), one = p.number(1), zero = p.number(0);
    const uint32_t x = p.argument(BufferKind::INPUT, "x", Dtype::FP32, {rows, none}, p.number(0));
    const uint32_t y = p.argument(BufferKind::OUTPUT, "y", Dtype::FP32, {rows}, p.number(output_bytes));
    p.instruction(Opcode::TILE, {rows, none}, {static_cast<uint32_t>(TileMode::ROW), 1});
    const uint16_t in = p.pattern(x, Dtype::FP32, {zero, p.number(input_stride)});
    const uint16_t out = p.pattern(y, Dtype::FP32, {one, zero});
    p.store(out, Kind::F32, p.op(Micro::REDUCE_SUM, Kind::F32, p.op(Micro::LOAD, Kind::F32, in)));
    return p;
  };
  CHECK(bind_refusal(program(12, 1)).find("reaches elements 0 to 3 of buffer 1") != std::string::npos);
  // A load that does not move along the reduced dimension happens once a row, and its window counts.
  CHECK(bind_refusal(program(16, 0)).find("reaches elements 0 to 0 of buffer 0, which has 0 bytes") !=
        std::string::npos);
}

TEST_CASE("a bound program knows its signature") {
  const auto executable = Executable::bind(Program::load(add_sample().bytes), std::vector<int64_t>{5, 7});
  REQUIRE(executable->io().size() == 3);
  for (const Io& io : executable->io()) {
    CHECK(io.dtype == Dtype::FP32);
    CHECK(io.rank == 2);
    CHECK(io.dims[0] == 5);
    CHECK(io.dims[1] == 7);
    CHECK(io.nbytes == 140);
    CHECK(io.alias == -1);
  }
}

}  // namespace neuron::test
