#include "engine/tile/graph.h"

#include <algorithm>
#include <unordered_map>

namespace neuron::engine {
namespace {

bool moves(const BoundInstruction& instruction, const Window& window, int first, int last) {
  for (int d = first; d < last; ++d) {
    // Also along no elements at all: such a window is not checked and must not be read (program/bind.cpp, phases).
    if (instruction.extents[d] != 1 && window.strides[d] != 0) return true;
  }
  return false;
}

Class class_of_window(const BoundInstruction& instruction, const Window& window, int kept) {
  const bool map = kept == instruction.rank;
  if (moves(instruction, window, kept, instruction.rank)) return Class::ELEMENT;
  if (moves(instruction, window, 0, kept)) return map ? Class::ELEMENT : Class::KEPT;
  return Class::UNIFORM;
}

}  // namespace

Graph::Graph(const BoundInstruction& instruction, int kept) {
  std::unordered_map<int, int> definition;  // register -> node
  const bool map = kept == instruction.rank;
  for (const MicroOp& m : instruction.micro) {
    Node n;
    n.op = m.op;
    n.kind = n.result = m.kind;
    n.source = m.source;
    n.from = m.from;
    n.imm = m.imm;
    const schema::MicroInfo& info = schema::kMicros[static_cast<int>(m.op)];
    if (info.own_result) n.result = info.result;
    if (info.args >= 1) n.a = definition.at(m.a);
    if (info.args >= 2) n.b = definition.at(m.b);
    if (info.args >= 3) n.c = definition.at(m.c);
    for (const int operand : {n.a, n.b, n.c}) {
      if (operand < 0) continue;
      const Node& o = nodes[operand];
      n.cls = std::max(n.cls, o.cls);
      n.depth = std::max(n.depth, o.depth + is_reduction(o.op));
    }
    switch (m.op) {
      case Micro::LOAD:
        n.pattern = m.a;
        n.cls = class_of_window(instruction, instruction.windows[m.a], kept);
        break;
      case Micro::STORE:
        n.pattern = m.dst;
        if (n.cls != Class::ELEMENT) {
          const Class window = class_of_window(instruction, instruction.windows[m.dst], kept);
          n.cls = map || window == Class::ELEMENT ? Class::ELEMENT : Class::KEPT;
        }
        break;
      case Micro::IOTA:
        n.dimension = m.a;
        if (instruction.extents[m.a] > 1) n.cls = map || m.a >= kept ? Class::ELEMENT : Class::KEPT;
        break;
      case Micro::RANDOM:
        n.word = m.a;
        n.cls = Class::ELEMENT;
        break;
      case Micro::ACC:
        n.cls = Class::ELEMENT;
        break;
      default:
        if (is_reduction(m.op)) {
          n.cls = Class::KEPT;
          depth = std::max(depth, n.depth + 1);
        }
    }
    if (m.op != Micro::STORE) definition[m.dst] = static_cast<int>(nodes.size());
    nodes.push_back(n);
  }
}

double Graph::cost() const {
  double sum = 0.05;
  for (const Node& n : nodes) {
    if (n.cls != Class::ELEMENT && !is_reduction(n.op)) continue;
    const int code = static_cast<int>(n.op);
    double cost = 0.03;
    if (code >= static_cast<int>(Micro::SQRT)) cost = 0.4;
    if (n.op == Micro::POW || n.op == Micro::LGAMMA || n.op == Micro::DIGAMMA || n.op == Micro::REM) cost = 5;
    if (n.op == Micro::RANDOM) cost = 1.5;
    if (n.op == Micro::DIV) cost = n.kind == Kind::F32 ? 0.1 : 3;
    if (is_reduction(n.op)) cost = 0.08;
    if (n.result == Kind::I64) cost *= 2;
    sum += cost;
  }
  return sum;
}

}  // namespace neuron::engine
