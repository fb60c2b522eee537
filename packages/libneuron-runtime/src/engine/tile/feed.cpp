#include "engine/tile/feed.h"

#include <algorithm>
#include <bit>

namespace neuron::engine {

Feeds::Feeds(const BoundInstruction& instruction, const Graph& graph, const Nest& nest, FrameLayout& layout, Class cls)
    : feed_of_(nest.accesses.size(), -1) {
  for (size_t node = 0; node < graph.nodes.size(); ++node) {
    const int i = nest.access_of[node];
    if (i < 0 || graph.nodes[node].cls != cls || feed_of_[i] >= 0) continue;
    const Access& a = nest.accesses[i];
    Feed f;
    f.access = i;
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
    if (a.type == Access::NUMBER) f.key = graph.nodes[node].imm;
    feed_of_[i] = static_cast<int>(feeds_.size());
    feeds_.push_back(f);
  }
}

void Feeds::plan(const Graph& graph, const Nest& nest, FrameLayout& layout, int row, Axis column, BlockShape shape,
                 bool whole_columns) {
  const auto room = [&](int bytes) { return layout.padded(shape.size()) * static_cast<size_t>(bytes); };
  column_dimensions_ = column.count;
  for (int d = 0; d < column.count; ++d) column_extents_[d] = nest.extents[column.first + d];
  for (Feed& f : feeds_) {
    const Access& a = nest.accesses[f.access];
    f.row_stride = row < 0 ? 0 : a.strides[row];
    f.column_stride = column.count == 0 ? 1 : a.strides[column.first + column.count - 1];
    for (int d = 0; d < column.count; ++d) f.strides[d] = a.strides[column.first + d];
    for (int d = 0; d + 1 < column.count; ++d) f.broken |= f.strides[d] != f.strides[d + 1] * column_extents_[d + 1];
    const bool one_row = shape.rows == 1;
    if (a.is_window() && f.column_stride == 1 && !f.broken &&
        (one_row || (whole_columns && f.row_stride == shape.columns))) {
      f.mode = Feed::DIRECT;
      f.slot = f.window;
    } else if (a.type != Access::WRITE && a.type != Access::NUMBER && one_row && f.column_stride == 0 && !f.broken) {
      f.mode = Feed::NUMBER;
      f.slot = a.is_window() && is_native(f.dtype) ? f.window : layout.add_local(8);
    } else if (a.type != Access::NUMBER) {
      f.slot = layout.add_local(room(f.bytes));
    }
  }
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& n = graph.nodes[i];
    if (n.op != Micro::RANDOM || feed_of_[nest.access_of[i]] < 0) continue;  // of elements, not of this class
    Feed& f = feeds_[feed_of_[nest.access_of[i]]];
    if (!f.words[n.word]) f.words[n.word] = layout.add_local(room(4));
  }
}

void Feeds::announce(SegmentBuilder& builder, const Graph& graph, const Nest& nest) const {
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& n = graph.nodes[i];
    if (nest.access_of[i] < 0 || n.op == Micro::STORE || feed_of_[nest.access_of[i]] < 0) continue;
    const Feed& f = of(nest.access_of[i]);
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
    if (f.mode != Feed::DIRECT) return false;
  }
  return true;
}

template <class Body>
void Feeds::runs(const Feed& f, int64_t start, int64_t columns, Body&& body) const {
  if (!f.broken) {
    body(int64_t{0}, start * f.column_stride, columns);
    return;
  }
  std::array<int64_t, kMaxDims> at{};
  int64_t rest = start;
  for (int d = column_dimensions_ - 1; d >= 0; --d) {
    at[d] = rest % column_extents_[d];
    rest /= column_extents_[d];
  }
  const int inner = column_dimensions_ - 1;
  for (int64_t done = 0; done < columns;) {
    int64_t offset = 0;
    for (int d = 0; d <= inner; ++d) offset += at[d] * f.strides[d];
    const int64_t count = std::min(columns - done, column_extents_[inner] - at[inner]);
    body(done, offset, count);
    done += count;
    at[inner] = 0;
    for (int d = inner - 1; d >= 0; --d) {
      if (++at[d] < column_extents_[d]) break;
      at[d] = 0;
    }
  }
}

void Feeds::stage(const Feed& f, const Isa& isa, char** slots, char* window, int64_t start, BlockShape shape,
                  bool store) const {
  const auto copy = isa.copy[std::countr_zero(static_cast<unsigned>(f.bytes))];
  runs(f, start, shape.columns, [&](int64_t position, int64_t offset, int64_t count) {
    char* inside = slots[f.slot] + position * f.bytes;
    char* outside = window + offset * f.bytes;
    if (store) {
      copy(outside, f.row_stride, f.column_stride, inside, shape.columns, 1, shape.rows, count);
    } else {
      copy(inside, shape.columns, 1, outside, f.row_stride, f.column_stride, shape.rows, count);
    }
  });
}

void Feeds::before(const Launch& launch, const Isa& isa, char** slots, const int64_t* offsets, int64_t start,
                   BlockShape shape) const {
  for (const Feed& f : feeds_) {
    const int64_t offset = offsets[f.access];
    switch (f.type) {
      case Access::READ:
      case Access::WRITE: {
        char* window = static_cast<char*>(launch.buffers[f.buffer]) + f.base + offset * f.bytes;
        slots[f.window] = f.mode == Feed::DIRECT ? window + start * f.bytes : window;
        if (f.mode == Feed::NUMBER && f.slot != f.window) {
          const uint64_t bits = load_number(f.dtype, window);
          std::memcpy(slots[f.slot], &bits, 8);
        } else if (f.mode == Feed::STAGED && f.type == Access::READ) {
          stage(f, isa, slots, window, start, shape, false);
        }
        break;
      }
      case Access::IOTA: {
        auto* out = reinterpret_cast<int64_t*>(slots[f.slot]);
        if (f.mode == Feed::NUMBER) {
          *out = offset;
          break;
        }
        for (int64_t r = 0; r < shape.rows; ++r, out += shape.columns) {
          runs(f, start, shape.columns, [&](int64_t position, int64_t inner, int64_t count) {
            const int64_t first = offset + r * f.row_stride + inner;
            for (int64_t c = 0; c < count; ++c) out[position + c] = first + c * f.column_stride;
          });
        }
        break;
      }
      case Access::NUMBER: {
        uint32_t* words[4];
        for (int w = 0; w < 4; ++w) words[w] = f.words[w] ? reinterpret_cast<uint32_t*>(slots[f.words[w]]) : nullptr;
        const uint64_t key = launch.scalars[f.key], counter = launch.scalars[f.key + 1] + static_cast<uint64_t>(offset);
        for (int64_t r = 0; r < shape.rows; ++r) {
          runs(f, start, shape.columns, [&](int64_t, int64_t inner, int64_t count) {
            isa.philox(key, counter + static_cast<uint64_t>(r * f.row_stride + inner), f.column_stride, count, words);
            for (uint32_t*& w : words) {
              if (w) w += count;
            }
          });
        }
        break;
      }
    }
  }
}

void Feeds::after(const Isa& isa, char** slots, int64_t start, BlockShape shape) const {
  for (const Feed& f : feeds_) {
    if (f.type == Access::WRITE && f.mode == Feed::STAGED) stage(f, isa, slots, slots[f.window], start, shape, true);
  }
}

}  // namespace neuron::engine
