// Chains: instructions that run together give what they give one after the other, bit for bit, and only those run
// together that may.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "builder.h"
#include "engine/isa.h"
#include "engine/pool.h"

namespace neuron::engine::test {
namespace {

constexpr int64_t kBatch = 3, kRows = 260, kColumns = 720, kDepth = 20, kWidth = 40;
enum : uint32_t { Q, K, V, SCORES, WEIGHTS, OUT, SUMS, OTHER, BUFFERS };

// softmax(mask(Q K^T)) V, with a mask by the indices of row and column.
struct Attention {
  std::vector<BoundInstruction> program;
  std::vector<BufferPlace> places;

  Attention() : places(BUFFERS) {
    places[SCORES] = {BufferKind::TEMP, 0, kBatch * kRows * kColumns * 4};
    places[WEIGHTS] = {BufferKind::TEMP, places[SCORES].bytes, places[SCORES].bytes};
    places[OUT].kind = places[SUMS].kind = BufferKind::OUTPUT;

    Builder first(Opcode::MATMUL, {kBatch, kRows, kColumns, kDepth});
    first.instruction.params = {1, 0, 0, 0, 0, 0};
    first.add(window(Q, Dtype::FP32, {kRows * kDepth, kDepth, 0, 1}));
    first.add(window(K, Dtype::FP32, {kColumns * kDepth, 0, kDepth, 1}));
    first.store(first.f32(Micro::ACC, 0), window(SCORES, Dtype::FP32, {kRows * kColumns, kColumns, 1, 0}));

    Builder softmax = Builder::tile({kBatch, kRows, kColumns}, TileMode::ROW, 1);
    const int x = softmax.load(window(SCORES, Dtype::FP32, {kRows * kColumns, kColumns, 1}));
    const int limit = softmax.op(Micro::ADD, Kind::I64, softmax.iota(1), softmax.scalar(Kind::I64, 1));
    const int shift = softmax.op(Micro::ADD, Kind::I64, limit, softmax.iota(0));
    const int visible = softmax.op(Micro::LE, Kind::I64, softmax.iota(2), shift);
    const int masked = softmax.op(Micro::SELECT, Kind::F32, visible, x, softmax.constant(-INFINITY));
    const int e = softmax.f32(Micro::EXP, softmax.f32(Micro::SUB, masked, softmax.f32(Micro::REDUCE_MAX, masked)));
    const int sum = softmax.f32(Micro::REDUCE_SUM, e);
    softmax.store(sum, window(SUMS, Dtype::FP32, {kRows, 1, 0}));
    softmax.store(softmax.f32(Micro::DIV, e, sum), window(WEIGHTS, Dtype::FP32, {kRows * kColumns, kColumns, 1}));

    Builder second(Opcode::MATMUL, {kBatch, kRows, kWidth, kColumns});
    second.instruction.params = {1, 0, 0, 0, 0, 0};
    second.add(window(WEIGHTS, Dtype::FP32, {kRows * kColumns, kColumns, 0, 1}));
    second.add(window(V, Dtype::FP32, {kColumns * kWidth, 0, 1, kWidth}));
    second.store(second.f32(Micro::ACC, 0), window(OUT, Dtype::FP32, {kWidth, kBatch * kWidth, 1, 0}));

    program = {first.instruction, softmax.instruction, second.instruction};
  }

