// The one exception of the runtime. It is thrown where the cause is known and caught by the C API (src/api/) alone.
#pragma once

#include <cstdarg>
#include <stdexcept>
#include <string>

#include "nrt/nrt_status.h"

namespace neuron {

class Error : public std::runtime_error {
 public:
  // message: one sentence that says what was asked, what was got and what would work.
  Error(NRT_STATUS status, const std::string& message) : std::runtime_error(message), status_(status) {}
  NRT_STATUS status() const { return status_; }

 private:
  NRT_STATUS status_;
};

// printf into a string, for messages.
[[gnu::format(printf, 1, 2)]] std::string format(const char* text, ...);

}  // namespace neuron
