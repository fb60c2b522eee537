// libFuzzer on whole NEFF files, with a mutator that knows their structure: `fuzz_neff CORPUS`. Prints at exit how many
// inputs passed verification and ran.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "attempt.h"
#include "container.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

using namespace neuron::fuzz;

Counts counts;

// Copies a new file into libFuzzer's memory; keeps the old one when it does not fit.
size_t deliver(const std::vector<std::byte>& file, uint8_t* data, size_t size, size_t max_size) {
  if (file.empty() || file.size() > max_size) return size;
  std::memcpy(data, file.data(), file.size());
  return file.size();
}

std::vector<std::byte> finish(Model& model, Random& random) {
  // Rarely left broken, so that refusals are met as well.
  if (!random.chance(10)) {
    repair_references(model, random);
    if (!random.chance(10)) repair_numbers(model, random);
    sweep(model);
  }
  return pack(write(model), model.launch, random);
}

}  // namespace

// Half of the time would go into stacks of allocations, of which a report needs the last few.
extern "C" const char* __asan_default_options() { return "malloc_context_size=4:quarantine_size_mb=16"; }

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  prepare_process();
  std::atexit([] { std::fprintf(stderr, "fuzz_neff: %s\n", counts.summary().c_str()); });
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  attempt(std::as_bytes(std::span(data, size)), counts);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  Random random(seed);
  const auto file = std::as_bytes(std::span(data, size));
  if (random.chance(40) && size > 0) {  // any bytes, with or without right sums
    size = LLVMFuzzerMutate(data, size, max_size);
    std::vector<std::byte> changed(reinterpret_cast<std::byte*>(data), reinterpret_cast<std::byte*>(data) + size);
    if (!random.chance(4)) repair_container(changed);
    return deliver(changed, data, size, max_size);
  }
  Model model;
  if (random.chance(100) || !unpack(file, model)) model = sample(random);
  change(model, random);
  return deliver(finish(model, random), data, size, max_size);
}

// Instructions of two files in one.
extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* data1, size_t size1, const uint8_t* data2, size_t size2,
                                            uint8_t* out, size_t max_out, unsigned seed) {
  Random random(seed);
  Model model, other;
  if (!unpack(std::as_bytes(std::span(data1, size1)), model)) return 0;
  if (!unpack(std::as_bytes(std::span(data2, size2)), other) || other.nodes.empty()) return 0;
  if (model.nodes.size() >= 12) model.nodes.resize(4);
  import(model, random.below(model.nodes.size() + 1), other, random.below(other.nodes.size()), random);
  return deliver(finish(model, random), out, 0, max_out);
}
