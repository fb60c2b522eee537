// TILE in ROW mode on blocks of whole rows: every phase runs over a block while it is in the cache.
#include <algorithm>

#include "base/error.h"
#include "engine/fault.h"
#include "engine/fence.h"
#include "engine/pool.h"
#include "engine/reduction.h"
#include "engine/scratch.h"
#include "engine/tile/cost.h"
#include "engine/tile/phases.h"
#include "engine/tile/reduce.h"

namespace neuron::engine {
namespace {

constexpr int64_t kSharedRow = 512;   // rows up to this length share a block
constexpr int64_t kRowsBlock = 2048;  // elements of such a block
constexpr int64_t kBand = 4;          // longer rows that share one: their reductions run side by side
constexpr int64_t kBandRow = 4096;    // elements of such a row: a band stays in the second-level cache

class RowsKernel final : public Kernel {
 public:
  explicit RowsKernel(const BoundInstruction& instruction)
      : isa_(isa()),
        debug_(instruction.debug),
        graph_(instruction, instruction.rank - static_cast<int>(instruction.params[1])),
        nest_(instruction, graph_, instruction.rank - static_cast<int>(instruction.params[1]), Nest::ROW_MAJOR),
        layout_(isa_.group),
        elements_(instruction, graph_, nest_, layout_, Class::ELEMENT),
        kept_(instruction, graph_, nest_, layout_, Class::KEPT),
        uniforms_(graph_, instruction, layout_, isa_),
        length_(nest_.reduced_size()),
        row_(nest_.kept - 1),
        band_(is_band()),
        rows_(rows_of_a_block()),
        phases_(plan(instruction)) {
    blocks_ = nest_.kept_size() > 0;
    for (int d = 0; d < nest_.kept; ++d) {
      counts_[d] = d == row_ ? (nest_.extents[d] + rows_ - 1) / rows_ : nest_.extents[d];
      blocks_ *= counts_[d];
    }
    block_cost_ = graph_.cost() * static_cast<double>(rows_ * length_) + 100;
  }

  void run(const Launch& launch) const override {
    if (blocks_ == 0) return;
    Scratch scratch;
    char* shared = scratch.take(layout_.shared_bytes());
    layout_.start(shared);
    {
      Scratch local;
      Context context;
      open(local, shared, context);
      uniforms_.start(launch, isa_, context);
      check_fault(context, debug_);
    }
    const double cost = block_cost_ * static_cast<double>(blocks_);
    const auto grain = static_cast<int64_t>(std::max(1.0, kTaskNanoseconds / block_cost_));
    parallel_for(blocks_, cost < 2 * kTaskNanoseconds ? blocks_ : grain, [&](int64_t begin, int64_t end) {
      Scratch local;
      Context context;
      open(local, shared, context);
      std::vector<int64_t> offsets(nest_.accesses.size());
      for (int64_t block = begin; block < end; ++block) visit(launch, context, block, offsets.data());
      if (phases_.streams) store_fence();
      check_fault(context, debug_);
    });
  }

 private:
  // Whether several long rows share a block, in which elements run row by row and the rest for all of them.
  bool is_band() const {
    if (row_ < 0 || length_ <= kSharedRow || length_ > kBandRow || nest_.reduced != 1 || nest_.extents[row_] < kBand)
      return false;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& n = graph_.nodes[i];
      if (is_reduction(n.op) && is_arg(n.op)) return false;
      if (n.cls != Class::ELEMENT || nest_.access_of[i] < 0) continue;
      const Access& a = nest_.accesses[nest_.access_of[i]];
      if (!a.is_window() || a.strides[nest_.kept] != 1) return false;
    }
    return true;
  }

  int64_t rows_of_a_block() const {
    if (row_ < 0) return 1;
    if (band_) return kBand;
    if (length_ > kSharedRow) return 1;
    return std::clamp(kRowsBlock / std::max<int64_t>(length_, 1), int64_t{1},
                      std::max<int64_t>(nest_.extents[row_], 1));
  }

  Phases plan(const BoundInstruction& instruction) {
    elements_.plan(graph_, nest_, layout_, row_, {nest_.kept, nest_.reduced}, {band_ ? 1 : rows_, length_}, true);
    kept_.plan(graph_, nest_, layout_, -1, row_ < 0 ? Axis{} : Axis{row_, 1}, {1, rows_},
               rows_ == (row_ < 0 ? 1 : nest_.extents[row_]));
    PhaseOptions o{};
    o.kept_room = rows_;
    o.kept_numbers = rows_ == 1 || band_;
    o.on_buffers = rows_ > 1;
    o.expand = rows_ > 1 && !band_;
    o.one_by_one = band_;
    o.whole_vectors = length_ % kLanes == 0;
    o.keep_elements = true;
    o.element_room = band_ ? length_ : rows_ * length_;
    o.stream_bytes = kStreamBytes;
    return Phases(instruction, graph_, nest_, layout_, isa_, uniforms_, elements_, kept_, o);
  }

  void open(Scratch& local, char* shared, Context& context) const {
    context.slots = reinterpret_cast<char**>(local.take(sizeof(char*) * static_cast<size_t>(layout_.slots())));
    layout_.point(context.slots, shared, local.take(layout_.local_bytes()));
  }

