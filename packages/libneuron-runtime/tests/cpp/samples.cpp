#include "samples.h"

#include <algorithm>
#include <bit>

namespace neuron::test {

using schema::kNone;

namespace {

void fill(uint32_t (&list)[8], const std::vector<uint32_t>& values) {
  for (size_t d = 0; d < 8; ++d) list[d] = d < values.size() ? values[d] : kNone;
}

}  // namespace

uint32_t ProgramBuilder::value(ValueOp op, uint32_t a, uint32_t b, int64_t imm) {
  values.push_back({op, a, b, 0, imm});
  return static_cast<uint32_t>(values.size() - 1);
}

uint32_t ProgramBuilder::slot(int64_t n) {
  slot_count = std::max(slot_count, static_cast<uint32_t>(n + 1));
  return value(ValueOp::SLOT, 0, 0, n);
}

uint32_t ProgramBuilder::text(const std::string& text) {
  const auto offset = static_cast<uint32_t>(strings.size());
  strings += text;
  strings += '\0';
  return offset;
}

uint32_t ProgramBuilder::argument(BufferKind kind, const std::string& name, Dtype dtype, std::vector<uint32_t> dims,
                                  uint32_t nbytes, uint32_t alias) {
  const auto index = static_cast<uint32_t>(
      std::count_if(buffers.begin(), buffers.end(), [&](const auto& b) { return b.kind == kind; }));
  buffers.push_back({kind, index, number(0), nbytes});
  const auto buffer = static_cast<uint32_t>(buffers.size() - 1);
  schema::IoRecord record{buffer, text(name), dtype, alias, static_cast<uint32_t>(dims.size()), {}, {}};
  fill(record.dims, dims);
  io.push_back(record);
  return buffer;
}

uint32_t ProgramBuilder::buffer(BufferKind kind, int64_t offset, int64_t nbytes) {
  const uint32_t start = number(offset), size = number(nbytes);
  buffers.push_back({kind, 0, start, size});
  return static_cast<uint32_t>(buffers.size() - 1);
}

schema::InstructionRecord& ProgramBuilder::instruction(Opcode opcode, std::vector<uint32_t> extents,
                                                       std::initializer_list<uint32_t> params) {
  registers_ = 0;
  schema::InstructionRecord i{};
  i.opcode = opcode;
  i.engine = Engine::VECTOR;
  i.rank = static_cast<uint32_t>(extents.size());
  fill(i.extents, extents);
  i.pattern_first = static_cast<uint32_t>(patterns.size());
  i.micro_first = static_cast<uint32_t>(micro.size());
  std::copy(params.begin(), params.end(), i.params);
  i.debug = text("test::" + std::string(name_of(opcode)));
  instructions.push_back(i);
  return instructions.back();
}

uint16_t ProgramBuilder::pattern(uint32_t buffer, Dtype dtype, std::vector<uint32_t> strides, int64_t offset) {
  schema::PatternRecord p{buffer, dtype, number(offset), 0, {}};
  fill(p.strides, strides);
  patterns.push_back(p);
  return static_cast<uint16_t>(instructions.back().pattern_count++);
}

uint16_t ProgramBuilder::op(Micro op, Kind kind, uint16_t a, uint16_t b, uint16_t c) {
  micro.push_back({op, kind, registers_, a, b, c, ImmSource::LITERAL, Kind::F32, 0});
  ++instructions.back().micro_count;
  return registers_++;
}

void ProgramBuilder::store(uint16_t pattern, Kind kind, uint16_t reg) {
  micro.push_back({Micro::STORE, kind, pattern, reg, 0, 0, ImmSource::LITERAL, Kind::F32, 0});
  ++instructions.back().micro_count;
}

std::vector<std::byte> ProgramBuilder::bytes() const {
  std::vector<schema::SectionRecord> rows;
  std::vector<std::pair<const void*, size_t>> contents;
  const auto section = [&](SectionKind kind, const auto& list) {
    if (list.empty()) return;
    rows.push_back({kind, sizeof(list[0]), 0, list.size()});
    contents.emplace_back(list.data(), list.size() * sizeof(list[0]));
  };
  section(SectionKind::VALUES, values);
  section(SectionKind::GUARDS, guards);
  section(SectionKind::BUFFERS, buffers);
  section(SectionKind::IO, io);
  section(SectionKind::INSTRUCTIONS, instructions);
  section(SectionKind::PATTERNS, patterns);
  section(SectionKind::MICRO, micro);
  section(SectionKind::STRINGS, strings);
  section(SectionKind::CONSTANTS, constants);  // last, so that AddressSanitizer sees what reads behind them

  std::vector<std::byte> out(sizeof(schema::HeaderRecord) + rows.size() * sizeof(schema::SectionRecord));
  for (size_t n = 0; n < rows.size(); ++n) {
    out.resize((out.size() + schema::kSectionAlignment - 1) / schema::kSectionAlignment * schema::kSectionAlignment);
    rows[n].offset = out.size();
    const auto* start = static_cast<const std::byte*>(contents[n].first);
    out.insert(out.end(), start, start + contents[n].second);
  }
  schema::HeaderRecord header{
      {}, schema::kVersion, static_cast<uint32_t>(rows.size()), out.size(), slot_count, scalar_count, scratch, 0};
  std::memcpy(header.magic, schema::kMagic, sizeof(header.magic));
  std::memcpy(out.data(), &header, sizeof(header));
  if (!rows.empty()) std::memcpy(out.data() + sizeof(header), rows.data(), rows.size() * sizeof(rows[0]));
  return out;
}

namespace {

constexpr Dtype kF32 = Dtype::FP32;

ProgramBuilder begin() {
  ProgramBuilder p;
  p.scratch = p.number(0);
  return p;
}

Sample done(const char* name, const ProgramBuilder& p, std::vector<int64_t> slots = {},
            std::vector<uint64_t> scalars = {}) {
  return {name, p.bytes(), std::move(slots), std::move(scalars)};
}

// Values that samples with fixed sizes need.
struct Numbers {
  explicit Numbers(ProgramBuilder& p) : p(p) {}
  uint32_t operator()(int64_t n) { return p.number(n); }
  std::vector<uint32_t> operator()(std::initializer_list<int64_t> list) {
    std::vector<uint32_t> result;
    for (const int64_t n : list) result.push_back(p.number(n));
    return result;
  }
  ProgramBuilder& p;
};

// Row sums of 5x9 into 5, and the rows less their maximum into 5x9.
Sample row_sample() {
  ProgramBuilder p = begin();
  Numbers n(p);
  const uint32_t x = p.argument(BufferKind::INPUT, "x", kF32, n({5, 9}), n(180));
  const uint32_t sums = p.argument(BufferKind::OUTPUT, "sums", kF32, n({5}), n(20));
  const uint32_t rest = p.argument(BufferKind::OUTPUT, "rest", kF32, n({5, 9}), n(180));
  p.instruction(Opcode::TILE, n({5, 9}), {static_cast<uint32_t>(TileMode::ROW), 1});
  const uint16_t in = p.pattern(x, kF32, n({9, 1}));
  const uint16_t out = p.pattern(sums, kF32, n({1, 0}));
  const uint16_t full = p.pattern(rest, kF32, n({9, 1}));
  const uint16_t a = p.op(Micro::LOAD, Kind::F32, in);
  p.store(out, Kind::F32, p.op(Micro::REDUCE_SUM, Kind::F32, a));
  p.store(full, Kind::F32, p.op(Micro::SUB, Kind::F32, a, p.op(Micro::REDUCE_MAX, Kind::F32, a)));
  return done("row", p);
}

Sample column_sample() {
  ProgramBuilder p = begin();
  Numbers n(p);
  const uint32_t x = p.argument(BufferKind::INPUT, "x", Dtype::INT32, n({6, 7}), n(168));
  const uint32_t y = p.argument(BufferKind::OUTPUT, "y", Dtype::INT32, n({7}), n(28));
  p.instruction(Opcode::TILE, n({7, 6}), {static_cast<uint32_t>(TileMode::COLUMN), 1});
  const uint16_t in = p.pattern(x, Dtype::INT32, n({1, 7}));
  const uint16_t out = p.pattern(y, Dtype::INT32, n({1, 0}));
  p.store(out, Kind::I32, p.op(Micro::REDUCE_SUM, Kind::I32, p.op(Micro::LOAD, Kind::I32, in)));
  return done("column", p);
}

// Numbers from everywhere: a value, a scalar, an index, a random word; a reversed bf16 input; a temporary and a
// constant.
Sample numbers_sample() {
  ProgramBuilder p = begin();
  Numbers n(p);
  p.scalar_count = 3;
  p.scratch = n(128);
  p.constants.resize(64, std::byte{1});
  const uint32_t x = p.argument(BufferKind::INPUT, "x", Dtype::BF16, n({16}), n(32));
  const uint32_t y = p.argument(BufferKind::OUTPUT, "y", kF32, n({16}), n(64));
  const uint32_t temp = p.buffer(BufferKind::TEMP, 64, 64);
  const uint32_t constant = p.buffer(BufferKind::CONSTANT, 0, 64);
  p.instruction(Opcode::TILE, n({16}), {});
  const uint16_t in = p.pattern(x, Dtype::BF16, n({-1}), 15);
  const uint16_t bytes = p.pattern(constant, Dtype::UINT8, n({1}));
  const uint16_t out = p.pattern(temp, kF32, n({1}));
  const uint16_t a = p.op(Micro::LOAD, Kind::F32, in);
  const uint16_t scalar = p.op(Micro::CONST, Kind::F32);
  p.micro.back().source = ImmSource::SCALAR;
  const uint16_t value = p.op(Micro::CONST, Kind::I64);
  p.micro.back().source = ImmSource::VALUE;
  p.micro.back().imm = n(7);
  const uint16_t index = p.op(Micro::ADD, Kind::I64, value, p.op(Micro::IOTA, Kind::I64, 0));
  const uint16_t word = p.op(Micro::RANDOM, Kind::I32, 2);
  p.micro.back().source = ImmSource::SCALAR;
  p.micro.back().imm = 1;
  const uint16_t mixed = p.op(Micro::XOR, Kind::I32, word, p.op(Micro::LOAD, Kind::I32, bytes));
  const uint16_t b = p.op(Micro::CONVERT, Kind::F32, index);
  p.micro.back().from = Kind::I64;
  const uint16_t c = p.op(Micro::CONVERT, Kind::F32, mixed);
  p.micro.back().from = Kind::I32;
  const uint16_t chosen = p.op(Micro::SELECT, Kind::F32, p.op(Micro::LT, Kind::F32, a, scalar), b, c);
  p.store(out, Kind::F32, chosen);
  p.instruction(Opcode::DMA, n({4, 4}), {});
  p.pattern(temp, kF32, n({1, 4}));
  p.pattern(y, kF32, n({4, 1}));
  return done("numbers", p, {}, {std::bit_cast<uint64_t>(0.5), 42, 7});
}

// In place on an aliased input, with a guard.
Sample alias_sample() {
  ProgramBuilder p = begin();
  const uint32_t size = p.slot(0);
  const uint32_t one = p.number(1);
  p.guards.push_back({GuardOp::LT, p.number(0), size, 0});
  const uint32_t nbytes = p.value(ValueOp::MUL, size, p.number(8), 0);
  const uint32_t x = p.argument(BufferKind::INPUT, "x", Dtype::INT64, {size}, nbytes);
  p.argument(BufferKind::OUTPUT, "y", Dtype::INT64, {size}, nbytes, 0);
  p.instruction(Opcode::TILE, {size}, {});
  const uint16_t both = p.pattern(x, Dtype::INT64, {one});
  const uint16_t a = p.op(Micro::LOAD, Kind::I64, both);
  p.store(both, Kind::I64, p.op(Micro::MUL, Kind::I64, a, a));
  return done("alias", p, {11});
}

Sample matmul_sample() {
  ProgramBuilder p = begin();
  Numbers n(p);
  const uint32_t a = p.argument(BufferKind::INPUT, "a", kF32, n({2, 3, 4}), n(96));
  const uint32_t b = p.argument(BufferKind::INPUT, "b", kF32, n({2, 4, 5}), n(160));
  const uint32_t bias = p.argument(BufferKind::INPUT, "bias", kF32, n({5}), n(20));
  const uint32_t c = p.argument(BufferKind::OUTPUT, "c", kF32, n({2, 3, 5}), n(120));
  p.instruction(Opcode::MATMUL, n({2, 3, 5, 4}), {1, static_cast<uint32_t>(Kind::F32)}).engine = Engine::PE;
  p.pattern(a, kF32, n({12, 4, 0, 1}));
  p.pattern(b, kF32, n({20, 0, 1, 5}));
  const uint16_t row = p.pattern(bias, kF32, n({0, 0, 1, 0}));
  const uint16_t out = p.pattern(c, kF32, n({15, 5, 1, 0}));
  const uint16_t acc = p.op(Micro::ACC, Kind::F32);
  p.store(out, Kind::F32, p.op(Micro::ADD, Kind::F32, acc, p.op(Micro::LOAD, Kind::F32, row)));
  return done("matmul", p);
}

Sample gather_sample(bool scatter) {
  ProgramBuilder p = begin();
  Numbers n(p);
  // out[i, w] = table[index[i], w] of 6x4 by 3 indices, and the reverse.
  const uint32_t table = p.argument(scatter ? BufferKind::OUTPUT : BufferKind::INPUT, "table", kF32, n({6, 4}), n(96));
  const uint32_t index = p.argument(BufferKind::INPUT, "index", Dtype::INT64, n({3}), n(24));
  const uint32_t rows = p.argument(scatter ? BufferKind::INPUT : BufferKind::OUTPUT, "rows", kF32, n({3, 4}), n(48));
  if (scatter) std::rotate(p.io.begin(), p.io.begin() + 1, p.io.end());
  const uint32_t stride = n(0);
  const auto mode = static_cast<uint32_t>(IndexMode::CLAMP);
  if (scatter) {
    p.instruction(Opcode::SCATTER, n({3, 4}), {1, 1, stride, mode, static_cast<uint32_t>(Combine::ADD)}).engine =
        Engine::GPSIMD;
  } else {
    p.instruction(Opcode::GATHER, n({3, 4}), {1, 1, stride, mode}).engine = Engine::GPSIMD;
  }
  p.pattern(table, kF32, n({0, 1}));
  p.pattern(index, Dtype::INT64, n({1, 0}));
  p.pattern(rows, kF32, n({4, 1}));
  p.pattern(table, kF32, n({4}));
  p.pattern(table, kF32, n({5}));
  return done(scatter ? "scatter" : "gather", p);
}

Sample scan_sample() {
  ProgramBuilder p = begin();
  Numbers n(p);
  const uint32_t x = p.argument(BufferKind::INPUT, "x", kF32, n({3, 8}), n(96));
  const uint32_t y = p.argument(BufferKind::OUTPUT, "y", kF32, n({3, 8}), n(96));
  p.instruction(Opcode::SCAN, n({3, 8}), {static_cast<uint32_t>(Combine::ADD), 1});
  p.pattern(x, kF32, n({8, 1}));
  p.pattern(y, kF32, n({8, 1}));
  return done("scan", p);
}

// Through the state buffer: 128 partitions of 64 bytes.
Sample tile_grain_sample() {
  ProgramBuilder p = begin();
  Numbers n(p);
  const uint32_t x = p.argument(BufferKind::INPUT, "x", kF32, n({128, 8}), n(4096));
  const uint32_t y = p.argument(BufferKind::OUTPUT, "y", kF32, n({128, 8}), n(4096));
  const uint32_t sbuf = p.buffer(BufferKind::SBUF, 0, 8192);
  p.instruction(Opcode::DMA, n({128, 8}), {}).engine = Engine::DMA;
  p.pattern(x, kF32, n({8, 1}));
  p.pattern(sbuf, kF32, n({16, 1}));
  p.instruction(Opcode::TENSOR_TENSOR, n({128, 8}), {});
  const uint16_t in = p.pattern(sbuf, kF32, n({16, 1}));
  const uint16_t out = p.pattern(sbuf, kF32, n({16, 1}), 8);
  p.store(out, Kind::F32, p.op(Micro::NEG, Kind::F32, p.op(Micro::LOAD, Kind::F32, in)));
  p.instruction(Opcode::DMA, n({128, 8}), {}).engine = Engine::DMA;
  p.pattern(sbuf, kF32, n({16, 1}), 8);
  p.pattern(y, kF32, n({8, 1}));
  return done("tile_grain", p);
}

}  // namespace

Sample add_sample() {
  ProgramBuilder p = begin();
  const uint32_t rows = p.slot(0), columns = p.slot(1), one = p.number(1);
  const uint32_t nbytes = p.value(ValueOp::MUL, p.value(ValueOp::MUL, rows, columns, 0), p.number(4), 0);
  const uint32_t x = p.argument(BufferKind::INPUT, "x", kF32, {rows, columns}, nbytes);
  const uint32_t y = p.argument(BufferKind::INPUT, "y", kF32, {rows, columns}, nbytes);
  const uint32_t z = p.argument(BufferKind::OUTPUT, "z", kF32, {rows, columns}, nbytes);
  p.instruction(Opcode::TILE, {rows, columns}, {});
  const uint16_t a = p.pattern(x, kF32, {columns, one});
  const uint16_t b = p.pattern(y, kF32, {columns, one});
  const uint16_t c = p.pattern(z, kF32, {columns, one});
  p.store(c, Kind::F32, p.op(Micro::ADD, Kind::F32, p.op(Micro::LOAD, Kind::F32, a), p.op(Micro::LOAD, Kind::F32, b)));
  return done("add", p, {4, 6});
}

std::vector<Sample> samples() {
  return {add_sample(),    row_sample(),         column_sample(),     numbers_sample(), alias_sample(),
          matmul_sample(), gather_sample(false), gather_sample(true), scan_sample(),    tile_grain_sample()};
}

}  // namespace neuron::test
