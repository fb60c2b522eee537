// Programs for tests: a builder of records without any check, and one valid program of each kind of instruction.
#pragma once

#include <cstring>
#include <initializer_list>
#include <string>
#include <vector>

#include "program_schema.h"

namespace neuron::test {

struct ProgramBuilder {
  std::vector<schema::ValueRecord> values;
  std::vector<schema::GuardRecord> guards;
  std::vector<schema::BufferRecord> buffers;
  std::vector<schema::IoRecord> io;
  std::vector<schema::InstructionRecord> instructions;
  std::vector<schema::PatternRecord> patterns;
  std::vector<schema::MicroRecord> micro;
  std::vector<std::byte> constants;
  std::string strings = std::string(1, '\0');
  uint32_t slot_count = 0, scalar_count = 0, scratch = 0;

  uint32_t value(ValueOp op, uint32_t a, uint32_t b, int64_t imm);
  uint32_t number(int64_t n) { return value(ValueOp::CONST, 0, 0, n); }
  uint32_t slot(int64_t n);
  uint32_t text(const std::string& text);
  // dims: values. nbytes: value.
  uint32_t argument(BufferKind kind, const std::string& name, Dtype dtype, std::vector<uint32_t> dims, uint32_t nbytes,
                    uint32_t alias = schema::kNone);
  uint32_t buffer(BufferKind kind, int64_t offset, int64_t nbytes);
  // Begins an instruction; patterns and micro-operations that follow belong to it. extents, strides, offset: values.
  schema::InstructionRecord& instruction(Opcode opcode, std::vector<uint32_t> extents,
                                         std::initializer_list<uint32_t> params = {});
  uint16_t pattern(uint32_t buffer, Dtype dtype, std::vector<uint32_t> strides, int64_t offset = 0);
  uint16_t op(Micro op, Kind kind, uint16_t a = 0, uint16_t b = 0, uint16_t c = 0);  // result register
  void store(uint16_t pattern, Kind kind, uint16_t reg);

  std::vector<std::byte> bytes() const;

 private:
  uint16_t registers_ = 0;
};

struct Sample {
  std::string name;
  std::vector<std::byte> bytes;
  std::vector<int64_t> slots;
  std::vector<uint64_t> scalars;
};

// add of two fp32 matrices whose sizes are slots.
Sample add_sample();
// One for each opcode, and a few for what TILE alone has several of.
std::vector<Sample> samples();

}  // namespace neuron::test
