// An instruction whose values are known: what a bind makes of a program's records, and what the engine prepares and
// runs.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "program_schema.h"  // generated from schema/program.toml: Dtype, Kind, Opcode, Micro, ...

namespace neuron {

inline constexpr int kMaxDims = schema::kMaxDims;

// Where one operand lies: address of element = buffers[buffer] + (offset + sum(index[d] * strides[d])) * size of dtype.
struct Window {
  uint32_t buffer = 0;  // position in Launch::buffers
  Dtype dtype = Dtype::FP32;
  uint32_t flags = 0;
  int64_t offset = 0;
  std::array<int64_t, kMaxDims> strides{};
};

// A micro-operation with its number resolved: `imm` holds the bits for LITERAL and VALUE (double for F32, int64 else)
// and the position in Launch::scalars for SCALAR and RANDOM.
struct MicroOp {
  Micro op = Micro::CONST;
  Kind kind = Kind::F32;
  Kind from = Kind::F32;
  ImmSource source = ImmSource::LITERAL;
  uint16_t dst = 0, a = 0, b = 0, c = 0;
  uint64_t imm = 0;
};

struct BoundInstruction {
  Opcode opcode = Opcode::TILE;
  uint16_t flags = 0;
  int rank = 0;
  std::array<int64_t, kMaxDims> extents{};
  std::vector<Window> windows;
  std::vector<MicroOp> micro;
  std::array<int64_t, 6> params{};  // in the order of the schema's `params`
  std::string debug;                // source operator and line, for error messages
};

// What a launch gives to every kernel of an executable.
struct Launch {
  void* const* buffers;     // one address per buffer record: inputs, outputs, temporaries, constants, SBUF, PSUM
  const uint64_t* scalars;  // launch scalars, 8 bytes each
};

// A prepared instruction. Immutable: may run on several cores at once.
class Kernel {
 public:
  virtual ~Kernel() = default;
  // Throws neuron::Error (NRT_EXEC_OOB, NRT_EXEC_BAD_INPUT); buffers may then be partly written.
  virtual void run(const Launch& launch) const = 0;
};

// Chooses loop order, blocking and vector kernels. The instruction must have passed validation (program/validate.h):
// all windows lie inside their buffers and the micro-program is well formed. Throws
// neuron::Error(NRT_UNSUPPORTED_NEFF_VERSION) for an opcode that this build does not run.
std::unique_ptr<Kernel> prepare(const BoundInstruction& instruction);

// Where a buffer of a program lies, as far as that is known before a launch.
struct BufferPlace {
  BufferKind kind = BufferKind::INPUT;
  int64_t begin = 0, bytes = 0;  // TEMP: in scratch memory
  int alias = -1;                // OUTPUT: the INPUT buffer whose memory it may share
};
// Prepares a whole program, in order of its instructions. An entry is nullptr where an earlier kernel does its work as
// well. What the program leaves in TEMP buffers is not defined.
std::vector<std::unique_ptr<Kernel>> prepare(std::span<const BoundInstruction> program,
                                             std::span<const BufferPlace> buffers);

}  // namespace neuron
