#include "program/program.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <new>

#include "base/error.h"
#include "program/validate.h"

namespace neuron {

using schema::Rule;

namespace {

constexpr std::align_val_t kAlignment{schema::kSectionAlignment};

// Record size of a section; 1 for bytes, 0 for no such section.
size_t record_bytes(SectionKind kind) {
  switch (kind) {
    case SectionKind::VALUES:
      return sizeof(schema::ValueRecord);
    case SectionKind::GUARDS:
      return sizeof(schema::GuardRecord);
    case SectionKind::BUFFERS:
      return sizeof(schema::BufferRecord);
    case SectionKind::IO:
      return sizeof(schema::IoRecord);
    case SectionKind::INSTRUCTIONS:
      return sizeof(schema::InstructionRecord);
    case SectionKind::PATTERNS:
      return sizeof(schema::PatternRecord);
    case SectionKind::MICRO:
      return sizeof(schema::MicroRecord);
    case SectionKind::CONSTANTS:
    case SectionKind::STRINGS:
      return 1;
  }
  return 0;
}

}  // namespace

void refuse(Rule rule, const char* text, ...) {
  char buffer[512];
  va_list args;
  va_start(args, text);
  std::vsnprintf(buffer, sizeof(buffer), text, args);
  va_end(args);
  throw Error(NRT_INVALID, format("program: %s (rule %s)", buffer, schema::kRuleIds[static_cast<size_t>(rule)]));
}

void Program::Free::operator()(std::byte* bytes) const { ::operator delete[](bytes, kAlignment); }

std::shared_ptr<const Program> Program::load(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof(schema::HeaderRecord)) {
    refuse(Rule::container, "%zu bytes are too few for the header of %zu", bytes.size(), sizeof(schema::HeaderRecord));
  }
  std::shared_ptr<Program> program(new Program);
  program->bytes_.reset(new (kAlignment) std::byte[bytes.size()]);
  std::memcpy(program->bytes_.get(), bytes.data(), bytes.size());
  program->map(bytes.size());
  validate(*program);
  return program;
}

void Program::map(size_t size) {
  header_ = reinterpret_cast<const schema::HeaderRecord*>(bytes_.get());
  if (std::memcmp(header_->magic, schema::kMagic, sizeof(header_->magic)) != 0) {
    refuse(Rule::container, "the first 8 bytes are not the magic \"%s\"", schema::kMagic);
  }
  if (header_->version != schema::kVersion) {
    throw Error(NRT_UNSUPPORTED_NEFF_VERSION,
                format("program: format version is %u, but this runtime reads version %u (rule %s)", header_->version,
                       schema::kVersion, schema::kRuleIds[static_cast<size_t>(Rule::container)]));
  }
  if (header_->total_bytes != size) {
    refuse(Rule::container, "total_bytes is %llu, but the program has %zu bytes",
           static_cast<unsigned long long>(header_->total_bytes), size);
  }
  if (header_->reserved != 0) refuse(Rule::reserved, "header: reserved is %u, expected 0", header_->reserved);

  const size_t rows_room = (size - sizeof(schema::HeaderRecord)) / sizeof(schema::SectionRecord);
  if (header_->section_count > rows_room) {
    refuse(Rule::sections, "section_count is %u, but there is room for %zu rows", header_->section_count, rows_room);
  }
  const std::span rows(reinterpret_cast<const schema::SectionRecord*>(header_ + 1), header_->section_count);
  const uint64_t table_end = sizeof(schema::HeaderRecord) + rows.size_bytes();
  uint32_t seen = 0;
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (size_t n = 0; n < rows.size(); ++n) {
    const schema::SectionRecord& row = rows[n];
    const char* name = name_of(row.kind);
    if (!name) refuse(Rule::sections, "section %zu: unknown kind %u", n, static_cast<unsigned>(row.kind));
    const uint32_t bit = 1u << static_cast<uint32_t>(row.kind);
    if (seen & bit) refuse(Rule::sections, "section %zu: %s occurs twice", n, name);
    seen |= bit;
    const size_t unit = record_bytes(row.kind);
    if (row.record_bytes != unit) {
      refuse(Rule::sections, "section %zu: records of %s have %u bytes, expected %zu", n, name, row.record_bytes, unit);
    }
    if (row.offset % schema::kSectionAlignment != 0 || row.offset < table_end || row.offset > size) {
      refuse(Rule::sections, "section %zu: %s begins at byte %llu, expected a multiple of %zu from %llu to %zu", n,
             name, static_cast<unsigned long long>(row.offset), schema::kSectionAlignment,
             static_cast<unsigned long long>(table_end), size);
    }
    if (row.count > (size - row.offset) / unit) {
      refuse(Rule::sections, "section %zu: %llu records of %s reach past the end of the program", n,
             static_cast<unsigned long long>(row.count), name);
    }
    if (row.count >= schema::kNone) {
      refuse(Rule::sections, "section %zu: %llu records of %s are more than an index can name", n,
             static_cast<unsigned long long>(row.count), name);
    }
    if (row.count > 0) ranges.emplace_back(row.offset, row.offset + row.count * unit);

    const std::byte* start = bytes_.get() + row.offset;
    const size_t count = row.count;
    const auto view = [&]<typename T>(std::span<const T>& span) { span = {reinterpret_cast<const T*>(start), count}; };
    switch (row.kind) {
      case SectionKind::VALUES:
        view(values_);
        break;
      case SectionKind::GUARDS:
        view(guards_);
        break;
      case SectionKind::BUFFERS:
        view(buffers_);
        break;
      case SectionKind::IO:
        view(io_);
        break;
      case SectionKind::INSTRUCTIONS:
        view(instructions_);
        break;
      case SectionKind::PATTERNS:
        view(patterns_);
        break;
      case SectionKind::MICRO:
        view(micro_);
        break;
      case SectionKind::CONSTANTS:
        view(constants_);
        break;
      case SectionKind::STRINGS:
        strings_ = {reinterpret_cast<const char*>(start), count};
        break;
    }
  }
  std::sort(ranges.begin(), ranges.end());
  for (size_t n = 1; n < ranges.size(); ++n) {
    if (ranges[n].first < ranges[n - 1].second) {
      refuse(Rule::sections, "the sections at bytes %llu and %llu overlap",
             static_cast<unsigned long long>(ranges[n - 1].first), static_cast<unsigned long long>(ranges[n].first));
    }
  }
}

}  // namespace neuron
