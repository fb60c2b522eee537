// Environment variables of the runtime: read when they are needed first, malformed values refused with a sentence.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace neuron {

// The variable's text, or nothing when it is unset or empty.
std::optional<std::string> environment(const char* name);
// An integer from `least` to `most`. Throws Error(NRT_INVALID).
std::optional<int64_t> environment_integer(const char* name, int64_t least, int64_t most);
// 0/1, false/true, off/on, no/yes in any case. Throws Error(NRT_INVALID).
bool environment_flag(const char* name, bool fallback);

// NEURON_RT_VISIBLE_CORES: "3", "0-3", "0,1,2", "0-1,2-3"; the cores must be contiguous and ascending. Throws
// Error(NRT_INVALID).
std::vector<int> parse_cores(const std::string& text);

}  // namespace neuron
