#include "engine/tile/segment.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace neuron::engine {

void Segment::run(const Isa& isa, Context& context, int64_t n, bool stream) const {
  if (steps.empty() || n <= 0) return;
  context.first = steps.data();
  if (stream && !streaming.empty()) {
    bool aligned = true;
    for (const uint16_t slot : streamed) aligned &= (reinterpret_cast<uintptr_t>(context.slots[slot]) & 63) == 0;
    if (aligned) context.first = streaming.data();
  }
  const int64_t tail = n % isa.group;
  if (tail == 0 || externals.empty()) {
    context.n = static_cast<size_t>(n);
    isa.run(&context, 0);
    return;
  }
  const int64_t whole = n - tail;
  if (whole) {
    context.n = static_cast<size_t>(whole);
    isa.run(&context, 0);
  }
  context.first = steps.data();
  for (const External& e : externals) {
    char* buffer = context.slots[e.tail];
    if (!e.is_store) {
      std::memcpy(buffer, context.slots[e.slot] + whole * e.bytes, static_cast<size_t>(tail) * e.bytes);
      std::memset(buffer + tail * e.bytes, 0, static_cast<size_t>(isa.group - tail) * e.bytes);
    }
  }
  for (const External& e : externals) {  // exchanged, so that index `whole` lies at the buffer's start
    char* window = context.slots[e.slot];
    context.slots[e.slot] = reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(context.slots[e.tail]) -
                                                    static_cast<size_t>(whole) * e.bytes);
    context.slots[e.tail] = window;
  }
  context.n = static_cast<size_t>(n);
  isa.run(&context, static_cast<size_t>(whole));
  for (const External& e : externals) {
    char* buffer = reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(context.slots[e.slot]) +
                                           static_cast<size_t>(whole) * e.bytes);
    char* window = context.slots[e.tail];
    if (e.is_store) std::memcpy(window + whole * e.bytes, buffer, static_cast<size_t>(tail) * e.bytes);
    context.slots[e.slot] = window;
    context.slots[e.tail] = buffer;
  }
}

void SegmentBuilder::set_load(int node, uint16_t slot, bool external) {
  const Dtype dtype = instruction_.windows[graph_.nodes[node].pattern].dtype;
  const auto bytes = static_cast<uint8_t>(bytes_of(dtype));
  load_slot_[node] = {Place::VECTOR, slot, bytes};
  load_external_[node] = external;
  if (is_native(dtype)) place_[node] = load_slot_[node];
}

void SegmentBuilder::add_value(int node) { roots_.push_back({Root::VALUE, node}); }
void SegmentBuilder::add_store(int node, uint16_t slot, bool external, bool stream) {
  roots_.push_back({Root::STORE, node, slot, false, stream});
  if (external) {
    const auto bytes = static_cast<uint8_t>(bytes_of(instruction_.windows[graph_.nodes[node].pattern].dtype));
    segment_.externals.push_back({slot, layout_.add_local(static_cast<size_t>(isa_.group) * 8), bytes, true});
    if (stream) segment_.streamed.push_back(slot);
  }
}
void SegmentBuilder::add_reduction(int node, uint16_t accumulators, uint16_t indices, bool column) {
  roots_.push_back({Root::REDUCTION, node, accumulators, column, false, indices});
}

void SegmentBuilder::count_uses(int node, std::vector<bool>& seen) {
  ++uses_[node];
  if (seen[node]) return;
  seen[node] = true;
  if (load_slot_[node].type == Place::VECTOR && load_external_[node]) {
    bool known = false;
    for (const External& e : segment_.externals) known |= e.slot == load_slot_[node].slot && !e.is_store;
    if (!known) {
      segment_.externals.push_back({load_slot_[node].slot, layout_.add_local(static_cast<size_t>(isa_.group) * 8),
                                    load_slot_[node].step, false});
    }
  }
  if (place_[node].type != Place::NONE) return;  // not computed here
  const Node& n = graph_.nodes[node];
  if (n.op == Micro::LOAD) return;
  if (n.a >= 0) count_uses(n.a, seen);
  if (n.b >= 0 && n.b != n.a) count_uses(n.b, seen);
  if (n.c >= 0 && n.c != n.a && n.c != n.b) count_uses(n.c, seen);
}

