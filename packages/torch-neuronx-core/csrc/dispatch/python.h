// What the dispatch asks of Python. Each function takes the GIL itself; call none with a lock held.
#pragma once

#include <string>

namespace torch_neuronx::dispatch {

// Emit torch_neuronx.tracking.NeuronFallbackWarning. Throws when the program turned that warning into an error. Silent
// when the interpreter is not running any more.
void warn_fallback(const std::string& message);

}  // namespace torch_neuronx::dispatch
