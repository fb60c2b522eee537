#include "attempt.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "base/error.h"
#include "engine/isa.h"
#include "neff/neff.h"
#include "program/executable.h"

namespace neuron::fuzz {

namespace {

constexpr std::align_val_t kAlignment{64};

struct Free {
  void operator()(std::byte* bytes) const { ::operator delete[](bytes, kAlignment); }
};

// An allocation of exactly `size` bytes, so that AddressSanitizer sees one byte too many.
struct Memory {
  explicit Memory(int64_t size)
      : bytes(new (kAlignment) std::byte[static_cast<size_t>(size)]), size(static_cast<size_t>(size)) {}
  std::unique_ptr<std::byte[], Free> bytes;
  size_t size;
};

void demand(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "attempt: %s\n", what);
  std::abort();
}

// Numbers that a program may take for elements or for indices: half of the buffers hold small ones, the rest any bits.
// They repeat, because filling must cost less than running.
void fill(Memory& memory, Dtype dtype, uint64_t& state) {
  const auto next = [&state] {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
  };
  const bool small = next() % 2 == 0;
  const auto size = static_cast<size_t>(bytes_of(dtype));
  std::byte period[1024];
  for (size_t at = 0; at < std::min(sizeof(period), memory.size); at += size) {
    uint64_t bits = next();
    if (small) {
      const auto number = static_cast<int64_t>(bits >> 32 & 7);
      const auto real = static_cast<float>(number) * 0.5f - 1;
      switch (dtype) {
        case Dtype::FP32:
          bits = __builtin_bit_cast(uint32_t, real);
          break;
        case Dtype::BF16:
          bits = __builtin_bit_cast(uint32_t, real) >> 16;
          break;
        case Dtype::FP64:
          bits = __builtin_bit_cast(uint64_t, static_cast<double>(real));
          break;
        case Dtype::FP16:
          bits &= 0xBBFF;  // finite
          break;
        default:
          bits = static_cast<uint64_t>(number);
      }
    }
    std::memcpy(period + at, &bits, size);
  }
  for (size_t at = 0; at < memory.size; at += sizeof(period))
    std::memcpy(memory.bytes.get() + at, period, std::min(sizeof(period), memory.size - at));
}

LaunchInput launch_of(const Neff& neff) {
  LaunchInput launch{};
  for (const NeffMember& member : neff.members()) {
    if (member.name == kLaunchMember)
      std::memcpy(&launch, member.bytes.data(), std::min(sizeof(launch), member.bytes.size()));
  }
  return launch;
}

// What our own writer makes of the file gives the same program again.
void pack_again(const Neff& neff) {
  const auto program = neff.program();
  std::vector<NeffMember> others;
  for (const NeffMember& member : neff.members()) {
    if (member.name != kProgramMember) others.push_back(member);
  }
  std::vector<std::byte> file;
  try {
    file = pack_neff(program, neff.header().name, others);
  } catch (const Error&) {
    return;  // a member with one of our names
  }
  const Neff packed = Neff::parse(file);
  packed.check_hash();
  demand(std::ranges::equal(packed.program(), program), "the packed program differs");
  demand(packed.members().size() == others.size() + 5, "a member was lost");
}

void run(const Executable& executable, const LaunchInput& launch, Counts& counts) {
  const auto io = executable.io();
  const size_t inputs = executable.program().input_count();
  int64_t total = 0;
  for (const int64_t bytes : {executable.temp_bytes(), executable.sbuf_bytes(), executable.psum_bytes()})
    total = std::min(total + std::min(bytes, kMostBytes + 1), kMostBytes + 1);
  for (const Io& one : io) total = std::min(total + std::min(one.nbytes, kMostBytes + 1), kMostBytes + 1);
  if (total > kMostBytes || executable.program().header().scalar_count > 64) {
    ++counts.too_large;
    return;
  }
  std::vector<uint64_t> scalars(executable.program().header().scalar_count);
  for (size_t n = 0; n < scalars.size(); ++n) scalars[n] = launch.scalars[n % 8];
  uint64_t state = launch.seed | uint64_t{1} << 32;
  std::vector<Memory> memory;
  std::vector<std::vector<std::byte>> before;  // of the inputs
  std::vector<void*> buffers;
  std::vector<bool> writable(inputs);
  for (size_t n = 0; n < io.size(); ++n) {
    const int32_t alias = io[n].alias;
    if (alias >= 0) writable[static_cast<size_t>(alias)] = true;
    if (alias >= 0 && (launch.flags & kShareAliases) && io[static_cast<size_t>(alias)].nbytes == io[n].nbytes) {
      buffers.push_back(buffers[static_cast<size_t>(alias)]);
      continue;
    }
    fill(memory.emplace_back(io[n].nbytes), io[n].dtype, state);
    buffers.push_back(memory.back().bytes.get());
    if (n < inputs) before.emplace_back(memory.back().bytes.get(), memory.back().bytes.get() + memory.back().size);
  }
  Memory temp(executable.temp_bytes()), sbuf(executable.sbuf_bytes()), psum(executable.psum_bytes());
  for (Memory* scratch : {&temp, &sbuf, &psum}) fill(*scratch, Dtype::INT32, state);
  const engine::IsaList isas = engine::available_isas();
  engine::use_isa(*isas.sets[(launch.flags >> kLaunchFlagBits) % static_cast<uint32_t>(isas.count)]);
  try {
    executable.run(buffers.data(), scalars.data(), {temp.bytes.get(), sbuf.bytes.get(), psum.bytes.get()});
    ++counts.executed;
  } catch (const Error& error) {
    demand(std::strlen(error.what()) > 10, "an error of a launch without a sentence");
    ++counts.failed;
  }
  for (size_t n = 0; n < inputs; ++n) {
    if (writable[n]) continue;
    demand(before[n].empty() || std::memcmp(before[n].data(), buffers[n], before[n].size()) == 0,
           "an input was written");
  }
}

}  // namespace

