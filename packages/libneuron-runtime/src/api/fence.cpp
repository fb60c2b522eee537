#include "api/fence.h"

namespace neuron::api {

namespace {

thread_local std::string last_error;

}  // namespace

NRT_STATUS fail(NRT_STATUS status, const char* message) noexcept {
  try {
    last_error = message;
  } catch (...) {
    last_error.clear();
  }
  return status;
}

NRT_STATUS fail_current() noexcept {
  try {
    throw;
  } catch (const Error& error) {
    return fail(error.status(), error.what());
  } catch (const std::bad_alloc&) {
    return fail(NRT_RESOURCE, "the host is out of memory");
  } catch (const std::exception& error) {
    return fail(NRT_FAILURE, error.what());
  } catch (...) {
    return fail(NRT_FAILURE, "unknown exception");
  }
}

}  // namespace neuron::api

extern "C" const char* nrtx_last_error(void) { return neuron::api::last_error.c_str(); }
