// Any bytes: a program is refused with an Error, or it runs inside buffers of exactly the sizes that it states. Slots
// are 1, 2, 3, ...
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "base/error.h"
#include "program/executable.h"

namespace {

constexpr int64_t kMostBytes = 1 << 20;  // of one buffer, so that a run stays quick
constexpr std::align_val_t kAlignment{64};

struct Free {
  void operator()(std::byte* bytes) const { ::operator delete[](bytes, kAlignment); }
};
using Memory = std::unique_ptr<std::byte[], Free>;

Memory allocate(int64_t size) {
  Memory memory(new (kAlignment) std::byte[static_cast<size_t>(size)]);
  std::memset(memory.get(), 1, static_cast<size_t>(size));
  return memory;
}

void run(std::span<const std::byte> bytes) {
  const auto program = neuron::Program::load(bytes);
  const auto& header = program->header();
  if (header.slot_count > 64 || header.scalar_count > 64) return;
  std::vector<int64_t> slots;
  for (uint32_t n = 0; n < header.slot_count; ++n) slots.push_back(n + 1);
  const std::vector<uint64_t> scalars(header.scalar_count, 3);
  const auto executable = neuron::Executable::bind(program, slots);
  if (executable->temp_bytes() > kMostBytes) return;
  std::vector<Memory> memory;
  std::vector<void*> buffers;
  for (const neuron::Io& io : executable->io()) {
    if (io.nbytes > kMostBytes) return;
    memory.push_back(allocate(io.nbytes));
    buffers.push_back(memory.back().get());
  }
  const Memory temp = allocate(executable->temp_bytes()), sbuf = allocate(executable->sbuf_bytes()),
               psum = allocate(executable->psum_bytes());
  executable->run(buffers.data(), scalars.data(), {temp.get(), sbuf.get(), psum.get()});
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  setenv("NEURON_RT_MAX_ELEMENTS", "1000000", 1);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    run(std::as_bytes(std::span(data, size)));
  } catch (const neuron::Error&) {
  }
  return 0;
}
