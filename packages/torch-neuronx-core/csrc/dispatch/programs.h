// Programs of the op compiler by class of calls, and binding them to the sizes of one call.
#pragma once

#include <c10/util/ArrayRef.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dispatch/entry.h"
#include "nrt/nrt.h"

namespace torch_neuronx::dispatch {

// Code of a dtype in a program's signature; 0 when programs do not know it.
uint32_t program_dtype(c10::ScalarType dtype);

// A loaded NEFF.
class Model {
 public:
  // Loads it for every core. Throws the runtime's explanation when it is malformed.
  explicit Model(const std::string& neff);
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  const nrtx_model_counts_t& counts() const { return counts_; }
  size_t neff_bytes() const { return neff_bytes_; }
  // Null when a guard does not hold for these slots. Throws for any other failure.
  std::shared_ptr<const Executable> bind(c10::ArrayRef<int64_t> slots) const;

 private:
  nrt_model_t* handle_ = nullptr;
  nrtx_model_counts_t counts_{};
  size_t neff_bytes_;
};

// A result as the op compiler is told of it.
struct Produced {
  const TensorSpec* spec;
  int alias;  // input that is the very same tensor, or -1
};

// What the op compiler is asked.
struct Request {
  const Operator& op;
  c10::ArrayRef<c10::IValue> arguments;
  std::vector<Produced> outputs;
  std::vector<int64_t> slots;
};

// The executable for a call of the class `key`. Compiles on a miss: one thread compiles a class, others wait for it
// without the GIL. Throws what the compiler raised, unless the fallback may stand in for it.
struct Bound {
  std::shared_ptr<const Executable> executable;  // null: use the fallback, because
  std::string reason;
  bool unsupported = false;  // the compiler said so, and will again; else it failed
};
Bound bind_program(const std::vector<uint64_t>& key, const Request& request);

struct ProgramStats {
  uint64_t models, neff_bytes;                 // loaded now
  uint64_t compilations, compile_nanoseconds;  // since the process started
};
ProgramStats program_stats();
void clear_programs();

}  // namespace torch_neuronx::dispatch
