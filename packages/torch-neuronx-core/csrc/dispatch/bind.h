// Making the entry of a call that has none: sizes of its results, and a program bound to them.
#pragma once

#include <cstdint>
#include <string>

#include "dispatch/call.h"
#include "dispatch/entry.h"

namespace torch_neuronx::dispatch {

// The new entry, which is remembered under the call's key. Null, with a reason, when the call cannot run natively and
// that must not be remembered. Valid as find_entry()'s. May call Python: take no lock.
const Entry* make_entry(const Operator& op, c10::ArrayRef<c10::IValue> arguments, const Call& call, uint64_t hash,
                        std::string& reason);

}  // namespace torch_neuronx::dispatch
