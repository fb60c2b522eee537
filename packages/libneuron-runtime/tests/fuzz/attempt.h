// One untrusted file, all the way: read, verified, bound and run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace neuron::fuzz {

// The member of a test file that says how to launch it; other files get zeros.
inline constexpr char kLaunchMember[] = "launch";
struct LaunchInput {
  int64_t slots[8];     // slot n is slots[n % 8]
  uint64_t scalars[8];  // scalar n likewise
  uint32_t seed;        // of the buffers' contents
  uint32_t flags;       // LaunchFlag bits; the rest chooses the instruction set
};
enum LaunchFlag : uint32_t { kShareAliases = 1, kPackAgain = 2, kCheckHash = 4, kLaunchFlagBits = 3 };

// How far inputs came.
struct Counts {
  uint64_t inputs = 0;
  uint64_t verified = 0;   // container and all load rules
  uint64_t bound = 0;      // bind rules
  uint64_t too_large = 0;  // for this test's own limits
  uint64_t failed = 0;     // the launch ended with an error
  uint64_t executed = 0;   // the launch succeeded
  std::string summary() const;
};

// Every visited element and byte of memory costs time here: limits of one input.
inline constexpr char kMostElements[] = "32768";  // NEURON_RT_MAX_ELEMENTS
inline constexpr int64_t kMostBytes = 1 << 18;    // of all buffers

// Sets the limits. Before anything else.
void prepare_process();

// Refusals and errors are expected; anything else ends the process: a stray access (each buffer is an allocation of
// exactly its size), a written input that no output aliases, an error without a sentence, a packed program that
// differs.
void attempt(std::span<const std::byte> file, Counts& counts);

}  // namespace neuron::fuzz
