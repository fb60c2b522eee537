// One call of an operator, seen as a launch: its buffers, its scalars, and the key under which its program is
// remembered.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/util/SmallVector.h>

#include "dispatch/key.h"
#include "dispatch/operator.h"
#include "runtime/device.h"

namespace torch_neuronx::dispatch {

class Call {
 public:
  enum class Kind : uint8_t {
    kLaunch,       // ready: a program can run it
    kHostIndices,  // index tensors lie on the CPU: move them first
    kOverlap,      // an argument that is written shares memory with another in a way that a program cannot know
    kForeign,      // an argument that no program takes; `reason` says which
  };

  // Borrows the arguments, which must outlive it. Throws torch's error when tensors lie on different devices.
  Call(const Operator& op, c10::ArrayRef<c10::IValue> arguments);

  // The same from typed arguments: equal calls have equal keys. kForeign instead of an error.
  struct Typed {};
  template <typename... Arguments>
  Call(const Operator& op, Typed /*tag*/, const Arguments&... arguments) : op_(op) {
    key.add(op.number);
    uint32_t argument = 0;
    (add(arguments, argument++), ...);
    if (device < 0) [[unlikely]] {
      reject(Kind::kForeign, "none of its tensors is on the device");
    }
    if (op.written != 0) {
      add_aliases();
    }
  }

  struct Buffer {
    c10::TensorImpl* tensor;
    uint32_t argument;
    bool written;
    int alias;  // outs: the input that is the very same tensor, or -1
  };
  struct OperandScalar {
    uint32_t position;  // among `scalars`
    bool is_double;     // else an integer or a bool
  };

  Kind kind = Kind::kLaunch;
  const char* reason = nullptr;
  Key key;
  c10::DeviceIndex device = -1;
  c10::SmallVector<Buffer, 8> inputs;
  c10::SmallVector<Buffer, 2> outs;
  c10::SmallVector<uint64_t, 6> scalars;  // all but seed and offset
  c10::SmallVector<OperandScalar, 4> operands;

 private:
  void add(const c10::IValue& value, uint32_t argument);
  void add(const at::Tensor& tensor, uint32_t argument) { add_tensor(tensor.unsafeGetTensorImpl(), argument); }
  void add(const at::Scalar& value, uint32_t argument);
  void add_tensor(c10::TensorImpl* tensor, uint32_t argument);
  void add_host_scalar(const c10::TensorImpl* tensor);
  void add_operand(const c10::IValue& value);
  void add_aliases();
  void reject(Kind kind, const char* reason);

  const Operator& op_;
  c10::ArrayRef<c10::IValue> arguments_;  // empty for typed arguments
};

// Whether an argument is a number that is given at launch. An integer 1 is not: it is the default of most factors, and
// a program that knows it has nothing to multiply by.
bool is_operand(const Operator& op, uint32_t argument, const c10::IValue& value);

// Whether a program may write the tensor: no two of its elements share memory.
bool is_writable(c10::IntArrayRef sizes, c10::IntArrayRef strides);

// Whether two tensors share memory: `same` when they are the very same elements in the same order. Reads only metadata.
enum class Sharing : uint8_t { kNone, kSame, kOverlap };
Sharing sharing_of(const c10::TensorImpl* a, const c10::TensorImpl* b);

// Bits of a number as a launch takes it: of a double, or an int64.
uint64_t bits_of(double value);

// Class of a tensor, appended to a class key: what a program may rely on without a guard.
void add_class(Key& key, c10::ScalarType dtype, c10::IntArrayRef sizes, c10::IntArrayRef strides, bool contiguous);
// Key of a class of calls, but for the outputs: everything of the exact key, with classes instead of sizes and strides.
void add_class(Key& key, const Operator& op, c10::ArrayRef<c10::IValue> arguments);

}  // namespace torch_neuronx::dispatch
