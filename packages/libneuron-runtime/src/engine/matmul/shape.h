// A MATMUL brought to the form in which it is computed: which operand runs along vectors, and fewer batch dimensions.
#pragma once

#include "engine/instruction.h"

namespace neuron::engine {

struct MatmulShape {
  BoundInstruction instruction;  // batch dimensions, M, N, K
  int batch = 0;                 // dimensions

  // columns: vectors of this many elements run along N.
  MatmulShape(const BoundInstruction& original, int columns);

  int m_dimension() const { return batch; }
  int n_dimension() const { return batch + 1; }
  int k_dimension() const { return batch + 2; }
  int64_t m() const { return instruction.extents[batch]; }
  int64_t n() const { return instruction.extents[batch + 1]; }
  int64_t k() const { return instruction.extents[batch + 2]; }

 private:
  void exchange();    // left and right operand, M and N
  void join_batch();  // last batch dimensions with M, where all windows allow
  void remove(int dimension);
};

}  // namespace neuron::engine