void SegmentBuilder::emit(Stage stage, Place dst, Place a, Place b, Place c, uint16_t aux) {
  if (!stage) throw std::logic_error("the engine has no stage for a micro-operation that its schema allows");
  Step s;
  s.stage = stage;
  s.dst = dst.slot, s.dst_step = dst.step;
  s.a = a.slot, s.a_step = a.step;
  s.b = b.slot, s.b_step = b.step;
  s.c = c.slot, s.c_step = c.step;
  s.aux = aux;
  segment_.steps.push_back(s);
}

void SegmentBuilder::consume(int node) {
  if (--uses_[node] == 0 && in_group_[node]) {
    layout_.release_group(graph_.nodes[node].result, place_[node].slot);
    in_group_[node] = false;
  }
}

Place SegmentBuilder::operand(int node) {
  if (place_[node].type == Place::NONE && accumulator_ != node) evaluate(node);
  if (place_[node].type == Place::NONE) {
    place_[node] = {Place::VECTOR, layout_.add_group(graph_.nodes[node].result), 0};
    in_group_[node] = true;
    emit(isa_.store[dtype_index(Dtype::FP32)], place_[node]);
  }
  return place_[node];
}

void SegmentBuilder::to_accumulator(int node) {
  if (accumulator_ == node) return;
  if (place_[node].type == Place::NONE) {
    evaluate(node);
  } else if (place_[node].type == Place::NUMBER) {
    emit(isa_.broadcast, {}, {}, place_[node]);
  } else {
    emit(isa_.load[dtype_index(Dtype::FP32)], {}, place_[node]);
  }
  accumulator_ = node;
}

// Where an I64 result goes.
uint16_t SegmentBuilder::result_slot(int node, uint8_t& step) {
  if (keep_[node].type == Place::VECTOR) {
    place_[node] = keep_[node];
  } else {
    place_[node] = {Place::VECTOR, layout_.add_group(Kind::I64), 0};
    in_group_[node] = true;
  }
  step = place_[node].step;
  return place_[node].slot;
}

void SegmentBuilder::finish(int node) {
  computed_[node] = true;
  if (graph_.nodes[node].result == Kind::I64) return;
  accumulator_ = node;
  if (keep_[node].type == Place::VECTOR) {
    place_[node] = keep_[node];
    emit(isa_.store[dtype_index(Dtype::FP32)], place_[node]);
  } else if (uses_[node] > 1) {
    operand(node);
  }
}

void SegmentBuilder::evaluate(int node) {
  const Node& n = graph_.nodes[node];
  const auto op = static_cast<int>(n.op);
  const auto kind = static_cast<int>(n.kind);
  switch (n.op) {
    case Micro::LOAD:
      emit(isa_.load[dtype_index(instruction_.windows[n.pattern].dtype)], {}, raw(node));
      break;
    case Micro::SELECT:
      evaluate_select(node);
      break;
    case Micro::CONVERT: {
      Place source;
      if (n.from == Kind::I64) {
        source = operand(n.a);
        if (source.type == Place::NUMBER) {
          const Place number = source;
          source = {Place::VECTOR, layout_.add_group(Kind::I64), 0};
          emit(isa_.broadcast_wide, source, {}, number);
          layout_.release_group(Kind::I64, source.slot);
        }
      } else {
        to_accumulator(n.a);
      }
      Place dst;
      if (n.kind == Kind::I64) {
        uint8_t step;
        result_slot(node, step);
        dst = place_[node];
      }
      if (n.from == n.kind) {
        if (n.kind == Kind::I64) emit(isa_.copy_wide, dst, source);
      } else {
        emit(isa_.convert[static_cast<int>(n.from)][kind], dst, source);
      }
      consume(n.a);
      break;
    }
    default:
      if (n.b >= 0) {
        evaluate_binary(node);
      } else if (n.kind == Kind::I64) {
        Place source = operand(n.a);
        uint8_t step;
        if (source.type == Place::NUMBER) {
          const Place number = source;
          source = {Place::VECTOR, layout_.add_group(Kind::I64), 0};
          emit(isa_.broadcast_wide, source, {}, number);
          layout_.release_group(Kind::I64, source.slot);
        }
        result_slot(node, step);
        emit(isa_.micro[op][kind][static_cast<int>(Form::A)], place_[node], source);
        consume(n.a);
      } else {
        to_accumulator(n.a);
        emit(isa_.micro[op][kind][static_cast<int>(Form::A)]);
        consume(n.a);
      }
  }
  finish(node);
}

