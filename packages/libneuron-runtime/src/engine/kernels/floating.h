// F32 operations that element-wise programs and scans share.
#pragma once

#include "engine/kernels/simd.h"

namespace neuron::engine::NEURON_ISA::floating {

struct Add {
  static INLINE vf apply(vf a, vf b) { return a + b; }
};
struct Mul {
  static INLINE vf apply(vf a, vf b) { return a * b; }
};
struct Max {
  static INLINE vf apply(vf a, vf b) { return maximum(a, b); }
};
struct Min {
  static INLINE vf apply(vf a, vf b) { return minimum(a, b); }
};

}  // namespace neuron::engine::NEURON_ISA::floating
