// What the dispatch asks of Python. Each function takes the GIL itself; call none with a lock held.
#pragma once

#include <exception>
#include <optional>
#include <stdexcept>
#include <string>

#include "dispatch/operator.h"

namespace torch_neuronx::dispatch {

struct Request;

// Emit torch_neuronx.tracking.NeuronFallbackWarning on the user's line. Throws when the program turned that warning
// into an error. Silent when the interpreter is not running any more.
void warn_fallback(const std::string& message);
// ", called at train.py:12", the innermost Python line outside torch; empty when there is none.
std::string user_line();

struct Traits {
  ArgumentSet operands;
  bool random;
  bool sizing;
};
struct Description {
  std::optional<Traits> traits;
  std::string reason;  // why there are none
};
// Ask the op compiler about an operator.
Description describe(const Operator& op);

// The op compiler raised an Exception: its type and text, and itself.
struct CompilerError : std::runtime_error {
  CompilerError(const std::string& text, std::exception_ptr cause)
      : std::runtime_error(text), cause(std::move(cause)) {}
  std::exception_ptr cause;
};
struct Compiled {
  std::optional<std::string> neff;
  std::string reason;  // why there is none: the arguments are not supported
};
// Ask the op compiler for a program. Throws CompilerError.
Compiled compile(const Request& request);

// Releases the GIL while it lives, if the thread holds it.
class WithoutGil {
 public:
  WithoutGil();
  ~WithoutGil();
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  void* state_ = nullptr;
};

}  // namespace torch_neuronx::dispatch