void SegmentBuilder::evaluate_binary(int node) {
  const Node& n = graph_.nodes[node];
  const Stage* forms = isa_.micro[static_cast<int>(n.op)][static_cast<int>(n.kind)];
  const auto stage = [&](Form f) { return forms[static_cast<int>(f)]; };
  const bool wide = n.kind == Kind::I64;
  const auto number = [](Place p) { return p.type == Place::NUMBER; };
  const auto in_memory = [](Place p) { return p.type != Place::NONE; };

  if (wide) {
    Place a = operand(n.a), b = operand(n.b);
    uint16_t temporary = 0;
    const bool both = number(a) && number(b);
    if (both) {
      temporary = layout_.add_group(Kind::I64);
      emit(isa_.broadcast_wide, {Place::VECTOR, temporary, 0}, {}, a);
      a = {Place::VECTOR, temporary, 0};
    }
    uint8_t step;
    if (n.result == Kind::I64) result_slot(node, step);
    emit(stage(number(a)   ? Form::SV
               : number(b) ? Form::VS
                           : Form::VV),
         n.result == Kind::I64 ? place_[node] : Place{}, a, b);
    if (both) layout_.release_group(Kind::I64, temporary);
  } else if (n.a == n.b) {
    to_accumulator(n.a);
    emit(stage(Form::AA));
  } else {
    // A value that is in memory stays there; one of the others may come in the accumulator.
    if (accumulator_ != n.a && !in_memory(place_[n.a]) && accumulator_ != n.b && !in_memory(place_[n.b])) operand(n.b);
    const bool a_ready = in_memory(place_[n.a]), b_ready = in_memory(place_[n.b]);
    if (accumulator_ == n.a || (!a_ready && accumulator_ != n.b)) {
      // b must be in memory before a is computed last.
      if (!b_ready) operand(n.b);
      to_accumulator(n.a);
      emit(stage(number(place_[n.b]) ? Form::AS : Form::AV), {}, {}, place_[n.b]);
    } else if (accumulator_ == n.b || !b_ready) {
      if (!a_ready) operand(n.a);
      to_accumulator(n.b);
      emit(stage(number(place_[n.a]) ? Form::SA : Form::VA), {}, place_[n.a]);
    } else if (number(place_[n.a]) && number(place_[n.b])) {
      to_accumulator(n.a);
      emit(stage(Form::AS), {}, {}, place_[n.b]);
    } else {
      emit(stage(number(place_[n.a])   ? Form::SV
                 : number(place_[n.b]) ? Form::VS
                                       : Form::VV),
           {}, place_[n.a], place_[n.b]);
    }
  }
  consume(n.a);
  if (n.b != n.a) consume(n.b);
}

void SegmentBuilder::evaluate_select(int node) {
  const Node& n = graph_.nodes[node];
  const Place b = operand(n.b), c = operand(n.c);
  const int form = (b.type == Place::NUMBER) | (c.type == Place::NUMBER) << 1;
  if (n.kind == Kind::I64) {
    Place condition = operand(n.a);
    uint16_t temporary = 0;
    const bool one = condition.type == Place::NUMBER;
    if (one) {
      temporary = layout_.add_group(Kind::I32);
      emit(isa_.broadcast, {}, {}, condition);
      accumulator_ = -1;
      condition = {Place::VECTOR, temporary, 0};
      emit(isa_.store[dtype_index(Dtype::INT32)], condition);
    }
    uint8_t step;
    result_slot(node, step);
    emit(isa_.select_wide[form], place_[node], condition, b, c);
    if (one) layout_.release_group(Kind::I32, temporary);
  } else {
    to_accumulator(n.a);
    emit(isa_.select[form], {}, {}, b, c);
  }
  consume(n.a);
  if (n.b != n.a) consume(n.b);
  if (n.c != n.a && n.c != n.b) consume(n.c);
}

// Makes a value readable that no store of this segment can change.
void SegmentBuilder::secure(int node) {
  const Node& n = graph_.nodes[node];
  if (n.op == Micro::LOAD && place_[node].type == Place::VECTOR && !in_group_[node]) {
    const Place window = place_[node];
    place_[node] = {Place::VECTOR, layout_.add_group(n.result), 0};
    in_group_[node] = true;
    if (n.result == Kind::I64) {
      emit(isa_.copy_wide, place_[node], window);
    } else {
      emit(isa_.load[dtype_index(Dtype::FP32)], {}, window);
      emit(isa_.store[dtype_index(Dtype::FP32)], place_[node]);
      accumulator_ = node;
    }
  } else {
    operand(node);
  }
}

