// A loaded program: its bytes, checked once against every rule of the load phase (docs/reference/program.md), and views
// of its records. Immutable afterwards, so it may be bound from several threads at once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "program_schema.h"

namespace neuron {

// How an instruction uses one of its patterns.
enum PatternUse : uint8_t {
  kReads = 1,
  kWrites = 2,
  kTable = 4,  // holds numbers for GATHER or SCATTER and reaches no memory
};

class Program {
 public:
  // Copies the bytes, so that they may go away. Throws Error(NRT_INVALID), or NRT_UNSUPPORTED_NEFF_VERSION for another
  // version.
  static std::shared_ptr<const Program> load(std::span<const std::byte> bytes);

  const schema::HeaderRecord& header() const { return *header_; }
  std::span<const schema::ValueRecord> values() const { return values_; }
  std::span<const schema::GuardRecord> guards() const { return guards_; }
  std::span<const schema::BufferRecord> buffers() const { return buffers_; }
  std::span<const schema::IoRecord> io() const { return io_; }
  std::span<const schema::InstructionRecord> instructions() const { return instructions_; }
  std::span<const schema::PatternRecord> patterns() const { return patterns_; }
  std::span<const schema::MicroRecord> micro() const { return micro_; }
  std::span<const std::byte> constants() const { return constants_; }
  // A text at a checked offset into STRINGS, or its first `most` bytes.
  std::string_view text(uint32_t offset, size_t most = SIZE_MAX) const {
    return {strings_.data() + offset, strnlen(strings_.data() + offset, std::min(most, strings_.size() - offset))};
  }

  std::span<const schema::PatternRecord> patterns_of(const schema::InstructionRecord& i) const {
    return patterns_.subspan(i.pattern_first, i.pattern_count);
  }
  std::span<const schema::MicroRecord> micro_of(const schema::InstructionRecord& i) const {
    return micro_.subspan(i.micro_first, i.micro_count);
  }
  std::span<const uint8_t> uses_of(const schema::InstructionRecord& i) const {
    return std::span(uses_).subspan(i.pattern_first, i.pattern_count);
  }

  uint32_t input_count() const { return input_count_; }
  uint32_t output_count() const { return output_count_; }

 private:
  friend class Validator;
  struct Free {
    void operator()(std::byte* bytes) const;
  };

  Program() = default;
  void map(size_t size);  // header and section table to spans

  std::unique_ptr<std::byte[], Free> bytes_;  // aligned to section_alignment
  const schema::HeaderRecord* header_ = nullptr;
  std::span<const schema::ValueRecord> values_;
  std::span<const schema::GuardRecord> guards_;
  std::span<const schema::BufferRecord> buffers_;
  std::span<const schema::IoRecord> io_;
  std::span<const schema::InstructionRecord> instructions_;
  std::span<const schema::PatternRecord> patterns_;
  std::span<const schema::MicroRecord> micro_;
  std::span<const std::byte> constants_;
  std::string_view strings_;
  std::vector<uint8_t> uses_;  // PatternUse bits of each pattern
  uint32_t input_count_ = 0, output_count_ = 0;
};

// Throws Error(NRT_INVALID) with the sentence and the rule's number.
[[noreturn, gnu::format(printf, 2, 3)]] void refuse(schema::Rule rule, const char* text, ...);

}  // namespace neuron