  std::vector<std::unique_ptr<Kernel>> prepare() const { return neuron::prepare(program, places); }
  // Which instructions have a kernel of their own.
  std::string kernels() const {
    std::string result;
    for (const auto& kernel : prepare()) result += kernel ? '1' : '0';
    return result;
  }
};

struct Memory {
  std::array<std::vector<float>, BUFFERS> buffers;
  Memory() {
    const int64_t sizes[] = {kBatch * kRows * kDepth,
                             kBatch * kColumns * kDepth,
                             kBatch * kColumns * kWidth,
                             kBatch * kRows * kColumns,
                             kBatch * kRows * kColumns,
                             kBatch * kRows * kWidth,
                             kBatch * kRows,
                             kRows};
    for (uint32_t b = 0; b < BUFFERS; ++b) {
      buffers[b].assign(static_cast<size_t>(sizes[b]), 7.0f);
      for (size_t i = 0; b <= V && i < buffers[b].size(); ++i)
        buffers[b][i] = std::sin(static_cast<float>(i) * 0.7f + static_cast<float>(b));
    }
  }
  template <class Kernels>
  void run(const Kernels& kernels) {
    void* addresses[BUFFERS];
    for (uint32_t b = 0; b < BUFFERS; ++b) addresses[b] = buffers[b].data();
    const uint64_t scalars[] = {0, 450};
    for (const auto& kernel : kernels) {
      if (kernel) kernel->run({addresses, scalars});
    }
  }
};

Memory one_by_one(const Attention& attention) {
  Memory memory;
  std::vector<std::unique_ptr<Kernel>> kernels;
  for (const BoundInstruction& i : attention.program) kernels.push_back(prepare(i));
  memory.run(kernels);
  return memory;
}

TEST_CASE("a chain gives what its instructions give one after the other") {
  Attention attention;
  const IsaList list = available_isas();
  for (int i = 0; i < list.count; ++i) {
    use_isa(*list.sets[i]);
    for (const int count : {1, 2, 3}) {
      set_threads(count);
      const std::string isa_name = list.sets[i]->name;
      CAPTURE(isa_name);
      CAPTURE(count);
      const Memory expected = one_by_one(attention);
      REQUIRE(attention.kernels() == "100");
      Memory together;
      together.run(attention.prepare());
      CHECK(together.buffers[OUT] == expected.buffers[OUT]);
      CHECK(together.buffers[SUMS] == expected.buffers[SUMS]);
      CHECK(together.buffers[SCORES] == Memory().buffers[SCORES]);  // never left the threads' own memory
      CHECK(together.buffers[WEIGHTS] == Memory().buffers[WEIGHTS]);
    }
  }
  use_isa(*list.sets[0]);
  set_threads(2);
}

TEST_CASE("what others need of a chain is written") {
  Attention attention;
  SUBCASE("an output") { attention.places[WEIGHTS].kind = BufferKind::OUTPUT; }
  SUBCASE("a temporary that is read later") {
    Builder sums = Builder::tile({kColumns, kBatch * kRows}, TileMode::COLUMN, 1);
    sums.store(sums.f32(Micro::REDUCE_SUM, sums.load(window(WEIGHTS, Dtype::FP32, {1, kColumns}))),
               window(SUMS, Dtype::FP32, {1, 0}));
    attention.program.push_back(sums.instruction);
  }
  const Memory expected = one_by_one(attention);
  Memory together;
  together.run(attention.prepare());
  REQUIRE(attention.kernels().substr(0, 3) == "100");
  CHECK(together.buffers[OUT] == expected.buffers[OUT]);
  CHECK(together.buffers[SUMS] == expected.buffers[SUMS]);
  CHECK(together.buffers[WEIGHTS] == expected.buffers[WEIGHTS]);
  CHECK(together.buffers[SCORES] == Memory().buffers[SCORES]);
}

TEST_CASE("a reduction of the last result joins too") {
  Attention attention;
  Builder sums = Builder::tile({kBatch, kRows, kWidth}, TileMode::ROW, 1);
  sums.store(sums.f32(Micro::REDUCE_SUM, sums.load(window(OUT, Dtype::FP32, {kWidth, kBatch * kWidth, 1}))),
             window(SUMS, Dtype::FP32, {kRows, 1, 0}));
  attention.program.push_back(sums.instruction);
  CHECK(attention.kernels() == "1001");  // heads lie between each other's rows: they are not told apart
  attention.program[2].windows[2].strides[0] = attention.program[3].windows[0].strides[0] = kRows * kWidth;
  attention.program[2].windows[2].strides[1] = attention.program[3].windows[0].strides[1] = kWidth;
  CHECK(attention.kernels() == "1000");
  const Memory expected = one_by_one(attention);
  Memory together;
  together.run(attention.prepare());
  CHECK(together.buffers[OUT] == expected.buffers[OUT]);
  CHECK(together.buffers[SUMS] == expected.buffers[SUMS]);
}

TEST_CASE("instructions that need other rows do not join") {
  Attention attention;
  SUBCASE("columns of the scores") {
    std::swap(attention.program[1].windows[0].strides[1], attention.program[1].windows[0].strides[2]);
    CHECK(attention.kernels() == "111");
  }
  SUBCASE("rows further down") {
    attention.program[1].windows[0].offset = kColumns;
    CHECK(attention.kernels().substr(0, 2) == "11");
  }
  SUBCASE("results on top of an operand") {
    attention.places[OUT].alias = Q;
    CHECK(attention.kernels() == "101");
  }
  SUBCASE("temporaries in the same memory") {
    attention.places[WEIGHTS].begin = 64;
    CHECK(attention.kernels().substr(0, 2) == "11");
  }
  SUBCASE("an instruction between them that changes an operand") {
    Builder fill = Builder::tile({kBatch * kColumns * kWidth});
    fill.store(fill.constant(1), window(V, Dtype::FP32, {1}));
    attention.program.insert(attention.program.begin() + 2, fill.instruction);
    CHECK(attention.kernels() == "1011");
  }
  SUBCASE("random numbers count all elements") {
    MicroOp random;
    random.op = Micro::RANDOM;
    random.kind = Kind::I32;
    random.dst = 200;
    attention.program[1].micro.push_back(random);
    CHECK(attention.kernels().substr(0, 2) == "11");
  }
  SUBCASE("little to gain") {
    for (BoundInstruction& i : attention.program) i.extents[1] = 20;
    CHECK(attention.kernels() == "111");
  }
}

TEST_CASE("an instruction that has nothing to do with a chain may stand in its middle") {
  Attention attention;
  Builder fill = Builder::tile({kRows});
  fill.store(fill.constant(1), window(OTHER, Dtype::FP32, {1}));
  attention.program.insert(attention.program.begin() + 1, fill.instruction);
  CHECK(attention.kernels() == "1100");
  const Memory expected = one_by_one(attention);
  Memory together;
  together.run(attention.prepare());
  CHECK(together.buffers[OUT] == expected.buffers[OUT]);
  CHECK(together.buffers[OTHER] == expected.buffers[OTHER]);
}

}  // namespace
}  // namespace neuron::engine::test