std::string Counts::summary() const {
  const auto share = [this](uint64_t n) {
    return inputs == 0 ? 0.0 : 100.0 * static_cast<double>(n) / static_cast<double>(inputs);
  };
  return format("inputs %llu, verified %.1f %%, bound %.1f %%, too large %.1f %%, failed %.1f %%, executed %.1f %%",
                static_cast<unsigned long long>(inputs), share(verified), share(bound), share(too_large), share(failed),
                share(executed));
}

void prepare_process() {
  setenv("NEURON_RT_MAX_ELEMENTS", kMostElements, 1);
  setenv("NEURON_SIM_THREADS", "1", 1);  // small work never leaves its thread anyway; findings must replay
}

void attempt(std::span<const std::byte> file, Counts& counts) {
  ++counts.inputs;
  // A copy of exactly the file's size: whoever calls this may have more room behind it.
  const std::vector<std::byte> bytes(file.begin(), file.end());
  try {
    const Neff neff = Neff::parse(bytes);
    const LaunchInput launch = launch_of(neff);
    if (launch.flags & kCheckHash) neff.check_hash();
    const auto program = Program::load(neff.program());
    ++counts.verified;
    if (launch.flags & kPackAgain) pack_again(neff);
    if (program->header().slot_count > 64) {
      ++counts.too_large;
      return;
    }
    std::vector<int64_t> slots(program->header().slot_count);
    for (size_t n = 0; n < slots.size(); ++n) slots[n] = launch.slots[n % 8];
    const auto executable = Executable::bind(program, slots);
    ++counts.bound;
    run(*executable, launch, counts);
  } catch (const Error& error) {
    demand(std::strlen(error.what()) > 10, "a refusal without a sentence");
  }
}

}  // namespace neuron::fuzz