void SegmentBuilder::emit_root(const Root& root) {
  const Node& n = graph_.nodes[root.node];
  switch (root.type) {
    case Root::VALUE: {
      if (computed_[root.node]) return;
      const Place from = place_[root.node], to = keep_[root.node];
      if (from.type == Place::NONE) {
        evaluate(root.node);
      } else if (to.type != Place::NONE) {  // a copy
        computed_[root.node] = true;
        if (n.result == Kind::I64) {
          emit(from.type == Place::NUMBER ? isa_.broadcast_wide : isa_.copy_wide, to, from, from);
        } else {
          to_accumulator(root.node);
          emit(isa_.store[dtype_index(Dtype::FP32)], to);
        }
      }
      break;
    }
    case Root::STORE: {
      const Dtype dtype = instruction_.windows[n.pattern].dtype;
      const Place dst{Place::VECTOR, root.slot, static_cast<uint8_t>(bytes_of(dtype))};
      if (dtype == Dtype::INT64) {
        const Place source = operand(n.a);
        if (source.type == Place::NUMBER) {
          emit(isa_.broadcast_wide, dst, {}, source);
        } else {
          emit(isa_.copy_wide, dst, source);
        }
      } else {
        to_accumulator(n.a);
        emit(isa_.store[dtype_index(dtype)], dst, {}, {}, {}, root.stream ? 1 : 0);
      }
      consume(n.a);
      break;
    }
    case Root::REDUCTION: {
      const Place dst{Place::VECTOR, root.slot, static_cast<uint8_t>(root.column ? (n.kind == Kind::I64 ? 8 : 4) : 0)};
      const Place indices{Place::VECTOR, root.indices, static_cast<uint8_t>(root.column ? 4 : 0)};
      Place source;
      if (n.kind == Kind::I64) {
        source = operand(n.a);
        if (source.type == Place::NUMBER) {
          const Place number = source;
          source = {Place::VECTOR, layout_.add_group(Kind::I64), 0};
          emit(isa_.broadcast_wide, source, {}, number);
          layout_.release_group(Kind::I64, source.slot);
        }
      } else {
        to_accumulator(n.a);
      }
      const auto& table = root.column ? isa_.reduce_column : isa_.reduce_row;
      emit(table[reduction_index(n.op)][static_cast<int>(n.kind)], dst, source, {}, indices);
      consume(n.a);
      break;
    }
  }
}

Segment SegmentBuilder::build() {
  if (roots_.empty()) return {};
  std::vector<bool> seen(place_.size());
  for (const Root& root : roots_) count_uses(root.type == Root::VALUE ? root.node : graph_.nodes[root.node].a, seen);
  for (const auto& [slot, bytes] : prefetches_)
    emit(isa_.prefetch, {}, {Place::VECTOR, slot, 4}, {}, {}, static_cast<uint16_t>(bytes / 64));
  // An output may lie on an input: nothing is stored before everything has been read.
  std::vector<Root> stores;
  for (const Root& root : roots_) {
    if (root.type == Root::STORE) stores.push_back(root);
  }
  size_t stored = 0;
  for (const Root& root : roots_) {
    if (root.type != Root::STORE) {
      emit_root(root);
    } else if (++stored < stores.size()) {
      secure(graph_.nodes[root.node].a);
    }
  }
  std::rotate(stores.begin(), stores.end() - (stores.empty() ? 0 : 1),
              stores.end());  // its value comes in the accumulator
  for (const Root& root : stores) emit_root(root);
  Step end;
  end.stage = isa_.next;
  segment_.steps.push_back(end);
  if (!segment_.streamed.empty()) {
    segment_.streaming = segment_.steps;
    for (Step& s : segment_.streaming) {
      if (!s.aux) continue;
      for (int d = 0; d < kDtypeCount; ++d) {
        if (s.stage == isa_.store[d] && isa_.store_streaming[d]) {
          s.stage = isa_.store_streaming[d];
          break;
        }
      }
    }
  }
  return std::move(segment_);
}

}  // namespace neuron::engine
