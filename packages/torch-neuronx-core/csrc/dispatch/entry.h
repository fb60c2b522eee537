// What the device remembers of a call: how to run the next one with the same key.
#pragma once

#include <ATen/DimVector.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dispatch/operator.h"
#include "neuron/launch.h"

namespace torch_neuronx::dispatch {

struct TensorSpec {
  c10::ScalarType dtype;
  at::DimVector sizes, strides;  // in elements; of a contiguous tensor as torch makes them
  bool contiguous;
  size_t nbytes;  // that its elements span
};

// One output of a launch.
struct Output {
  enum class Place : uint8_t {
    kCreated,  // a new tensor: `position` among the created
    kInput,    // the memory of input `position`, written in place
    kOut,      // `out` argument `position`
    kStaged,   // a new tensor, `position` among the created, copied to `argument_buffer` after the launch
  };
  Place place;
  uint32_t position;
  Place target = Place::kCreated;  // kStaged: kInput or kOut, and
  uint32_t target_position = 0;    // which
};

// One return of the operator.
struct Result {
  enum class Kind : uint8_t {
    kCreated,    // created tensor `value`
    kArgument,   // argument `value` itself
    kUndefined,  // no tensor
    kList,       // a list of the next `value` created tensors, which begin at `first`
  };
  Kind kind;
  uint32_t value;
  uint32_t first = 0;
};

// A bound program.
class Executable {
 public:
  explicit Executable(nrtx_executable_t* handle) : handle_(handle) {}
  ~Executable() { nrtx_executable_free(handle_); }
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;
  const nrtx_executable_t* get() const { return handle_; }

 private:
  nrtx_executable_t* handle_;
};

struct Entry : std::enable_shared_from_this<Entry> {
  std::vector<uint64_t> key;
  std::string reason;                            // why not natively; empty when it is
  std::shared_ptr<const Executable> executable;  // null when every output is empty: there is nothing to compute
  std::vector<TensorSpec> resized;               // not empty: give the `out` arguments these sizes and look again
  std::vector<TensorSpec> created;
  std::vector<Output> outputs;
  std::vector<Result> results;
  bool staged = false;  // some output is: copying it calls operators, which may replace the entry in the thread's front
  uint64_t random_numbers = 0;                                // by which the generator moves on
  c10::ScalarType scalar_dtype = c10::ScalarType::Undefined;  // that operand scalars must fit
};

}  // namespace torch_neuronx::dispatch
