// A bound program, ready to launch: prepared kernels and the plan of the buffer table. Immutable.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/instruction.h"
#include "program/program.h"

namespace neuron {

// Scratch memory that a core gives to one launch. Each part is aligned to 64 bytes and as large as the executable says.
struct Scratch {
  std::byte* temp = nullptr;
  std::byte* sbuf = nullptr;
  std::byte* psum = nullptr;
};

struct Io {
  Dtype dtype;
  int rank;
  int64_t dims[schema::kMaxDims];
  int64_t nbytes;
  int32_t alias;  // -1: none
};

class Executable {
 public:
  // Evaluates VALUES, checks GUARDS and all rules of the bind phase, and prepares every instruction. Throws GuardError
  // or Error.
  static std::shared_ptr<const Executable> bind(std::shared_ptr<const Program> program, std::span<const int64_t> slots);

  const Program& program() const { return *program_; }
  std::span<const Io> io() const { return io_; }  // inputs, then outputs
  int64_t temp_bytes() const { return temp_bytes_; }
  int64_t sbuf_bytes() const { return sbuf_bytes_; }
  int64_t psum_bytes() const { return psum_bytes_; }

  // Runs all instructions in the calling thread (the engine's pool may help). `buffers` in IO order. Throws Error.
  void run(void* const* buffers, const uint64_t* scalars, const Scratch& scratch) const;

 private:
  friend class Binder;
  // Where an entry of Launch::buffers comes from.
  struct Slot {
    BufferKind kind;
    union {
      uint32_t argument;     // INPUT, OUTPUT: position in the launch's buffers
      int64_t offset;        // TEMP
      const void* constant;  // CONSTANT
    };
  };

  void run_with(void** table, void* const* buffers, const uint64_t* scalars, const Scratch& scratch) const;

  std::shared_ptr<const Program> program_;
  std::vector<std::unique_ptr<Kernel>> kernels_;  // of the instructions; nullptr: an earlier one does its work as well
  std::vector<Slot> slots_;
  std::vector<Io> io_;
  int64_t temp_bytes_ = 0, sbuf_bytes_ = 0, psum_bytes_ = 0;
};

}  // namespace neuron
