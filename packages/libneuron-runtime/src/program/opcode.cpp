// What each opcode asks of its rank, patterns and params.
#include "program/validate.h"

namespace neuron {

using schema::Rule;

namespace {

void expect(Rule rule, size_t n, bool condition, const char* text) {
  if (!condition) refuse(rule, "instruction %zu: %s", n, text);
}

void gather(size_t n, const schema::InstructionRecord& i, std::span<const schema::PatternRecord> patterns,
            std::span<uint8_t> uses) {
  expect(Rule::gather, n, patterns.size() == 5 && i.micro_count == 0,
         "GATHER and SCATTER have five patterns and no micro-operations");
  expect(Rule::gather, n, i.params[0] <= i.rank, "batch is larger than the rank");
  expect(Rule::gather, n, kind_of(patterns[1].dtype) != Kind::F32, "the indices are not integers");
  expect(Rule::gather, n, patterns[0].dtype == patterns[2].dtype, "patterns 0 and 2 have different dtypes");
  for (const size_t k : {3, 4}) {
    expect(Rule::gather, n, patterns[k].buffer == patterns[0].buffer && patterns[k].dtype == patterns[0].dtype,
           "patterns 3 and 4 do not name the buffer and dtype of pattern 0");
    uses[k] = kTable;
  }
  uses[1] = kReads;
  if (i.opcode == Opcode::GATHER) {
    uses[0] = kReads;
    uses[2] = kWrites;
  } else {
    uses[0] = kReads | kWrites;
    uses[2] = kReads;
  }
}

}  // namespace

uint32_t stride_count(const schema::InstructionRecord& instruction, size_t pattern) {
  const bool table =
      (instruction.opcode == Opcode::GATHER || instruction.opcode == Opcode::SCATTER) && (pattern == 3 || pattern == 4);
  return table ? instruction.params[1] : instruction.rank;
}

void validate_opcode(const Program& program, size_t n, const schema::InstructionRecord& i, std::span<uint8_t> uses) {
  const auto patterns = program.patterns_of(i);
  switch (i.opcode) {
    case Opcode::TILE: {
      const uint32_t reduced = i.params[1];
      expect(Rule::micro_pattern, n, i.micro_count > 0, "no STORE");
      switch (static_cast<TileMode>(i.params[0])) {
        case TileMode::MAP:
          expect(Rule::tile, n, reduced == 0, "reduced dimensions in MAP mode");
          break;
        case TileMode::ROW:
          expect(Rule::tile, n, reduced >= 1 && reduced <= i.rank, "ROW mode reduces 1 to rank dimensions");
          break;
        case TileMode::COLUMN:
          expect(Rule::tile, n, reduced >= 1 && reduced < i.rank, "COLUMN mode reduces 1 to rank - 1 dimensions");
          break;
      }
      break;
    }
    case Opcode::MATMUL: {
      expect(Rule::matmul, n, i.rank >= 3 && i.params[0] == i.rank - 3, "the rank of a MATMUL is batch + 3");
      const Kind kind = static_cast<Kind>(i.params[1]);
      expect(Rule::matmul, n, kind == Kind::F32 || kind == Kind::I64, "a MATMUL accumulates in F32 or I64");
      expect(Rule::matmul, n, patterns.size() >= 2, "a MATMUL has at least two patterns");
      for (const size_t k : {0, 1}) {
        const bool floats = kind_of(patterns[k].dtype) == Kind::F32;
        expect(Rule::matmul, n, floats == (kind == Kind::F32),
               "an operand's dtype does not fit the kind of the product");
        uses[k] |= kReads;
      }
      expect(Rule::micro_pattern, n, i.micro_count > 0, "no STORE");
      break;
    }
    case Opcode::DMA:
      expect(Rule::dma, n, patterns.size() == 2 && i.micro_count == 0, "DMA has two patterns and no micro-operations");
      uses[0] = kReads;
      uses[1] = kWrites;
      break;
    case Opcode::GATHER:
    case Opcode::SCATTER:
      gather(n, i, patterns, uses);
      break;
    case Opcode::SCAN:
      expect(Rule::scan, n, patterns.size() == 2 && i.micro_count == 0,
             "SCAN has two patterns and no micro-operations");
      expect(Rule::scan, n, i.rank >= 1, "SCAN has rank at least 1");
      expect(Rule::scan, n, kind_of(patterns[0].dtype) == kind_of(patterns[1].dtype),
             "the dtypes load into different kinds");
      expect(Rule::scan, n, static_cast<Combine>(i.params[0]) != Combine::SET, "SCAN cannot combine by SET");
      expect(Rule::scan, n, i.params[1] <= 1, "reverse is neither 0 nor 1");
      uses[0] = kReads;
      uses[1] = kWrites;
      break;
    case Opcode::TENSOR_TENSOR:
      expect(Rule::tile_grain, n, i.rank >= 1, "a tile-grain instruction has rank at least 1");
      expect(Rule::micro_pattern, n, i.micro_count > 0, "no STORE");
      for (const schema::PatternRecord& pattern : patterns) {
        const BufferKind kind = program.buffers()[pattern.buffer].kind;
        expect(Rule::tile_grain, n, kind == BufferKind::SBUF || kind == BufferKind::PSUM,
               "a pattern lies outside SBUF and PSUM");
      }
      break;
    case Opcode::NATIVE:
      break;  // refused before
  }
}

}  // namespace neuron
