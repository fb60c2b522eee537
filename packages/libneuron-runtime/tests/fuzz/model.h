// A test file taken apart into what the mutator changes.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "attempt.h"
#include "program_fields.h"
#include "samples.h"

namespace neuron::fuzz {

// splitmix64: as good as needed here, and a seed costs nothing.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return z ^ z >> 31;
  }
  uint64_t below(uint64_t limit) { return limit == 0 ? 0 : next() % limit; }
  bool chance(unsigned one_in) { return below(one_in) == 0; }
  template <class T>
  auto& of(T&& list) {
    return list[below(std::size(list))];
  }

 private:
  uint64_t state_;
};

// An instruction with what it owns, so that inserting and deleting are one operation.
struct Node {
  schema::InstructionRecord record{};
  std::vector<schema::PatternRecord> patterns;
  std::vector<schema::MicroRecord> micro;
};

struct Model {
  test::ProgramBuilder p;  // but for instructions, patterns and micro-operations, which are in nodes
  std::vector<Node> nodes;
  LaunchInput launch{};
};

// A record with the table of its fields.
struct RecordView {
  std::byte* bytes;
  std::span<const schema::FieldInfo> fields;
};
// Every record of a section, in order.
std::vector<RecordView> records(Model& model, SectionKind section);
uint64_t get(const RecordView& record, const schema::FieldInfo& field, size_t element);
void put(const RecordView& record, const schema::FieldInfo& field, size_t element, uint64_t number);

// Calls `visit` with each index into VALUES that the model holds, but for the operands of values themselves.
template <class Visit>
void each_value_index(Model& model, Visit visit) {
  visit(model.p.scratch);
  for (auto& guard : model.p.guards) visit(guard.a), visit(guard.b);
  for (auto& buffer : model.p.buffers) visit(buffer.offset), visit(buffer.nbytes);
  for (auto& io : model.p.io) {
    for (uint32_t& dim : io.dims) visit(dim);
  }
  for (Node& node : model.nodes) {
    for (uint32_t& extent : node.record.extents) visit(extent);
    if (const schema::OpcodeInfo* info = schema::find(node.record.opcode)) {
      for (size_t k = 0; k < 6; ++k) {
        if (info->params[k].type == schema::ParamType::VALUE) visit(node.record.params[k]);
      }
    }
    for (auto& pattern : node.patterns) {
      visit(pattern.offset);
      for (uint32_t& stride : pattern.strides) visit(stride);
    }
    for (auto& micro : node.micro) {
      if (micro.source != ImmSource::VALUE) continue;
      auto index = static_cast<uint32_t>(micro.imm);
      visit(index);
      micro.imm = index;
    }
  }
}

// As much of a program as its section table gives; nothing for bytes without one.
std::optional<Model> read(std::span<const std::byte> program);
// With the counts, positions and sizes that follow from the records.
std::vector<std::byte> write(const Model& model);

// Copies instruction `number` of another model, with the values, buffers and texts that it needs.
void import(Model& to, size_t at, const Model& from, size_t number, Random& random);
// Drops values that nothing refers to.
void sweep(Model& model);
// Number of a CONST value, which is added if there is none yet.
uint32_t constant(Model& model, int64_t number);

// Makes most of a changed model legal again: references in range, operands of the right kind, signatures complete.
void repair_references(Model& model, Random& random);
// Changes numbers so that the bind's rules hold, with buffers just as large as the instructions need.
void repair_numbers(Model& model, Random& random);
// A few random changes.
void change(Model& model, Random& random);
// One of the samples that the C++ tests share.
const Model& sample(Random& random);

}  // namespace neuron::fuzz
