#include "base/error.h"

#include <cstdio>

namespace neuron {

std::string format(const char* text, ...) {
  va_list args;
  va_start(args, text);
  va_list again;
  va_copy(again, args);
  const int size = std::vsnprintf(nullptr, 0, text, args);
  va_end(args);
  std::string result(size > 0 ? static_cast<size_t>(size) : 0, '\0');
  std::vsnprintf(result.data(), result.size() + 1, text, again);
  va_end(again);
  return result;
}

}  // namespace neuron
