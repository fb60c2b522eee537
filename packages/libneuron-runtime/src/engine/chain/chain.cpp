#include "engine/chain/chain.h"

#include <algorithm>

#include "engine/chain/kernel.h"
#include "engine/pool.h"

namespace neuron::engine {
namespace {

constexpr int64_t kLeastBytes = int64_t{2} << 20;  // of intermediate results: less stays in the caches anyway
constexpr int64_t kTaskBytes = 384 << 10;          // of a task's intermediate results: they fit beside packed operands
constexpr int64_t kMostRight = 128 << 10;          // elements of a product's right operand, which every task packs
constexpr int64_t kRowMultiple = 12;               // of a product's tiles
constexpr size_t kMostSkipped = 4;
constexpr int64_t kMostTasks = 1 << 14;

// Instructions that are never members: each of their windows counts as written.
bool is_opaque(const BoundInstruction& instruction) {
  return instruction.opcode != Opcode::TILE && instruction.opcode != Opcode::MATMUL;
}

// Whether an instruction can be computed some rows at a time at no great cost.
bool may_be_cut(const BoundInstruction& instruction) {
  for (const MicroOp& m : instruction.micro) {
    if (m.op == Micro::RANDOM) return false;  // numbers are counted over all elements
  }
  for (int d = 0; d < instruction.rank; ++d) {
    if (instruction.extents[d] <= 0) return false;
  }
  if (instruction.opcode != Opcode::MATMUL) return true;
  return instruction.extents[instruction.rank - 2] * instruction.extents[instruction.rank - 1] <= kMostRight;
}

}  // namespace

Chain::Chain(std::span<const BoundInstruction> program, std::span<const BufferPlace> buffers, size_t first)
    : program_(program), buffers_(buffers), members_{first} {
  const BoundInstruction& head = at(first);
  if (head.opcode != Opcode::MATMUL || program.size() == 1 || !may_be_cut(head)) return;
  const int dimensions = static_cast<int>(head.params[0]) + 1;
  run_ = head.extents[dimensions - 1];
  rows_ = 1;
  for (int d = 0; d < dimensions; ++d) rows_ *= head.extents[d];
  const int64_t row_bytes = head.extents[dimensions] * 4;
  if (rows_ * row_bytes < kLeastBytes) return;
  cut(row_bytes);
  if (tasks_ > kMostTasks) return;
  for (size_t i = first + 1; i < program_.size() && skipped_.size() <= kMostSkipped; ++i) {
    (joins(i) ? members_ : skipped_).push_back(i);
  }
}

// As many rows as the cache holds, but some tasks for every thread.
void Chain::cut(int64_t row_bytes) {
  parts_ = std::max<int64_t>(1, (run_ * row_bytes + kTaskBytes - 1) / kTaskBytes);
  const int64_t runs = rows_ / run_, wanted = 4 * threads();
  if (runs * parts_ < wanted) parts_ = (wanted + runs - 1) / runs;
  length_ = ((run_ + parts_ - 1) / parts_ + kRowMultiple - 1) / kRowMultiple * kRowMultiple;
  parts_ = (run_ + length_ - 1) / length_;
  tasks_ = runs * parts_;
}

// Leading dimensions whose indices, in row-major order, are the rows.
int Chain::row_dimensions(const BoundInstruction& instruction) const {
  if (!may_be_cut(instruction)) return 0;
  int most;
  if (instruction.opcode == Opcode::MATMUL) {
    most = static_cast<int>(instruction.params[0]) + 1;
  } else if (instruction.opcode == Opcode::TILE && static_cast<TileMode>(instruction.params[0]) != TileMode::COLUMN) {
    most = instruction.rank - static_cast<int>(instruction.params[1]);
  } else {
    return 0;
  }
  int64_t product = 1;
  for (int d = 0; d < most; ++d) {
    product *= instruction.extents[d];
    if (product < rows_) continue;
    const bool whole = instruction.opcode != Opcode::MATMUL || d + 1 == most;
    return product == rows_ && whole && instruction.extents[d] % run_ == 0 ? d + 1 : 0;
  }
  return 0;
}

// Index along a row dimension.
int64_t Chain::position(const BoundInstruction& instruction, int64_t row, int dimension) const {
  for (int d = row_dimensions(instruction) - 1; d > dimension; --d) row /= instruction.extents[d];
  return dimension == 0 ? row : row % instruction.extents[dimension];
}

Chain::Rows Chain::rows_of(const Use& use) const {
  const BoundInstruction& instruction = at(use.instruction);
  const Window& w = instruction.windows[use.window];
  const int dimensions = row_dimensions(instruction);
  Rows r{w.dtype, w.strides[dimensions - 1], {}, {}, 0};
  r.starts.reserve(static_cast<size_t>(tasks_));
  for (int64_t t = 0; t < tasks_; ++t) {
    int64_t row = first_row(t), start = w.offset;
    for (int d = dimensions - 1; d >= 0; --d) {
      start += row % instruction.extents[d] * w.strides[d];
      row /= instruction.extents[d];
    }
    r.starts.push_back(start);
  }
  for (int d = dimensions; d < instruction.rank; ++d) {
    if (instruction.extents[d] > 1 && w.strides[d] != 0) r.columns.push_back({instruction.extents[d], w.strides[d]});
  }
  std::sort(r.columns.begin(), r.columns.end(), [](auto a, auto b) { return a.second > b.second; });
  for (size_t k = r.columns.size(); k-- > 1;) {
    if (r.columns[k - 1].second != r.columns[k].first * r.columns[k].second) continue;
    r.columns[k - 1] = {r.columns[k - 1].first * r.columns[k].first, r.columns[k].second};
    r.columns.erase(r.columns.begin() + static_cast<std::ptrdiff_t>(k));
  }
  for (const auto& [extent, stride] : r.columns) r.span += (extent - 1) * stride;
  return r;
}

// Whether rows lie apart, so that tasks do not touch each other's.
bool Chain::separate(const Rows& rows) const {
  for (const auto& [extent, stride] : rows.columns) {
    if (stride < 0) return false;
  }
  if (rows.step <= rows.span) return false;
  std::vector<std::pair<int64_t, int64_t>> ranges;  // first element and last one
  for (int64_t t = 0; t < tasks_; ++t) {
    const int64_t start = rows.starts[static_cast<size_t>(t)];
    ranges.push_back({start, start + (task_rows(t) - 1) * rows.step + rows.span});
  }
  std::sort(ranges.begin(), ranges.end());
  for (size_t t = 1; t < ranges.size(); ++t) {
    if (ranges[t].first <= ranges[t - 1].second) return false;
  }
  return true;
}

std::vector<Chain::Use> Chain::uses(size_t i) const {
  std::vector<Use> result;
  for (size_t k = 0; k < at(i).windows.size(); ++k) result.push_back({i, k, is_opaque(at(i))});
  for (const MicroOp& m : at(i).micro) {
    if (m.op == Micro::STORE) result[m.dst].write = true;
  }
  return result;
}

bool Chain::overlap(uint32_t a, uint32_t b) const {
  if (a == b) return true;
  const BufferPlace &x = buffers_[a], &y = buffers_[b];
  if (x.alias == static_cast<int>(b) || y.alias == static_cast<int>(a)) return true;
  return x.kind == BufferKind::TEMP && y.kind == BufferKind::TEMP && x.begin < y.begin + y.bytes &&
         y.begin < x.begin + x.bytes;
}

// Whether the order of two instructions matters.
bool Chain::conflict(size_t a, size_t b) const {
  for (const Use& x : uses(a)) {
    for (const Use& y : uses(b)) {
      const auto buffer = [&](const Use& u) { return at(u.instruction).windows[u.window].buffer; };
      if ((x.write || y.write) && overlap(buffer(x), buffer(y))) return true;
    }
  }
  return false;
}

// Whether an instruction works on the rows that the chain makes, and on nothing else that the chain or one that was
// left out between them touches.
bool Chain::joins(size_t i) const {
  if (!row_dimensions(at(i))) return false;
  for (const size_t other : skipped_) {
    if (conflict(other, i)) return false;
  }
  bool reads = false;
  for (const Use& mine : uses(i)) {
    const uint32_t buffer = at(i).windows[mine.window].buffer;
    for (const size_t member : members_) {
      for (const Use& theirs : uses(member)) {
        const uint32_t other = at(member).windows[theirs.window].buffer;
        if (!(mine.write || theirs.write) || !overlap(buffer, other)) continue;
        if (buffer != other) return false;
        const Rows rows = rows_of(mine);
        if (!(rows == rows_of(theirs)) || !separate(rows)) return false;
        reads |= theirs.write && !mine.write;
      }
    }
  }
  return reads;
}

// Whether nobody but the chain needs a buffer: each thread may have one of its own.
bool Chain::is_private(uint32_t buffer) const {
  if (buffers_[buffer].kind != BufferKind::TEMP) return false;
  std::vector<char> written(buffers_.size());  // after the chain
  for (size_t i = 0; i < program_.size(); ++i) {
    const bool member = std::find(members_.begin(), members_.end(), i) != members_.end();
    const auto all = uses(i);
    for (const Use& use : all) {
      const uint32_t other = at(i).windows[use.window].buffer;
      if (member || !overlap(buffer, other)) continue;
      // Another buffer in the same memory: what it holds later is written later.
      if (other == buffer || (i > members_.front() && !use.write && !written[other])) return false;
    }
    for (const Use& use : all) {
      if (use.write && !member && i > members_.front()) written[at(i).windows[use.window].buffer] = 1;
    }
  }
  return true;
}

std::unique_ptr<Kernel> Chain::prepare() const {
  ChainPlan plan;
  plan.tasks = tasks_;
  plan.parts = parts_;
  plan.lengths = {task_rows(0), task_rows(parts_ - 1)};
  for (const size_t i : members_) {
    for (const MicroOp& m : at(i).micro) {
      if (m.op == Micro::CONST && m.source == ImmSource::SCALAR)
        plan.scalars = std::max(plan.scalars, static_cast<size_t>(m.imm) + 1);
    }
  }
  std::vector<int64_t> own(buffers_.size(), -1);  // offset in the thread's memory
  for (const size_t i : members_) {
    const BoundInstruction& original = at(i);
    const int dimensions = row_dimensions(original);
    BoundInstruction slice = original;
    slice.rank = original.rank - dimensions + 1;
    for (int d = 1; d < slice.rank; ++d) slice.extents[d] = original.extents[d + dimensions - 1];
    if (slice.opcode == Opcode::MATMUL) slice.params[0] = 0;
    for (const Use& use : uses(i)) {
      const Window& from = original.windows[use.window];
      Window& w = slice.windows[use.window];
      const Rows rows = rows_of(use);
      w.offset = 0;
      w.strides.fill(0);
      for (int d = 0; d < slice.rank; ++d) w.strides[d] = from.strides[d + dimensions - 1];
      w.buffer = static_cast<uint32_t>(plan.windows.size());
      ChainPlan::Address address{from.buffer, -1, {}};
      const bool dense = rows.step <= 2 * (rows.span + 1);
      if (use.write && own[from.buffer] < 0 && dense && is_private(from.buffer)) {
        // On top of what this instruction reads for the last time, if that has the same shape.
        for (const Use& other : uses(i)) {
          const uint32_t read = original.windows[other.window].buffer;
          if (other.write || own[read] < 0 || original.opcode != Opcode::TILE) continue;
          const Rows before = rows_of(other);
          bool last = before.step == rows.step && before.columns == rows.columns && before.dtype == rows.dtype;
          for (const size_t later : members_) {
            for (const Use& u : uses(later)) last &= later <= i || at(later).windows[u.window].buffer != read;
          }
          if (last) own[from.buffer] = own[read];
        }
        if (own[from.buffer] < 0) {
          own[from.buffer] = static_cast<int64_t>(plan.own_bytes);
          const int64_t elements = (plan.lengths[0] - 1) * rows.step + rows.span + 1;
          plan.own_bytes += static_cast<size_t>((elements * bytes_of(from.dtype) + 127) & ~int64_t{63});
        }
      }
      address.own = own[from.buffer];
      if (address.own < 0) {
        for (const int64_t start : rows.starts) address.offsets.push_back(start * bytes_of(from.dtype));
      }
      plan.windows.push_back(std::move(address));
    }
    // Indices along rows begin where the task does.
    std::vector<MicroOp> micro;
    uint16_t next = 0;
    for (const MicroOp& m : slice.micro) next = std::max(next, static_cast<uint16_t>(m.dst + 1));
    for (MicroOp m : slice.micro) {
      if (m.op != Micro::IOTA || m.a >= dimensions) {
        if (m.op == Micro::IOTA) m.a = static_cast<uint16_t>(m.a - dimensions + 1);
        micro.push_back(m);
        continue;
      }
      MicroOp start;
      start.op = Micro::CONST;
      start.kind = Kind::I64;
      start.source = ImmSource::SCALAR;
      start.imm = plan.scalars + plan.starts.size();
      plan.starts.emplace_back();
      for (int64_t t = 0; t < tasks_; ++t) plan.starts.back().push_back(position(original, first_row(t), m.a));
      if (m.a + 1 < dimensions) {
        start.dst = m.dst;
        micro.push_back(start);
        continue;
      }
      start.dst = next++;
      MicroOp inner = m, sum;
      inner.a = 0;
      inner.dst = next++;
      sum.op = Micro::ADD;
      sum.kind = Kind::I64;
      sum.dst = m.dst;
      sum.a = inner.dst;
      sum.b = start.dst;
      for (const MicroOp& op : {start, inner, sum}) micro.push_back(op);
    }
    slice.micro = std::move(micro);
    plan.members.push_back(std::move(slice));
  }
  return prepare_chain(std::move(plan));
}

}  // namespace neuron::engine
