// The C API's only fence: exceptions stop here and become a status and a message of the calling thread.
#pragma once

#include <new>
#include <string>
#include <utility>

#include "base/error.h"
#include "neuron/launch.h"
#include "nrt/nrt.h"
#include "nrt/nrt_experimental.h"
#include "nrt/nrt_version.h"

namespace neuron::api {

// Stores the message for nrtx_last_error and returns the status.
NRT_STATUS fail(NRT_STATUS status, const char* message) noexcept;

// Of the exception being handled.
NRT_STATUS fail_current() noexcept;

template <class Body>
NRT_STATUS guarded(Body&& body) noexcept {
  try {
    std::forward<Body>(body)();
    return NRT_SUCCESS;
  } catch (...) {
    return fail_current();
  }
}

// Throws Error(NRT_INVALID) for a NULL argument.
inline void require(const void* argument, const char* name) {
  if (!argument) throw Error(NRT_INVALID, format("argument %s is NULL", name));
}

}  // namespace neuron::api
