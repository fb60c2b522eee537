#include "engine/tile/nest.h"

#include <algorithm>
#include <numeric>

namespace neuron::engine {

Nest::Nest(const BoundInstruction& instruction, const Graph& graph, int kept_dimensions, Order visit)
    : access_of(graph.nodes.size(), -1) {
  const auto find_or_add = [&](Access access) {
    for (size_t i = 0; i < accesses.size(); ++i) {
      const Access& a = accesses[i];
      if (a.type == access.type && a.pattern == access.pattern && a.dimension == access.dimension)
        return static_cast<int>(i);
    }
    accesses.push_back(access);
    return static_cast<int>(accesses.size()) - 1;
  };
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& n = graph.nodes[i];
    Access a{};
    if (n.op == Micro::LOAD || n.op == Micro::STORE) {
      a.type = n.op == Micro::LOAD ? Access::READ : Access::WRITE;
      a.pattern = n.pattern;
      a.strides = instruction.windows[n.pattern].strides;
    } else if (n.op == Micro::IOTA) {
      a.type = Access::IOTA;
      a.dimension = n.dimension;
      a.strides[n.dimension] = 1;
    } else if (n.op == Micro::RANDOM) {
      a.type = Access::NUMBER;
      a.pattern = static_cast<int>(n.imm);  // generators with different keys are different accesses
      int64_t stride = 1;
      for (int d = instruction.rank - 1; d >= 0; --d) {
        a.strides[d] = stride;
        stride *= instruction.extents[d];
      }
    } else {
      continue;
    }
    access_of[i] = find_or_add(a);
  }

  // Dimensions of one element do not matter.
  std::vector<int> order;
  for (int d = 0; d < instruction.rank; ++d) {
    if (instruction.extents[d] == 1 && visit != AS_GIVEN) continue;
    order.push_back(d);
    ++(d < kept_dimensions ? kept : reduced);
  }
  if (visit == ANY) {
    // Largest stride of the stores outermost; a stable sort keeps the given order where they do not tell.
    const auto stride = [&](int d) {
      int64_t s = 0;
      for (const Access& a : accesses) {
        if (a.type == Access::WRITE) s = std::max(s, std::abs(a.strides[d]));
      }
      return s;
    };
    std::stable_sort(order.begin(), order.begin() + kept, [&](int x, int y) { return stride(x) > stride(y); });
  }
  for (size_t i = 0; i < order.size(); ++i) extents[i] = instruction.extents[order[i]];
  for (Access& a : accesses) {
    const auto old = a.strides;
    a.strides.fill(0);
    for (size_t i = 0; i < order.size(); ++i) a.strides[i] = old[order[i]];
  }
  if (visit == AS_GIVEN) return;
  collapse(kept, reduced);
  const int before = kept;
  collapse(0, kept);
  if (kept < before) {  // close the gap
    for (int d = 0; d < reduced; ++d) {
      extents[kept + d] = extents[before + d];
      for (Access& a : accesses) a.strides[kept + d] = a.strides[before + d];
    }
  }
}

// Joins neighbouring dimensions that every access visits as one.
void Nest::collapse(int begin, int& count) {
  if (count == 0) return;
  int last = begin;
  for (int d = begin + 1; d < begin + count; ++d) {
    bool joined = true;
    for (const Access& a : accesses) joined &= a.strides[last] == a.strides[d] * extents[d];
    if (!joined) ++last;
    extents[last] = joined ? extents[last] * extents[d] : extents[d];
    for (Access& a : accesses) a.strides[last] = a.strides[d];
  }
  count = last - begin + 1;
}

int64_t Nest::kept_size() const {
  return std::accumulate(extents.begin(), extents.begin() + kept, int64_t{1}, std::multiplies<>());
}
int64_t Nest::reduced_size() const {
  return std::accumulate(extents.begin() + kept, extents.begin() + kept + reduced, int64_t{1}, std::multiplies<>());
}

}  // namespace neuron::engine
