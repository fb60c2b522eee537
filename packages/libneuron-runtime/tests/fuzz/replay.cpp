// Files through the same attempt as in the fuzzer, in any build: `fuzz_replay FILE...`. A name that ends in .tar.gz is
// an archive of such files, any other is one.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string_view>
#include <vector>

#include "attempt.h"
#include "base/error.h"
#include "neff/neff.h"

int main(int argc, char** argv) {
  neuron::fuzz::prepare_process();
  neuron::fuzz::Counts counts;
  for (int n = 1; n < argc; ++n) {
    std::ifstream stream(argv[n], std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(stream), {}};
    const auto file = std::as_bytes(std::span(bytes));
    try {
      if (!std::string_view(argv[n]).ends_with(".tar.gz")) {
        neuron::fuzz::attempt(file, counts);
        continue;
      }
      const std::vector<std::byte> archive = neuron::inflate_gzip(file);
      for (const neuron::NeffMember& member : neuron::read_tar(archive)) neuron::fuzz::attempt(member.bytes, counts);
    } catch (const neuron::Error& error) {
      std::fprintf(stderr, "fuzz_replay: %s: %s\n", argv[n], error.what());
      return 1;
    }
  }
  std::printf("%s\n", counts.summary().c_str());
  if (counts.inputs > 0) return 0;
  std::fprintf(stderr, "fuzz_replay: nothing to replay; give files or archives of them\n");
  return 1;
}
