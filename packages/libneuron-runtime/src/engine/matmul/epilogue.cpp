#include "engine/matmul/epilogue.h"

#include "engine/tile/cost.h"

namespace neuron::engine {

Epilogue::Epilogue(const BoundInstruction& instruction, const Isa& isa, int64_t columns)
    : isa_(isa),
      graph_(instruction, instruction.rank),
      nest_(instruction, graph_, instruction.rank, Nest::AS_GIVEN),
      layout_(isa.group),
      feeds_(instruction, graph_, nest_, layout_, Class::ELEMENT),
      accumulated_(layout_.add_window()) {
  uniforms_ = Uniforms(graph_, instruction, layout_, isa_);
  const int column = instruction.rank - 1;
  feeds_.plan(graph_, nest_, layout_, -1, Axis{column, 1}, {1, columns}, false);
  SegmentBuilder builder(graph_, instruction, layout_, isa_);
  uniforms_.announce(builder);
  feeds_.announce(builder, graph_, nest_);
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    const Node& n = graph_.nodes[i];
    if (n.op == Micro::ACC) builder.set_vector(static_cast<int>(i), accumulated_, n.kind == Kind::I64 ? 8 : 4);
    if (n.op != Micro::STORE) continue;
    const Feed& f = feeds_.of(nest_.access_of[i]);
    const bool stream = f.mode == Feed::DIRECT && nest_.kept_size() * f.bytes >= kStreamBytes &&
                        isa_.store_streaming[dtype_index(f.dtype)];
    stream_ |= stream;
    builder.add_store(static_cast<int>(i), f.slot, f.mode == Feed::DIRECT, stream);
  }
  body_ = builder.build();
}

void Epilogue::open(Frame& frame, Scratch& scratch, char* shared) const {
  frame.context = Context{};
  frame.context.slots = reinterpret_cast<char**>(scratch.take(sizeof(char*) * static_cast<size_t>(layout_.slots())));
  layout_.point(frame.context.slots, shared, scratch.take(layout_.local_bytes()));
  frame.offsets.assign(nest_.accesses.size(), 0);
}

void Epilogue::start(const Launch& launch, Frame& frame, char* shared) const {
  layout_.start(shared);
  uniforms_.start(launch, isa_, frame.context);
}

void Epilogue::run(const Launch& launch, Frame& frame, const int64_t* index, int64_t column, int64_t columns,
                   char* accumulated) const {
  for (size_t a = 0; a < nest_.accesses.size(); ++a) {
    int64_t offset = 0;
    for (int d = 0; d + 1 < nest_.kept; ++d) offset += index[d] * nest_.accesses[a].strides[d];
    frame.offsets[a] = offset + column * nest_.accesses[a].strides[nest_.kept - 1];
  }
  char** slots = frame.context.slots;
  feeds_.before(launch, isa_, slots, frame.offsets.data(), 0, {1, columns});
  slots[accumulated_] = accumulated;
  body_.run(isa_, frame.context, columns, stream_);
  feeds_.after(isa_, slots, 0, {1, columns});
}

}  // namespace neuron::engine
