// A micro-program as a graph: operands are positions of operations, and every value has a class and a depth.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/instruction.h"

namespace neuron::engine {

// What a value depends on: nothing, the kept dimensions, or all.
enum class Class : uint8_t { UNIFORM, KEPT, ELEMENT };

struct Node {
  Micro op = Micro::CONST;
  Kind kind = Kind::F32;       // of the record
  Kind result = Kind::F32;     // of the value
  Class cls = Class::UNIFORM;  // of the value; STORE: of what is written
  int depth = 0;               // reductions on the longest way from the inputs; REDUCE: the depth of its operand
  int a = -1, b = -1, c = -1;  // operand nodes
  int pattern = -1;            // LOAD, STORE
  int dimension = -1;          // IOTA
  int word = 0;                // RANDOM
  ImmSource source = ImmSource::LITERAL;
  Kind from = Kind::F32;  // CONVERT
  uint64_t imm = 0;
};

inline bool is_reduction(Micro op) { return op >= Micro::REDUCE_SUM && op <= Micro::REDUCE_ARGMIN; }

struct Graph {
  std::vector<Node> nodes;
  int depth = 0;  // largest number of reductions on a way

  // kept: number of leading loop dimensions that are not reduced; rank in MAP mode.
  Graph(const BoundInstruction& instruction, int kept);

  // Estimated time in nanoseconds of one element on one core, for deciding about threads.
  double cost() const;
};

}  // namespace neuron::engine
