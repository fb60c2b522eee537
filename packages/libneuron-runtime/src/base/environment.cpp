#include "base/environment.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>

#include "base/error.h"

namespace neuron {

namespace {

constexpr int kMaxCore = 4095;

int parse_core(const std::string& text, size_t& position) {
  int core = -1;
  const auto [end, error] = std::from_chars(text.data() + position, text.data() + text.size(), core);
  if (error != std::errc() || core < 0 || core > kMaxCore) {
    throw Error(NRT_INVALID, format("NEURON_RT_VISIBLE_CORES=\"%s\": expected a core number (0 to %d) at character %zu",
                                    text.c_str(), kMaxCore, position + 1));
  }
  position = static_cast<size_t>(end - text.data());
  return core;
}

}  // namespace

std::optional<std::string> environment(const char* name) {
  const char* text = std::getenv(name);
  if (!text || !*text) return std::nullopt;
  return text;
}

std::optional<int64_t> environment_integer(const char* name, int64_t least, int64_t most) {
  const auto text = environment(name);
  if (!text) return std::nullopt;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size() || value < least || value > most) {
    throw Error(NRT_INVALID, format("%s=\"%s\": expected an integer from %lld to %lld", name, text->c_str(),
                                    static_cast<long long>(least), static_cast<long long>(most)));
  }
  return value;
}

bool environment_flag(const char* name, bool fallback) {
  auto text = environment(name);
  if (!text) return fallback;
  std::string lower = *text;
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  if (lower == "1" || lower == "true" || lower == "on" || lower == "yes") return true;
  if (lower == "0" || lower == "false" || lower == "off" || lower == "no") return false;
  throw Error(NRT_INVALID, format("%s=\"%s\": expected 0 or 1", name, text->c_str()));
}

std::vector<int> parse_cores(const std::string& text) {
  std::vector<int> cores;
  size_t position = 0;
  for (;;) {
    const int first = parse_core(text, position);
    int last = first;
    if (position < text.size() && text[position] == '-') {
      ++position;
      last = parse_core(text, position);
    }
    for (int core = first; core <= last; ++core) cores.push_back(core);
    if (last < first) {
      throw Error(NRT_INVALID,
                  format("NEURON_RT_VISIBLE_CORES=\"%s\": the range %d-%d runs backwards", text.c_str(), first, last));
    }
    if (position == text.size()) break;
    if (text[position] != ',') {
      throw Error(NRT_INVALID, format("NEURON_RT_VISIBLE_CORES=\"%s\": expected ',' or '-' at character %zu",
                                      text.c_str(), position + 1));
    }
    ++position;
  }
  for (size_t i = 1; i < cores.size(); ++i) {
    if (cores[i] != cores[i - 1] + 1) {
      throw Error(NRT_INVALID,
                  format("NEURON_RT_VISIBLE_CORES=\"%s\": cores must be contiguous and ascending, but %d follows %d",
                         text.c_str(), cores[i], cores[i - 1]));
    }
  }
  return cores;
}

}  // namespace neuron
