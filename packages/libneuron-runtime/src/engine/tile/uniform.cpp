#include "engine/tile/uniform.h"

namespace neuron::engine {

Uniforms::Uniforms(const Graph& graph, const BoundInstruction& instruction, FrameLayout& layout, const Isa& isa)
    : slot_of_(graph.nodes.size(), -1) {
  std::vector<int> computed;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& n = graph.nodes[i];
    if (n.cls != Class::UNIFORM) continue;
    if (n.op == Micro::CONST && n.source != ImmSource::SCALAR) {
      slot_of_[i] = layout.add_constant(n.kind, register_bits(n.kind, n.imm));
    } else if (n.op == Micro::CONST) {
      slot_of_[i] = layout.add_shared(8);
      scalars_.push_back({static_cast<uint16_t>(slot_of_[i]), n.kind, n.imm});
    } else if (n.op == Micro::IOTA) {
      slot_of_[i] = layout.add_constant(n.kind, 0);
    } else if (n.op == Micro::LOAD) {
      const Window& w = instruction.windows[n.pattern];
      slot_of_[i] = layout.add_shared(8);
      loaded_.push_back({static_cast<uint16_t>(slot_of_[i]), w.dtype, w.buffer, w.offset * bytes_of(w.dtype)});
    } else {
      slot_of_[i] = layout.add_shared(static_cast<size_t>(layout.group()) * 8);
      computed.push_back(static_cast<int>(i));
    }
  }
  if (computed.empty()) return;
  SegmentBuilder builder(graph, instruction, layout, isa);
  for (size_t i = 0; i < slot_of_.size(); ++i) {
    if (slot_of_[i] < 0) continue;
    const bool is_computed =
        graph.nodes[i].op != Micro::CONST && graph.nodes[i].op != Micro::IOTA && graph.nodes[i].op != Micro::LOAD;
    if (is_computed) {
      builder.keep(static_cast<int>(i), static_cast<uint16_t>(slot_of_[i]), graph.nodes[i].result == Kind::I64 ? 8 : 4);
    } else {
      builder.set_number(static_cast<int>(i), static_cast<uint16_t>(slot_of_[i]));
    }
  }
  for (const int node : computed) builder.add_value(node);
  segment_ = builder.build();
}

void Uniforms::announce(SegmentBuilder& builder) const {
  for (size_t i = 0; i < slot_of_.size(); ++i) {
    if (slot_of_[i] >= 0) builder.set_number(static_cast<int>(i), static_cast<uint16_t>(slot_of_[i]));
  }
}

void Uniforms::start(const Launch& launch, const Isa& isa, Context& context) const {
  for (const Scalar& s : scalars_) {
    const uint64_t bits = register_bits(s.kind, launch.scalars[s.position]);
    std::memcpy(context.slots[s.slot], &bits, 8);
  }
  for (const Loaded& l : loaded_) {
    const uint64_t bits = load_number(l.dtype, static_cast<const char*>(launch.buffers[l.buffer]) + l.offset);
    std::memcpy(context.slots[l.slot], &bits, 8);
  }
  segment_.run(isa, context, 1);
}

}  // namespace neuron::engine
