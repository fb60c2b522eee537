// Fills the table of this instruction set.
#include "engine/kernels/stage.h"

namespace neuron::engine::NEURON_ISA {

void fill(Isa& t) {
  t.group = kGroup;
  add_float_stages(t);
  add_compare_stages(t);
  add_integer_stages(t);
  add_wide_stages(t);
  add_memory_stages(t);
  add_math_stages(t);
  add_reduction_stages(t);
  add_copies(t);
  add_philox(t);
  add_scans(t);
  add_gemm(t);
  add_gemm_bf16(t);
}

}  // namespace neuron::engine::NEURON_ISA
