// The loop dimensions of a TILE, simplified together with the strides of everything that moves along them.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "engine/instruction.h"
#include "engine/tile/graph.h"

namespace neuron::engine {

// Something with an address or an index: a window for reading, a window for writing, or an index (IOTA, the element's
// number for RANDOM).
struct Access {
  enum Type : uint8_t { READ, WRITE, IOTA, NUMBER } type;
  int pattern = -1;                         // READ, WRITE; NUMBER: position of the key among the launch's scalars
  int dimension = -1;                       // IOTA: in the instruction
  std::array<int64_t, kMaxDims> strides{};  // elements, along the nest's dimensions

  bool is_window() const { return type == READ || type == WRITE; }
};

struct Nest {
  int kept = 0, reduced = 0;  // dimensions; kept ones come first
  std::array<int64_t, kMaxDims> extents{};
  std::vector<Access> accesses;
  std::vector<int> access_of;  // node of the graph -> access, or -1

  enum Order {
    ANY,        // kept dimensions are sorted so that stores run along memory (MAP)
    ROW_MAJOR,  // dimensions stay in order; neighbours may be joined
    AS_GIVEN,   // the instruction's dimensions, one by one
  };
  Nest(const BoundInstruction& instruction, const Graph& graph, int kept_dimensions, Order order);

  int rank() const { return kept + reduced; }
  int64_t kept_size() const;     // product of the kept extents
  int64_t reduced_size() const;  // product of the reduced extents

 private:
  void collapse(int begin, int& count);
};

}  // namespace neuron::engine
