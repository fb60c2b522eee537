// What fuzzing found, each as the smallest program that shows it. Meant for the sanitizers.
#include <doctest/doctest.h>

#include <limits>
#include <memory>
#include <new>
#include <string>

#include "base/error.h"
#include "program/bind.h"
#include "program/executable.h"
#include "samples.h"

namespace neuron::test {

namespace {

constexpr int64_t kMin = std::numeric_limits<int64_t>::min(), kMax = std::numeric_limits<int64_t>::max();
constexpr uint32_t kRow = static_cast<uint32_t>(TileMode::ROW), kColumn = static_cast<uint32_t>(TileMode::COLUMN);

struct Builder : ProgramBuilder {
  Builder() { scratch = number(0); }
  std::vector<uint32_t> numbers(std::initializer_list<int64_t> list) {
    std::vector<uint32_t> result;
    for (const int64_t n : list) result.push_back(number(n));
    return result;
  }
  uint32_t input(const char* name, Dtype dtype, int64_t bytes) {
    return argument(BufferKind::INPUT, name, dtype, {}, number(bytes));
  }
  uint32_t output(const char* name, Dtype dtype, int64_t bytes) {
    return argument(BufferKind::OUTPUT, name, dtype, {}, number(bytes));
  }
};

struct Free {
  void operator()(std::byte* bytes) const { ::operator delete[](bytes, std::align_val_t{64}); }
};
using Memory = std::unique_ptr<std::byte[], Free>;

// Binds and runs with buffers of exactly the stated sizes, filled with `byte`. Returns them, or throws.
std::vector<Memory> run(const ProgramBuilder& p, int byte = 0) {
  const auto executable = Executable::bind(Program::load(p.bytes()), {});
  std::vector<Memory> memory;
  std::vector<void*> buffers;
  for (const Io& io : executable->io()) {
    const auto size = static_cast<size_t>(io.nbytes);
    memory.emplace_back(new (std::align_val_t{64}) std::byte[size]);
    std::fill_n(memory.back().get(), size, static_cast<std::byte>(byte));
    buffers.push_back(memory.back().get());
  }
  const std::vector<uint64_t> scalars(p.scalar_count, 3);
  executable->run(buffers.data(), scalars.data(), {});
  return memory;
}

std::string refusal(const ProgramBuilder& p) {
  try {
    run(p);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("random numbers beside a reduction: the feeds of kept values have none") {
  for (const uint32_t mode : {kRow, kColumn}) {
    Builder p;
    p.scalar_count = 2;
    const uint32_t x = p.input("x", Dtype::INT32, 168), y = p.output("y", Dtype::INT32, 28);
    p.instruction(Opcode::TILE, p.numbers({7, 6}), {mode, 1});
    const uint16_t in = p.pattern(x, Dtype::INT32, p.numbers({1, 7})),
                   out = p.pattern(y, Dtype::INT32, p.numbers({1, 0}));
    const uint16_t a = p.op(Micro::LOAD, Kind::I32, in), word = p.op(Micro::RANDOM, Kind::I32);
    p.micro.back().source = ImmSource::SCALAR;
    p.store(out, Kind::I32, p.op(Micro::REDUCE_SUM, Kind::I32, p.op(Micro::AND, Kind::I32, a, word)));
    const auto memory = run(p);
    for (int n = 0; n < 7; ++n) CHECK(reinterpret_cast<const int32_t*>(memory[1].get())[n] == 0);
  }
}

TEST_CASE("copies whose windows overlap stay inside their buffer") {
  for (const bool twice : {false, true}) {
    Builder p;
    p.scratch = p.number(4096);
    const uint32_t temp = p.buffer(BufferKind::TEMP, 0, 4096);
    const uint32_t y = p.output("y", Dtype::FP32, 4);
    // One run of elements, and rows of them.
    p.instruction(Opcode::DMA, twice ? p.numbers({3, 100}) : p.numbers({1000}));
    p.pattern(temp, Dtype::FP32, twice ? p.numbers({300, 1}) : p.numbers({1}));
    p.pattern(temp, Dtype::FP32, twice ? p.numbers({301, 1}) : p.numbers({1}), 2);
    p.instruction(Opcode::DMA, p.numbers({1}));
    p.pattern(temp, Dtype::FP32, p.numbers({1}));
    p.pattern(y, Dtype::FP32, p.numbers({1}));
    const auto executable = Executable::bind(Program::load(p.bytes()), {});
    const Memory scratch(new (std::align_val_t{64}) std::byte[4096]{});
    float result = 1;
    void* buffers[] = {&result};
    executable->run(buffers, nullptr, {scratch.get(), nullptr, nullptr});
    CHECK(result == 0);
  }
}

TEST_CASE("a scatter into a dimension that is smaller than its window skips every update") {
  Builder p;
  const uint32_t index = p.input("index", Dtype::INT64, 8), update = p.input("update", Dtype::FP32, 4);
  const uint32_t table = p.output("table", Dtype::FP32, 4);
  p.instruction(Opcode::SCATTER, p.numbers({1}),
                {1, 1, p.number(0), static_cast<uint32_t>(IndexMode::CLAMP), static_cast<uint32_t>(Combine::SET)});
  p.pattern(table, Dtype::FP32, p.numbers({0}));
  p.pattern(index, Dtype::INT64, p.numbers({1}));
  p.pattern(update, Dtype::FP32, p.numbers({1}));
  p.pattern(table, Dtype::FP32, p.numbers({15}));
  p.pattern(table, Dtype::FP32, p.numbers({kMin / 8}));
  CHECK(refusal(p) == "accepted");
}

TEST_CASE("numbers that nothing reaches do not overflow") {
  const auto copy = [](std::initializer_list<int64_t> extents, std::initializer_list<int64_t> strides, int64_t offset) {
    Builder p;
    const uint32_t x = p.input("x", Dtype::INT64, 8), y = p.output("y", Dtype::INT64, 8);
    p.instruction(Opcode::TILE, p.numbers(extents));
    const uint16_t in = p.pattern(x, Dtype::INT64, p.numbers(strides), offset);
    p.store(p.pattern(y, Dtype::INT64, p.numbers(strides), offset), Kind::I64, p.op(Micro::LOAD, Kind::I64, in));
    p.instruction(Opcode::DMA, p.numbers(extents));
    p.pattern(x, Dtype::INT64, p.numbers(strides), offset);
    p.pattern(y, Dtype::INT64, p.numbers(strides), offset);
    return p;
  };
  CHECK(refusal(copy({kMax, 4, 0}, {1, 1, 1}, 0)) == "accepted");
  CHECK(refusal(copy({0, kMax, kMax}, {kMin, kMax, kMin}, kMax)) == "accepted");
  CHECK(refusal(copy({1, 1}, {kMin, kMax}, 0)) == "accepted");
  // Sums of 8 products of 126 bits each.
  CHECK(refusal(
            copy({kMax, kMax, kMax, kMax, kMax, kMax, kMax, kMax}, {kMin, kMin, kMin, kMin, kMin, kMin, kMin, kMin}, 0))
            .find("(rule B7)") != std::string::npos);
}

TEST_CASE("what a reduction over nothing and a product with K = 0 write is counted and checked") {
  Builder sums;
  const uint32_t y = sums.output("y", Dtype::FP32, 4);
  sums.instruction(Opcode::TILE, sums.numbers({int64_t{1} << 50, 0}), {kRow, 1});
  const uint16_t out = sums.pattern(y, Dtype::FP32, sums.numbers({0, 0}));
  sums.store(out, Kind::F32, sums.op(Micro::REDUCE_SUM, Kind::F32, sums.op(Micro::CONST, Kind::F32)));
  CHECK(refusal(sums).find("is written with stride 0 along dimension 0") != std::string::npos);

  const auto product = [](int64_t m, int64_t n, int64_t stride) {
    Builder p;
    const uint32_t a = p.input("a", Dtype::FP32, 0), c = p.output("c", Dtype::FP32, 4 * 70 * 70);
    p.instruction(Opcode::MATMUL, p.numbers({m, n, 0}), {0, static_cast<uint32_t>(Kind::F32)}).engine = Engine::PE;
    p.pattern(a, Dtype::FP32, p.numbers({1, 0, 1}));
    p.pattern(a, Dtype::FP32, p.numbers({0, 1, 1}));
    p.store(p.pattern(c, Dtype::FP32, p.numbers({stride, stride ? 1 : 0, 0})), Kind::F32, p.op(Micro::ACC, Kind::F32));
    return p;
  };
  CHECK(refusal(product(int64_t{1} << 40, int64_t{1} << 40, 0)).find("is written with stride 0") != std::string::npos);
  const auto memory = run(product(70, 70, 70), 0x40);
  const auto* c = reinterpret_cast<const float*>(memory[1].get());
  for (int n = 0; n < 70 * 70; ++n) REQUIRE(c[n] == 0);

  // Rows without elements are visited all the same.
  Builder idle;
  const uint32_t z = idle.output("z", Dtype::FP32, 4);
  idle.instruction(Opcode::TILE, idle.numbers({int64_t{1} << 41, 0}), {kRow, 1});
  idle.store(idle.pattern(z, Dtype::FP32, idle.numbers({0, 1})), Kind::F32, idle.op(Micro::CONST, Kind::F32));
  CHECK(refusal(idle).find("visit more than 1099511627776 elements") != std::string::npos);
}

TEST_CASE("instructions that share a long text do not each keep a copy of it") {
  Builder p;
  const uint32_t one = p.number(1), y = p.output("y", Dtype::FP32, 4);
  const uint32_t text = p.text(std::string(1 << 20, 'x'));
  p.instruction(Opcode::TILE, {one}).debug = text;
  p.store(p.pattern(y, Dtype::FP32, {one}), Kind::F32, p.op(Micro::CONST, Kind::F32));
  const auto program = Program::load(p.bytes());
  const std::vector<int64_t> values = evaluate(*program, {}), sizes = buffer_sizes(*program, values);
  uint64_t visited = 0;
  BoundInstruction bound;
  bind_instruction(*program, 0, values, sizes, visited, bound);
  CHECK(bound.debug == std::string(1024, 'x'));
}

}  // namespace neuron::test
