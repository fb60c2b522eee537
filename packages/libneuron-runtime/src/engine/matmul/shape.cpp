#include "engine/matmul/shape.h"

#include <utility>

namespace neuron::engine {

MatmulShape::MatmulShape(const BoundInstruction& original, int columns)
    : instruction(original), batch(static_cast<int>(original.params[0])) {
  bool ordered = false;  // the micro-program tells M from N
  const Window* result = nullptr;
  for (const MicroOp& op : instruction.micro) {
    if (op.op == Micro::IOTA || op.op == Micro::RANDOM) ordered = true;
    if (op.op == Micro::STORE && !result) result = &instruction.windows[op.dst];
  }
  if (ordered) return;
  const int64_t along_m = result->strides[m_dimension()], along_n = result->strides[n_dimension()];
  const bool columns_first = along_m == 1 && along_n != 1 && m() > 1 && n() > 1;
  const bool narrow = n() <= columns / 2 && m() > n() && (m() >= columns || n() == 1);
  if (columns_first ? !(m() <= columns / 2 && n() > m()) : narrow) exchange();
  join_batch();
}

void MatmulShape::exchange() {
  const int x = m_dimension(), y = n_dimension();
  std::swap(instruction.extents[x], instruction.extents[y]);
  for (Window& w : instruction.windows) std::swap(w.strides[x], w.strides[y]);
  std::swap(instruction.windows[0], instruction.windows[1]);
}

void MatmulShape::join_batch() {
  while (batch > 0) {
    const int last = batch - 1;
    const auto size = instruction.extents[last];
    bool joined = size == 1;
    if (!joined) {
      joined = instruction.windows[1].strides[last] == 0;
      for (size_t i = 0; i < instruction.windows.size(); ++i) {
        const Window& w = instruction.windows[i];
        if (i != 1) joined &= w.strides[last] == w.strides[m_dimension()] * m();
      }
    }
    if (!joined) return;
    instruction.extents[m_dimension()] *= size;
    remove(last);
    --batch;
  }
}

void MatmulShape::remove(int dimension) {
  for (int d = dimension; d + 1 < instruction.rank; ++d) {
    instruction.extents[d] = instruction.extents[d + 1];
    for (Window& w : instruction.windows) w.strides[d] = w.strides[d + 1];
  }
  --instruction.rank;
  instruction.params[0] = batch - 1;
}

}  // namespace neuron::engine