  void visit(const Launch& launch, Context& context, int64_t block, int64_t* offsets) const {
    char** slots = context.slots;
    int64_t rows = 1;
    for (size_t a = 0; a < nest_.accesses.size(); ++a) offsets[a] = 0;
    int64_t rest = block;
    for (int d = nest_.kept - 1; d >= 0; --d) {
      int64_t at = rest % counts_[d];
      rest /= counts_[d];
      if (d == row_) {
        at *= rows_;
        rows = std::min(rows_, nest_.extents[d] - at);
      }
      for (size_t a = 0; a < nest_.accesses.size(); ++a) offsets[a] += at * nest_.accesses[a].strides[d];
    }
    const BlockShape shape{band_ ? 1 : rows, length_};
    kept_.before(launch, isa_, slots, offsets, 0, {1, rows});
    if (length_ > 0) elements_.before(launch, isa_, slots, offsets, 0, shape);
    context.position = 0;
    for (int p = 0; p <= phases_.depth; ++p) {
      phases_.kept[p].run(isa_, context, rows);
      for (const Expansion& e : phases_.expansions[p]) {
        isa_.copy[e.bytes == 8 ? 3 : 2](slots[e.to], length_, 1, slots[e.from], 1, 0, rows, length_);
      }
      if (length_ == 0) {
        for (const Reduction& r : phases_.reductions[p]) {
          fill_identity(is_arg(r.op) ? Micro::REDUCE_OR : r.op, is_arg(r.op) ? Kind::I64 : r.kind, slots[r.result],
                        rows);
        }
        continue;
      }
      if (rows_ == 1) {
        for (const Reduction& r : phases_.reductions[p]) start_lanes(r, slots);
        phases_.element[p].run(isa_, context, length_, phases_.streams);
        for (const Reduction& r : phases_.reductions[p]) {
          const auto fold = isa_.fold[reduction_index(r.op)][static_cast<int>(r.kind)];
          int64_t index = 0;
          fold(slots[r.lanes], reinterpret_cast<int32_t*>(slots[r.indices]),
               is_arg(r.op) ? slots[r.totals] : slots[r.result], &index);
          if (is_arg(r.op)) std::memcpy(slots[r.result], &index, 8);
        }
      } else {
        if (band_) {
          run_band(phases_.element[p], context, rows);
        } else {
          phases_.element[p].run(isa_, context, shape.size(), phases_.streams);
        }
        for (const Reduction& r : phases_.reductions[p]) {
          const auto reduce = isa_.reduce_rows[reduction_index(r.op)][static_cast<int>(r.kind)];
          reduce(slots[r.buffer], rows, r.stride, length_, is_arg(r.op) ? slots[r.totals] : slots[r.result],
                 reinterpret_cast<int64_t*>(slots[r.result]));
        }
      }
    }
    if (length_ > 0) elements_.after(isa_, slots, 0, shape);
    phases_.kept_stores.run(isa_, context, rows);
    kept_.after(isa_, slots, 0, {1, rows});
  }

  void run_band(const Segment& segment, Context& context, int64_t rows) const {
    if (segment.empty()) return;
    for (int64_t r = 0; r < rows; ++r) {
      segment.run(isa_, context, length_, phases_.streams);
      for (const RowStep& s : phases_.row_steps) context.slots[s.slot] += s.bytes;
    }
    for (const RowStep& s : phases_.row_steps) context.slots[s.slot] -= rows * s.bytes;
  }

  void start_lanes(const Reduction& r, char** slots) const {
    fill_identity(r.op, r.kind, slots[r.lanes], kLanes);
    if (is_arg(r.op)) {
      auto* indices = reinterpret_cast<int32_t*>(slots[r.indices]);
      for (int k = 0; k < kLanes; ++k) indices[k] = k;
    }
  }

  const Isa& isa_;
  std::string debug_;
  Graph graph_;
  Nest nest_;
  FrameLayout layout_;
  Feeds elements_, kept_;
  Uniforms uniforms_;
  int64_t length_;  // elements of a row
  int row_;         // dimension along the rows of a block, or -1
  bool band_;
  int64_t rows_;  // of a block
  Phases phases_;
  std::array<int64_t, kMaxDims> counts_{};
  int64_t blocks_ = 0;
  double block_cost_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> prepare_rows(const BoundInstruction& instruction) {
  return std::make_unique<RowsKernel>(instruction);
}

std::unique_ptr<Kernel> prepare_reduction(const BoundInstruction& instruction) {
  const auto reduced = static_cast<int>(instruction.params[1]);
  int64_t rows = 1, length = 1;
  for (int d = 0; d < instruction.rank; ++d) (d < instruction.rank - reduced ? rows : length) *= instruction.extents[d];
  const bool few = rows < 2 * threads() && length >= 2 * kRowChunk;
  if (static_cast<TileMode>(instruction.params[0]) == TileMode::COLUMN || length > kRowChunk || few)
    return prepare_chunks(instruction);
  return prepare_rows(instruction);
}

}  // namespace neuron::engine
