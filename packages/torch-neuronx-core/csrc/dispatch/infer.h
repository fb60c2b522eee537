// What a call will produce: shape rules, or else torch's own meta kernels, run on tensors without memory.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "dispatch/call.h"
#include "dispatch/entry.h"

namespace torch_neuronx::dispatch {

struct Inferred {
  std::shared_ptr<Entry> entry;   // created, outputs and results are filled in; or resized alone
  std::vector<TensorSpec> specs;  // by output
  std::string reason;             // why the call cannot run natively; empty when it can
};

// Throws what the meta kernel throws when no CPU kernel may stand in to report the error in its own words.
Inferred infer(const Operator& op, c10::ArrayRef<c10::IValue> arguments, const Call& call);

TensorSpec spec_of(const c10::TensorImpl* tensor);

}  // namespace torch_neuronx::dispatch
