// Every file of the given directories through the same attempt as in the fuzzer, in any build: `fuzz_replay DIR...`.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "attempt.h"

int main(int argc, char** argv) {
  neuron::fuzz::prepare_process();
  neuron::fuzz::Counts counts;
  for (int n = 1; n < argc; ++n) {
    std::vector<std::filesystem::path> files;
    if (std::filesystem::is_directory(argv[n])) {
      for (const auto& entry : std::filesystem::directory_iterator(argv[n])) files.push_back(entry.path());
      std::sort(files.begin(), files.end());
    } else {
      files.emplace_back(argv[n]);
    }
    for (const auto& path : files) {
      std::ifstream stream(path, std::ios::binary);
      const std::vector<char> bytes{std::istreambuf_iterator<char>(stream), {}};
      if (argc == 2 && files.size() == 1) std::printf("%s\n", path.c_str());
      neuron::fuzz::attempt(std::as_bytes(std::span(bytes)), counts);
    }
  }
  std::printf("%s\n", counts.summary().c_str());
  if (counts.executed > 0) return 0;
  std::fprintf(stderr, "fuzz_replay: no input ran; give directories of NEFF files\n");
  return 1;
}
