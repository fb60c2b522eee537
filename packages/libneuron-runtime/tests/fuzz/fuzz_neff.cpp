// Any bytes: a NEFF is refused with an Error or read to the last byte of its members.
#include "base/error.h"
#include "neff/neff.h"
#include "program/program.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const neuron::Neff neff = neuron::Neff::parse(std::as_bytes(std::span(data, size)));
    volatile unsigned sum = 0;
    for (const neuron::NeffMember& member : neff.members()) {
      for (const std::byte b : member.bytes) sum = sum + static_cast<unsigned>(b);
    }
    neuron::Program::load(neff.program());
  } catch (const neuron::Error&) {
  }
  return 0;
}
