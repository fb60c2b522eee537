#include <doctest/doctest.h>

#include <cstring>
#include <string>

#include "base/error.h"
#include "program/executable.h"
#include "samples.h"

namespace neuron::test {

namespace {

std::string refusal(std::span<const std::byte> bytes, NRT_STATUS status = NRT_INVALID) {
  try {
    Program::load(bytes);
  } catch (const Error& error) {
    CHECK(error.status() == status);
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("every sample loads, and its views hold what was written") {
  for (const Sample& sample : samples()) {
    CAPTURE(sample.name);
    const auto program = Program::load(sample.bytes);
    CHECK(program->instructions().size() >= 1);
    CHECK(program->header().slot_count == sample.slots.size());
    CHECK(program->header().scalar_count == sample.scalars.size());
    CHECK(program->io().size() == program->input_count() + program->output_count());
    for (const auto& instruction : program->instructions()) {
      CHECK(program->text(instruction.debug).starts_with("test::"));
      CHECK(program->patterns_of(instruction).size() == program->uses_of(instruction).size());
    }
  }
}

TEST_CASE("a program does not need its bytes after it is loaded") {
  Sample sample = add_sample();
  const auto program = Program::load(sample.bytes);
  std::fill(sample.bytes.begin(), sample.bytes.end(), std::byte{0xEE});
  const auto executable = Executable::bind(program, sample.slots);
  CHECK(executable->io()[0].nbytes == 96);
}

TEST_CASE("add computes sums") {
  const Sample sample = add_sample();
  const auto executable = Executable::bind(Program::load(sample.bytes), std::vector<int64_t>{2, 3});
  alignas(64) float x[6] = {1, 2, 3, 4, 5, 6}, y[6] = {10, 20, 30, 40, 50, 60}, z[6] = {};
  void* buffers[] = {x, y, z};
  executable->run(buffers, nullptr, {});
  for (int n = 0; n < 6; ++n) CHECK(z[n] == x[n] + y[n]);
}

TEST_CASE("patterns know whether they are read or written") {
  for (const Sample& sample : samples()) {
    const auto program = Program::load(sample.bytes);
    const auto uses = program->uses_of(program->instructions()[0]);
    CAPTURE(sample.name);
    if (sample.name == "add")
      CHECK(std::vector(uses.begin(), uses.end()) == std::vector<uint8_t>{kReads, kReads, kWrites});
    if (sample.name == "alias") CHECK(uses[0] == (kReads | kWrites));
    if (sample.name == "matmul")
      CHECK(std::vector(uses.begin(), uses.end()) == std::vector<uint8_t>{kReads, kReads, kReads, kWrites});
    if (sample.name == "gather")
      CHECK(std::vector(uses.begin(), uses.end()) == std::vector<uint8_t>{kReads, kReads, kWrites, kTable, kTable});
    if (sample.name == "scatter") CHECK(uses[0] == (kReads | kWrites));
  }
}

TEST_CASE("bytes that are no program are refused with what is wrong") {
  std::vector<std::byte> bytes = add_sample().bytes;
  CHECK(refusal({}).find("0 bytes are too few for the header of 40 (rule L1)") != std::string::npos);
  CHECK(refusal(std::span(bytes).first(39)).find("39 bytes") != std::string::npos);
  CHECK(refusal(std::span(bytes).first(bytes.size() - 1)).find("total_bytes is") != std::string::npos);
  bytes.push_back(std::byte{0});
  CHECK(refusal(bytes).find("total_bytes is") != std::string::npos);
  bytes.pop_back();
  bytes[0] = std::byte{'X'};
  CHECK(refusal(bytes).find("not the magic \"NEURPRGM\"") != std::string::npos);
  bytes[0] = std::byte{'N'};
  bytes[8] = std::byte{9};
  CHECK(refusal(bytes, NRT_UNSUPPORTED_NEFF_VERSION).find("version is 9, but this runtime reads version 1") !=
        std::string::npos);
}

TEST_CASE("counts that no program has are refused") {
  const std::vector<std::byte> good = add_sample().bytes;
  // The refusal of the sample with some record changed.
  const auto with = [&](auto change) {
    std::vector<std::byte> bytes = good;
    auto* header = reinterpret_cast<schema::HeaderRecord*>(bytes.data());
    change(*header, reinterpret_cast<schema::SectionRecord*>(header + 1));
    return refusal(bytes);
  };
  const auto says = [](const std::string& text, const char* part) {
    CAPTURE(text);
    CHECK(text.find(part) != std::string::npos);
  };
  using Header = schema::HeaderRecord;
  using Section = schema::SectionRecord;
  says(with([](Header& h, Section*) { h.section_count = 0xFFFFFFFF; }),
       "section_count is 4294967295, but there is room");
  says(with([](Header& h, Section*) { h.total_bytes = ~uint64_t{0}; }), "total_bytes is 18446744073709551615, but");
  for (const uint64_t count : {uint64_t{1} << 20, uint64_t{1} << 61, ~uint64_t{0}}) {
    says(with([&](Header&, Section* rows) { rows[0].count = count; }), "records of VALUES reach past the end");
  }
  says(with([](Header&, Section* rows) { rows[0].offset = ~uint64_t{63}; }),
       "VALUES begins at byte 18446744073709551552");

  const auto built = [](auto change) {
    ProgramBuilder p;
    p.scratch = p.number(0);
    const uint32_t one = p.number(1);
    const uint32_t y = p.argument(BufferKind::OUTPUT, "y", Dtype::FP32, {one}, p.number(4));
    p.instruction(Opcode::TILE, {one});
    p.store(p.pattern(y, Dtype::FP32, {one}), Kind::F32, p.op(Micro::CONST, Kind::F32));
    change(p);
    return refusal(p.bytes());
  };
  using Builder = ProgramBuilder;
  says(built([](Builder&) {}), "accepted");
  says(built([](Builder& p) { p.instructions[0].pattern_count = 0xFFFFFFFF; }), "patterns 0 and 4294967295 more");
  says(built([](Builder& p) { p.instructions[0].micro_count = 0xFFFFFFFF; }), "micro-operations 0 and 4294967295 more");
  says(built([](Builder& p) { p.instructions[0].rank = 9; }), "rank is 9, expected at most 8");
  says(built([](Builder& p) { p.io[0].rank = 0xFFFFFFFF; }), "rank is 4294967295, expected at most 8");
  says(built([](Builder& p) { p.micro.resize(257, p.micro[0]), p.instructions[0].micro_count = 257; }),
       "257 micro-operations, expected at most 256");
  says(built([](Builder& p) { p.slot_count = 0xFFFFFFFF; }), "accepted");  // a bind has to give as many
}

}  // namespace neuron::test
