#include "engine/tile/phases.h"

namespace neuron::engine {
namespace {

bool is_leaf(const Node& n) { return n.op == Micro::LOAD || n.op == Micro::IOTA || n.op == Micro::RANDOM; }
int register_bytes(const Node& n) { return n.result == Kind::I64 ? 8 : 4; }

}  // namespace

// Marks what must be known to compute `node` from the values in `done` and from memory.
void Phases::find_needed(const Graph& graph, int node, const std::vector<char>& done, std::vector<char>& seen) const {
  if (seen[node]) return;
  seen[node] = 1;
  const Node& n = graph.nodes[node];
  if (n.cls != Class::ELEMENT || is_leaf(n) || done[node]) return;
  for (const int operand : {n.a, n.b, n.c}) {
    if (operand >= 0) find_needed(graph, operand, done, seen);
  }
}

Phases::Phases(const BoundInstruction& instruction, const Graph& graph, const Nest& nest, FrameLayout& layout,
               const Isa& isa, const Uniforms& uniforms, const Feeds& elements, const Feeds& kept_feeds,
               const PhaseOptions& options)
    : depth(graph.depth), element(depth + 1), kept(depth + 1), reductions(depth + 1), expansions(depth + 1) {
  const auto count = static_cast<int>(graph.nodes.size());
  const auto room = [&](int64_t n, int bytes) { return layout.padded(n) * static_cast<size_t>(bytes); };
  const auto add_kept = [&](size_t bytes) {
    return options.shared_kept ? layout.add_shared(bytes) : layout.add_local(bytes);
  };

  // Every kept value has a buffer of its own.
  std::vector<uint16_t> kept_slot(count);
  for (int i = 0; i < count; ++i) {
    const Node& n = graph.nodes[i];
    if (n.cls == Class::KEPT && n.op != Micro::STORE)
      kept_slot[i] = add_kept(room(options.kept_room, register_bytes(n)));
  }
  const auto kept_depth = [&](int i) { return graph.nodes[i].depth + is_reduction(graph.nodes[i].op); };

  for (int d = 0; d <= depth; ++d) {
    SegmentBuilder builder(graph, instruction, layout, isa);
    uniforms.announce(builder);
    if (d == 0) kept_feeds.announce(builder, graph, nest);
    bool any = false;
    for (int i = 0; i < count; ++i) {
      const Node& n = graph.nodes[i];
      if (n.cls != Class::KEPT || n.op == Micro::STORE) continue;
      if (is_reduction(n.op) || kept_depth(i) < d) {
        if (kept_depth(i) <= d) builder.set_vector(i, kept_slot[i], register_bytes(n));
      } else if (kept_depth(i) == d) {
        builder.keep(i, kept_slot[i], register_bytes(n));
        builder.add_value(i);
        any = true;
      }
    }
    if (any) kept[d] = builder.build();
  }
  {
    SegmentBuilder builder(graph, instruction, layout, isa);
    uniforms.announce(builder);
    bool any = false;
    for (int i = 0; i < count; ++i) {
      const Node& n = graph.nodes[i];
      if (n.cls != Class::KEPT) continue;
      if (n.op != Micro::STORE) {
        builder.set_vector(i, kept_slot[i], register_bytes(n));
        continue;
      }
      const Feed& f = kept_feeds.of(nest.access_of[i]);
      builder.add_store(i, f.slot, f.mode == Feed::DIRECT, false);
      any = true;
    }
    if (any) kept_stores = builder.build();
  }

  // Which element values outlive their phase.
  std::vector<std::vector<int>> roots(depth + 1);
  for (int i = 0; i < count; ++i) {
    const Node& n = graph.nodes[i];
    if (is_reduction(n.op)) roots[n.depth].push_back(i);
    if (n.op == Micro::STORE && n.cls == Class::ELEMENT) roots[depth].push_back(i);
  }
  // What costs no more than reading it again is computed again.
  const auto is_cheap = [&](const Node& n) {
    if (!options.one_by_one || n.kind != Kind::F32 || n.result != Kind::F32) return false;
    if (n.op != Micro::ADD && n.op != Micro::SUB && n.op != Micro::MUL) return false;
    int vectors = 0;
    for (const int operand : {n.a, n.b}) {
      const Node& o = graph.nodes[operand];
      if (o.cls != Class::ELEMENT) continue;
      if (o.op != Micro::LOAD || !is_native(instruction.windows[o.pattern].dtype)) return false;
      ++vectors;
    }
    return vectors == 1 || n.a == n.b;
  };
  std::vector<char> done(count, 0), outlives(count, 0);
  if (options.keep_elements) {
    for (int p = 0; p <= depth; ++p) {
      std::vector<char> seen(count, 0);
      for (const int root : roots[p]) find_needed(graph, graph.nodes[root].a, done, seen);
      for (int i = 0; i < count; ++i) {
        if (!seen[i] || graph.nodes[i].cls != Class::ELEMENT || is_leaf(graph.nodes[i])) continue;
        if (done[i] && !is_cheap(graph.nodes[i])) outlives[i] = 1;
      }
      for (int i = 0; i < count; ++i) {
        if (seen[i]) done[i] = 1;
      }
    }
  }

  std::vector<int> buffer(count, -1), expanded(count, -1);  // slots
  std::vector<char> available(count, 0);                    // in its buffer since an earlier phase
  const auto buffer_of = [&](int node) {
    if (buffer[node] < 0) {
      const int bytes = register_bytes(graph.nodes[node]);
      buffer[node] = layout.add_local(room(options.element_room, bytes) *
                                      static_cast<size_t>(options.one_by_one ? options.kept_room : 1));
      if (options.one_by_one)
        row_steps.push_back(
            {static_cast<uint16_t>(buffer[node]), static_cast<int64_t>(room(options.element_room, bytes))});
    }
    return static_cast<uint16_t>(buffer[node]);
  };
  if (options.one_by_one) {
    elements.add_steps(row_steps);
    for (int i = 0; i < count; ++i) {
      if (kept_slot[i]) row_steps.push_back({kept_slot[i], register_bytes(graph.nodes[i])});
    }
  }
  for (int p = 0; p <= depth; ++p) {
    if (roots[p].empty()) continue;
    SegmentBuilder builder(graph, instruction, layout, isa);
    uniforms.announce(builder);
    elements.announce(builder, graph, nest);
    std::vector<char> seen(count, 0);
    for (const int root : roots[p])
      find_needed(graph, graph.nodes[root].a, options.keep_elements ? available : std::vector<char>(count), seen);
    for (int i = 0; i < count; ++i) {
      const Node& n = graph.nodes[i];
      if (!seen[i]) continue;
      if (n.cls == Class::KEPT) {
        if (options.kept_numbers) {
          builder.set_number(i, kept_slot[i]);
        } else if (!options.expand) {
          builder.set_vector(i, kept_slot[i], register_bytes(n));
        } else {
          const bool first = expanded[i] < 0;
          if (first) expanded[i] = layout.add_local(room(options.element_room, register_bytes(n)));
          if (first || options.separate_phases)
            expansions[p].push_back({kept_slot[i], static_cast<uint16_t>(expanded[i]), register_bytes(n)});
          builder.set_vector(i, static_cast<uint16_t>(expanded[i]), register_bytes(n));
        }
      } else if (n.cls == Class::ELEMENT && available[i]) {
        builder.set_vector(i, buffer_of(i), register_bytes(n));
      } else if (outlives[i]) {
        builder.keep(i, buffer_of(i), register_bytes(n));
      }
    }
    for (const int root : roots[p]) {
      const Node& n = graph.nodes[root];
      if (n.op == Micro::STORE) {
        const Feed& f = elements.of(nest.access_of[root]);
        const bool stream = options.stream_bytes > 0 && f.mode == Feed::DIRECT &&
                            isa.store_streaming[dtype_index(f.dtype)] &&
                            nest.kept_size() * nest.reduced_size() * f.bytes >= options.stream_bytes;
        streams |= stream;
        builder.add_store(root, f.slot, f.mode == Feed::DIRECT, stream);
        continue;
      }
      Reduction r{};
      r.node = root;
      r.op = n.op;
      r.kind = n.kind;
      r.result = kept_slot[root];
      const int64_t accumulators = options.column ? options.kept_room : kLanes;
      if (!options.on_buffers || options.column) {
        r.lanes = layout.add_local(room(accumulators, 8));
        r.indices = layout.add_local(room(accumulators, 4));
      }
      r.totals = add_kept(room(options.kept_room, 8));
      if (options.on_buffers) {
        const Node& operand = graph.nodes[n.a];
        const Feed* feed =
            operand.op == Micro::LOAD && operand.cls == Class::ELEMENT ? &elements.of(nest.access_of[n.a]) : nullptr;
        if (feed && is_native(feed->dtype) && (feed->mode == Feed::STAGED || options.whole_vectors)) {
          r.buffer = feed->slot;  // the operand is in memory already
          r.stride = options.one_by_one ? feed->row_stride : options.element_room / options.kept_room;
        } else {
          r.buffer = buffer_of(n.a);
          r.stride = options.one_by_one ? static_cast<int64_t>(layout.padded(options.element_room))
                                        : options.element_room / options.kept_room;
          if (!available[n.a]) {
            builder.keep(n.a, r.buffer, register_bytes(operand));
            builder.add_value(n.a);
          }
        }
      } else {
        builder.add_reduction(root, r.lanes, r.indices, options.column);
      }
      reductions[p].push_back(r);
    }
    // The first phase after a reduction works on what is in the cache: time to bring the next block there.
    if (options.one_by_one && p == 1) elements.add_prefetches(builder, options.kept_room);
    element[p] = builder.build();
    if (options.keep_elements) {
      for (int i = 0; i < count; ++i) {
        if (outlives[i] && builder.computed()[i]) available[i] = 1;
      }
    }
  }
}

}  // namespace neuron::engine
