// No program and no file crashes the runtime: seeded random mutations of valid ones are loaded, bound and run on
// buffers of exactly the size that they state. Meant for AddressSanitizer, which turns every stray access into a
// failure.
#include <doctest/doctest.h>

#include <cstdlib>
#include <memory>
#include <random>

#include "base/error.h"
#include "neff/neff.h"
#include "program/executable.h"
#include "samples.h"

namespace neuron::test {

namespace {

constexpr int kMutantsOfEach = 4000;
constexpr int64_t kMostBytes = 1 << 20;  // of one buffer, so that a run stays quick

using Random = std::mt19937_64;

uint64_t below(Random& random, uint64_t limit) { return random() % limit; }

// Numbers that tend to break arithmetic.
uint64_t odd_number(Random& random) {
  constexpr uint64_t kNumbers[] = {0,
                                   1,
                                   2,
                                   3,
                                   7,
                                   8,
                                   9,
                                   63,
                                   64,
                                   127,
                                   255,
                                   256,
                                   0x7FFFFFFF,
                                   0x80000000,
                                   0xFFFFFFFF,
                                   ~uint64_t{0},
                                   uint64_t{1} << 63,
                                   (uint64_t{1} << 63) - 1,
                                   uint64_t{1} << 40};
  return kNumbers[below(random, std::size(kNumbers))];
}

void mutate(std::vector<std::byte>& bytes, Random& random) {
  const int changes = 1 + static_cast<int>(below(random, 3));
  for (int n = 0; n < changes; ++n) {
    // Half of the changes hit aligned 32-bit fields, the most common kind.
    const uint64_t how = below(random, 8);
    if (how < 4) {
      const size_t at = below(random, bytes.size() / 4) * 4;
      const auto number = static_cast<uint32_t>(how < 2 ? below(random, 24) : odd_number(random));
      std::memcpy(bytes.data() + at, &number, 4);
    } else if (how == 4) {
      const size_t at = below(random, bytes.size() / 8) * 8;
      const uint64_t number = odd_number(random);
      std::memcpy(bytes.data() + at, &number, 8);
    } else if (how == 5) {
      bytes[below(random, bytes.size())] ^= std::byte{1} << below(random, 8);
    } else if (how == 6) {
      const size_t at = below(random, bytes.size() / 2) * 2;
      const auto number = static_cast<uint16_t>(below(random, 130));
      std::memcpy(bytes.data() + at, &number, 2);
    } else {  // copy a piece elsewhere
      const size_t size = 1 + below(random, std::min<size_t>(bytes.size(), 96));
      const size_t from = below(random, bytes.size() - size + 1), to = below(random, bytes.size() - size + 1);
      std::memmove(bytes.data() + to, bytes.data() + from, size);
    }
  }
  if (below(random, 64) == 0) bytes.resize(below(random, bytes.size() + 1));
}

struct Freed {
  void operator()(std::byte* bytes) const { ::operator delete[](bytes, std::align_val_t{64}); }
};
using Memory = std::unique_ptr<std::byte[], Freed>;

Memory allocate(int64_t size) {
  Memory memory(new (std::align_val_t{64}) std::byte[static_cast<size_t>(size)]);
  std::memset(memory.get(), 1, static_cast<size_t>(size));
  return memory;
}

struct Counts {
  int refused_at_load = 0, refused_at_bind = 0, failed = 0, ran = 0, too_large = 0;
};

void attempt(const std::vector<std::byte>& bytes, std::vector<int64_t> slots, std::vector<uint64_t> scalars,
             Counts& counts) {
  std::shared_ptr<const Program> program;
  std::shared_ptr<const Executable> executable;
  try {
    program = Program::load(bytes);
  } catch (const Error& error) {
    REQUIRE(std::string(error.what()).size() > 10);
    ++counts.refused_at_load;
    return;
  }
  if (program->header().slot_count <= 64) slots.resize(program->header().slot_count, 3);
  try {
    executable = Executable::bind(program, slots);
  } catch (const Error& error) {
    REQUIRE(std::string(error.what()).size() > 10);
    ++counts.refused_at_bind;
    return;
  }
  if (program->header().scalar_count > 64) return;
  scalars.resize(program->header().scalar_count, 5);
  std::vector<Memory> memory;
  std::vector<void*> buffers;
  bool fits = executable->temp_bytes() <= kMostBytes;
  for (const Io& io : executable->io()) fits &= io.nbytes <= kMostBytes;
  if (!fits) {
    ++counts.too_large;
    return;
  }
  for (const Io& io : executable->io()) {
    memory.push_back(allocate(io.nbytes));
    buffers.push_back(memory.back().get());
  }
  const Memory temp = allocate(executable->temp_bytes()), sbuf = allocate(executable->sbuf_bytes()),
               psum = allocate(executable->psum_bytes());
  try {
    executable->run(buffers.data(), scalars.data(), {temp.get(), sbuf.get(), psum.get()});
    ++counts.ran;
  } catch (const Error& error) {
    REQUIRE(std::string(error.what()).size() > 10);
    ++counts.failed;
  }
}

}  // namespace

TEST_CASE("mutated programs are refused or run inside their buffers") {
  setenv("NEURON_RT_MAX_ELEMENTS", "1000000", 1);
  for (const Sample& sample : samples()) {
    CAPTURE(sample.name);
    Random random(20240229);
    Counts counts;
    for (int n = 0; n < kMutantsOfEach; ++n) {
      std::vector<std::byte> bytes = sample.bytes;
      mutate(bytes, random);
      CAPTURE(n);
      attempt(bytes, sample.slots, sample.scalars, counts);
    }
    MESSAGE(sample.name << ": refused at load " << counts.refused_at_load << ", at bind " << counts.refused_at_bind
                        << ", failed " << counts.failed << ", ran " << counts.ran << ", too large "
                        << counts.too_large);
    CHECK(counts.refused_at_load > kMutantsOfEach / 10);
  }
}

TEST_CASE("mutated files are refused or give a program") {
  const Sample sample = add_sample();
  const std::vector<std::byte> file = pack_neff(sample.bytes, "mutant", {});
  Random random(19991231);
  int refused = 0, read = 0;
  for (int n = 0; n < 2 * kMutantsOfEach; ++n) {
    std::vector<std::byte> bytes = file;
    mutate(bytes, random);
    CAPTURE(n);
    try {
      const Neff neff = Neff::parse(bytes);
      size_t sum = 0;
      for (const NeffMember& member : neff.members()) {
        for (const std::byte b : member.bytes) sum += static_cast<size_t>(b);  // every byte is readable
      }
      Program::load(neff.program());
      ++read;
      CHECK(sum > 0);
    } catch (const Error& error) {
      REQUIRE(std::string(error.what()).size() > 10);
      ++refused;
    }
  }
  CHECK(refused > 0);
  CHECK(read > 0);
}

}  // namespace neuron::test
