#include "engine/tile/feed.h"

#include <bit>

namespace neuron::engine {

Feeds::Feeds(const BoundInstruction& instruction, const Graph& graph, const Nest& nest, FrameLayout& layout) {
  for (size_t i = 0; i < nest.accesses.size(); ++i) {
    const Access& a = nest.accesses[i];
    Feed f;
    f.access = static_cast<int>(i);
    f.type = a.type;
    if (a.is_window()) {
      const Window& w = instruction.windows[a.pattern];
      f.dtype = w.dtype;
      f.bytes = bytes_of(w.dtype);
      f.buffer = w.buffer;
      f.base = w.offset * f.bytes;
      f.window = layout.add_window();
    } else {
      f.dtype = a.type == Access::IOTA ? Dtype::INT64 : Dtype::INT32;
      f.bytes = bytes_of(f.dtype);
    }
    feeds_.push_back(f);
  }
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (graph.nodes[i].op == Micro::RANDOM) feeds_[nest.access_of[i]].key = graph.nodes[i].imm;
  }
}

void Feeds::plan(const Graph& graph, const Nest& nest, FrameLayout& layout, int row, int column, BlockShape shape, bool whole_columns) {
  const auto room = [&](int bytes) {
    const int64_t groups = (shape.size() + layout.group() - 1) / layout.group();
    return static_cast<size_t>(groups * layout.group() * bytes);
  };
  for (Feed& f : feeds_) {
    const Access& a = nest.accesses[f.access];
    f.row_stride = row < 0 ? 0 : a.strides[row];
    f.column_stride = column < 0 ? 1 : a.strides[column];
    const bool one_row = shape.rows == 1;
    if (a.is_window() && f.column_stride == 1 && (one_row || (whole_columns && f.row_stride == shape.columns))) {
      f.mode = Feed::DIRECT;
      f.slot = f.window;
    } else if (a.type != Access::WRITE && a.type != Access::NUMBER && one_row && f.column_stride == 0) {
      f.mode = Feed::NUMBER;
      f.slot = a.is_window() && is_native(f.dtype) ? f.window : layout.add_local(8);
    } else if (a.type != Access::NUMBER) {
      f.slot = layout.add_local(room(f.bytes));
    }
  }
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& n = graph.nodes[i];
    if (n.op != Micro::RANDOM) continue;
    Feed& f = feeds_[nest.access_of[i]];
    if (!f.words[n.word]) f.words[n.word] = layout.add_local(room(4));
  }
}

void Feeds::announce(SegmentBuilder& builder, const Graph& graph, const Nest& nest) const {
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& n = graph.nodes[i];
    if (nest.access_of[i] < 0 || n.op == Micro::STORE || n.cls != Class::ELEMENT) continue;
    const Feed& f = feeds_[nest.access_of[i]];
    const int node = static_cast<int>(i);
    if (n.op == Micro::RANDOM) {
      builder.set_vector(node, f.words[n.word], 4);
    } else if (f.mode == Feed::NUMBER) {
      builder.set_number(node, f.slot);
    } else if (n.op == Micro::IOTA) {
      builder.set_vector(node, f.slot, 8);
    } else {
      builder.set_load(node, f.slot, f.mode == Feed::DIRECT);
    }
  }
}

bool Feeds::all_direct() const {
  for (const Feed& f : feeds_) {
    if (f.mode == Feed::STAGED) return false;
  }
  return true;
}

void Feeds::before(const Launch& launch, const Isa& isa, char** slots, const int64_t* offsets, BlockShape shape) const {
  for (const Feed& f : feeds_) {
    const int64_t offset = offsets[f.access];
    switch (f.type) {
      case Access::READ:
      case Access::WRITE: {
        char* window = static_cast<char*>(launch.buffers[f.buffer]) + f.base + offset * f.bytes;
        slots[f.window] = window;
        if (f.mode == Feed::NUMBER && f.slot != f.window) {
          const uint64_t bits = load_number(f.dtype, window);
          std::memcpy(slots[f.slot], &bits, 8);
        } else if (f.mode == Feed::STAGED && f.type == Access::READ) {
          isa.copy[std::countr_zero(static_cast<unsigned>(f.bytes))](slots[f.slot], shape.columns, 1, window, f.row_stride, f.column_stride,
                                                                      shape.rows, shape.columns);
        }
        break;
      }
      case Access::IOTA: {
        auto* out = reinterpret_cast<int64_t*>(slots[f.slot]);
        if (f.mode == Feed::NUMBER) {
          *out = offset;
          break;
        }
        for (int64_t r = 0; r < shape.rows; ++r) {
          for (int64_t c = 0; c < shape.columns; ++c) *out++ = offset + r * f.row_stride + c * f.column_stride;
        }
        break;
      }
      case Access::NUMBER: {
        uint32_t* words[4];
        for (int w = 0; w < 4; ++w) words[w] = f.words[w] ? reinterpret_cast<uint32_t*>(slots[f.words[w]]) : nullptr;
        const uint64_t key = launch.scalars[f.key], counter = launch.scalars[f.key + 1] + static_cast<uint64_t>(offset);
        for (int64_t r = 0; r < shape.rows; ++r) {
          isa.philox(key, counter + static_cast<uint64_t>(r * f.row_stride), f.column_stride, shape.columns, words);
          for (uint32_t*& w : words) {
            if (w) w += shape.columns;
          }
        }
        break;
      }
    }
  }
}

void Feeds::after(const Isa& isa, char** slots, BlockShape shape) const {
  for (const Feed& f : feeds_) {
    if (f.type != Access::WRITE || f.mode != Feed::STAGED) continue;
    isa.copy[std::countr_zero(static_cast<unsigned>(f.bytes))](slots[f.window], f.row_stride, f.column_stride, slots[f.slot], shape.columns,
                                                                1, shape.rows, shape.columns);
  }
}

}  // namespace neuron::engine
