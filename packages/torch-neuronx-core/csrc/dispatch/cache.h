// The exact-signature cache: key of a call -> entry.
#pragma once

#include <cstddef>
#include <memory>

#include "dispatch/entry.h"
#include "dispatch/key.h"

namespace torch_neuronx::dispatch {

// The entry of a key, or null. The pointer is valid until the calling thread's next lookup, insertion or clearing. No
// lock when the thread has used the entry recently.
const Entry* find_entry(const Key& key, uint64_t hash);
// Remember an entry under entry->key; another one may be forgotten. The pointer is valid as above.
const Entry* insert_entry(std::shared_ptr<const Entry> entry, uint64_t hash);
void clear_entries();
size_t count_entries();

}  // namespace torch_neuronx::dispatch
