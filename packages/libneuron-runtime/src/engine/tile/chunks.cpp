// TILE in ROW mode on long rows, and in COLUMN mode: the reduced elements of a unit (one row, or a block of columns)
// are visited in chunks, phase by phase; values that a later phase needs are computed again. Chunks of a unit may run
// on several threads: their results are combined in order.
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

constexpr int64_t kDirectRun = 8192;     // elements of a row per run of a segment
constexpr int64_t kStagedRun = 1024;     // the same through buffers
constexpr int64_t kWideColumns = 128;    // fewer columns than this are visited several reduced elements at a time
constexpr int64_t kColumnsBlock = 2048;  // columns of a unit

// Result of one chunk for one reduction.
struct Part {
  char* values;
  int32_t* indices;
};

class ChunksKernel final : public Kernel {
 public:
  explicit ChunksKernel(const BoundInstruction& instruction)
      : isa_(isa()),
        debug_(instruction.debug),
        column_(static_cast<TileMode>(instruction.params[0]) == TileMode::COLUMN),
        graph_(instruction, instruction.rank - static_cast<int>(instruction.params[1])),
        nest_(instruction, graph_, instruction.rank - static_cast<int>(instruction.params[1]), Nest::ROW_MAJOR),
        layout_(isa_.group),
        elements_(instruction, graph_, nest_, layout_, Class::ELEMENT),
        kept_(instruction, graph_, nest_, layout_, Class::KEPT),
        uniforms_(graph_, instruction, layout_, isa_),
        length_(nest_.reduced_size()),
        phases_(plan(instruction)) {
    chunk_ = column_ ? kColumnChunk : kRowChunk;
    chunks_ = (length_ + chunk_ - 1) / chunk_;
    units_ = nest_.kept_size() > 0;
    for (int d = 0; d < nest_.kept; ++d) {
      counts_[d] = d == dimension_ ? (nest_.extents[d] + columns_ - 1) / columns_ : nest_.extents[d];
      units_ *= counts_[d];
    }
    chunk_cost_ = graph_.cost() * static_cast<double>(std::min(chunk_, length_) * columns_) + 50;
  }

  void run(const Launch& launch) const override {
    if (units_ == 0) return;
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
    const double unit_cost = chunk_cost_ * static_cast<double>(std::max<int64_t>(chunks_, 1));
    const bool worth = unit_cost * static_cast<double>(units_) >= 2 * kTaskNanoseconds;
    const bool inside = worth && chunks_ > 1 && units_ < 2 * threads() && threads() > 1;
    if (inside) {
      for (int64_t unit = 0; unit < units_; ++unit) visit(launch, shared, unit, true);
      return;
    }
    const auto grain = static_cast<int64_t>(std::max(1.0, kTaskNanoseconds / unit_cost));
    parallel_for(units_, worth ? grain : units_, [&](int64_t begin, int64_t end) {
      Scratch local;
      char* own = local.take(layout_.shared_bytes());  // kept values differ from unit to unit
      std::memcpy(own, shared, layout_.shared_bytes());
      for (int64_t unit = begin; unit < end; ++unit) visit(launch, own, unit, false);
    });
  }

 private:
  Phases plan(const BoundInstruction& instruction) {
    if (column_) {
      dimension_ = nest_.kept - 1;
      const int64_t extent = dimension_ < 0 ? 1 : nest_.extents[dimension_];
      columns_ = std::clamp(extent, int64_t{1}, kColumnsBlock);
      row_ = nest_.reduced > 0 ? nest_.kept + nest_.reduced - 1 : -1;
      if (extent < kWideColumns && row_ >= 0)
        rows_ = std::clamp(kStagedRun / columns_, int64_t{1}, std::max<int64_t>(nest_.extents[row_], 1));
      elements_.plan(graph_, nest_, layout_, row_, dimension_ < 0 ? Axis{} : Axis{dimension_, 1}, {rows_, columns_},
                     columns_ == extent);
      kept_.plan(graph_, nest_, layout_, -1, dimension_ < 0 ? Axis{} : Axis{dimension_, 1}, {1, columns_},
                 columns_ == extent);
    } else {
      const Axis axis{nest_.kept, nest_.reduced};
      run_ = std::min(kStagedRun, std::max<int64_t>(length_, 1));
      // Without buffers a run may be longer. What is direct does not depend on the length of the run.
      bool direct = true;
      for (const Access& a : nest_.accesses)
        direct &= a.is_window() && (nest_.reduced == 0 || (a.strides[nest_.kept + nest_.reduced - 1] | 1) == 1);
      if (direct && nest_.reduced <= 1) run_ = std::min(kDirectRun, std::max<int64_t>(length_, 1));
      elements_.plan(graph_, nest_, layout_, -1, axis, {1, run_}, false);
      kept_.plan(graph_, nest_, layout_, -1, Axis{}, {1, 1}, true);
    }
    PhaseOptions o{};
    o.shared_kept = true;
    o.kept_room = columns_;
    o.kept_numbers = !column_;
    o.expand = o.on_buffers = rows_ > 1;
    o.whole_vectors = columns_ % kLanes == 0;
    o.separate_phases = true;
    o.element_room = column_ ? rows_ * columns_ : run_;
    o.column = column_;
    o.stream_bytes = kStreamBytes;
    return Phases(instruction, graph_, nest_, layout_, isa_, uniforms_, elements_, kept_, o);
  }

  void open(Scratch& local, char* shared, Context& context) const {
    context.slots = reinterpret_cast<char**>(local.take(sizeof(char*) * static_cast<size_t>(layout_.slots())));
    layout_.point(context.slots, shared, local.take(layout_.local_bytes()));
  }

  void visit(const Launch& launch, char* shared, int64_t unit, bool parallel) const {
    Scratch local;
    Context context;
    open(local, shared, context);
    char** slots = context.slots;
    std::vector<int64_t> offsets(nest_.accesses.size(), 0);
    int64_t width = 1, rest = unit;  // kept values of this unit
    for (int d = nest_.kept - 1; d >= 0; --d) {
      int64_t at = rest % counts_[d];
      rest /= counts_[d];
      if (d == dimension_) {
        at *= columns_;
        width = std::min(columns_, nest_.extents[d] - at);
      }
      for (size_t a = 0; a < nest_.accesses.size(); ++a) offsets[a] += at * nest_.accesses[a].strides[d];
    }
    kept_.before(launch, isa_, slots, offsets.data(), 0, {1, width});
    for (int p = 0; p <= phases_.depth; ++p) {
      phases_.kept[p].run(isa_, context, width);
      const auto& reductions = phases_.reductions[p];
      for (const Reduction& r : reductions) {
        if (is_arg(r.op)) {
          fill_identity(r.op, r.kind, slots[r.totals], width);
          std::memset(slots[r.result], 0, static_cast<size_t>(width) * 8);
        } else {
          fill_identity(r.op, r.kind, slots[r.result], width);
        }
      }
      if (length_ == 0 || (phases_.element[p].empty() && reductions.empty())) continue;
      if (!parallel) {
        for (int64_t chunk = 0; chunk < chunks_; ++chunk) {
          visit_chunk(launch, context, p, chunk, width, offsets.data());
          for (const Reduction& r : reductions) add_part(r, slots, part_of(r, slots), chunk, width);
        }
        check_fault(context, debug_);
        continue;
      }
      Scratch results;
      std::vector<Part> parts(reductions.size() * static_cast<size_t>(chunks_));
      for (Part& part : parts) {
        part.values = results.take(static_cast<size_t>(width) * 8);
        part.indices = reinterpret_cast<int32_t*>(results.take(static_cast<size_t>(width) * 4));
      }
      const auto grain = static_cast<int64_t>(std::max(1.0, kTaskNanoseconds / chunk_cost_));
      parallel_for(chunks_, grain, [&](int64_t begin, int64_t end) {
        Scratch mine;
        Context own;
        open(mine, shared, own);
        std::vector<int64_t> own_offsets = offsets;
        for (int64_t chunk = begin; chunk < end; ++chunk) {
          visit_chunk(launch, own, p, chunk, width, own_offsets.data());
          for (size_t i = 0; i < reductions.size(); ++i) {
            const Part from = part_of(reductions[i], own.slots),
                       to = parts[static_cast<size_t>(chunk) * reductions.size() + i];
            std::memcpy(to.values, from.values, static_cast<size_t>(width) * (reductions[i].kind == Kind::I64 ? 8 : 4));
            if (is_arg(reductions[i].op)) std::memcpy(to.indices, from.indices, static_cast<size_t>(width) * 4);
          }
        }
        if (phases_.streams) store_fence();
        check_fault(own, debug_);
      });
      for (int64_t chunk = 0; chunk < chunks_; ++chunk) {
        for (size_t i = 0; i < reductions.size(); ++i) {
          add_part(reductions[i], slots, parts[static_cast<size_t>(chunk) * reductions.size() + i], chunk, width);
        }
      }
    }
    phases_.kept_stores.run(isa_, context, width);
    kept_.after(isa_, slots, 0, {1, width});
    if (phases_.streams) store_fence();
    check_fault(context, debug_);
  }

  Part part_of(const Reduction& r, char** slots) const {
    return {slots[r.lanes], reinterpret_cast<int32_t*>(slots[r.indices])};
  }

  void add_part(const Reduction& r, char** slots, Part part, int64_t chunk, int64_t width) const {
    combine_vectors(r.op, r.kind, is_arg(r.op) ? slots[r.totals] : slots[r.result],
                    reinterpret_cast<int64_t*>(slots[r.result]), part.values, part.indices, chunk * chunk_, width);
  }

  // Leaves the chunk's results where part_of() finds them.
  void visit_chunk(const Launch& launch, Context& context, int p, int64_t chunk, int64_t width,
                   int64_t* offsets) const {
    char** slots = context.slots;
    const auto& reductions = phases_.reductions[p];
    for (const Reduction& r : reductions) {
      const int64_t accumulators = column_ ? width : kLanes;
      fill_identity(r.op, r.kind, slots[r.lanes], accumulators);
      auto* indices = reinterpret_cast<int32_t*>(slots[r.indices]);
      for (int64_t k = 0; is_arg(r.op) && k < accumulators; ++k) indices[k] = column_ ? 0 : static_cast<int32_t>(k);
    }
    const int64_t begin = chunk * chunk_, end = std::min(begin + chunk_, length_);
    if (column_) {
      visit_columns(launch, context, p, begin, end, width, offsets);
      return;
    }
    for (int64_t start = begin; start < end; start += run_) {
      const BlockShape shape{1, std::min(run_, end - start)};
      elements_.before(launch, isa_, slots, offsets, start, shape);
      context.position = start - begin;
      phases_.element[p].run(isa_, context, shape.columns, phases_.streams);
      if (p == phases_.depth) elements_.after(isa_, slots, start, shape);
    }
    for (const Reduction& r : reductions) {
      int64_t index = 0;
      uint64_t value;
      isa_.fold[reduction_index(r.op)][static_cast<int>(r.kind)](
          slots[r.lanes], reinterpret_cast<int32_t*>(slots[r.indices]), reinterpret_cast<char*>(&value), &index);
      std::memcpy(slots[r.lanes], &value, 8);
      *reinterpret_cast<int32_t*>(slots[r.indices]) = static_cast<int32_t>(index);
    }
  }

  void visit_columns(const Launch& launch, Context& context, int p, int64_t begin, int64_t end, int64_t width,
                     int64_t* offsets) const {
    char** slots = context.slots;
    for (const Expansion& e : phases_.expansions[p]) {
      isa_.copy[e.bytes == 8 ? 3 : 2](slots[e.to], width, 1, slots[e.from], 0, 1, rows_, width);
    }
    std::array<int64_t, kMaxDims> at{};  // index along the reduced dimensions
    int64_t rest = begin;
    for (int d = nest_.reduced - 1; d >= 0; --d) {
      const int64_t extent = nest_.extents[nest_.kept + d];
      at[d] = rest % extent;
      rest /= extent;
    }
    const int inner = nest_.reduced - 1;
    std::vector<int64_t> here(nest_.accesses.size());
    for (int64_t r = begin; r < end;) {
      BlockShape shape{1, width};
      if (inner >= 0) shape.rows = std::min({rows_, end - r, nest_.extents[nest_.kept + inner] - at[inner]});
      for (size_t a = 0; a < here.size(); ++a) {
        here[a] = offsets[a];
        for (int d = 0; d <= inner; ++d) here[a] += at[d] * nest_.accesses[a].strides[nest_.kept + d];
      }
      elements_.before(launch, isa_, slots, here.data(), 0, shape);
      context.position = r - begin;
      phases_.element[p].run(isa_, context, shape.size(), phases_.streams);
      if (rows_ > 1) {
        for (const Reduction& x : phases_.reductions[p]) {
          isa_.reduce_columns[reduction_index(x.op)][static_cast<int>(x.kind)](
              slots[x.buffer], shape.rows, width, slots[x.lanes], reinterpret_cast<int32_t*>(slots[x.indices]),
              context.position);
        }
      }
      if (p == phases_.depth) elements_.after(isa_, slots, 0, shape);
      r += shape.rows;
      if (inner < 0) continue;
      at[inner] += shape.rows;
      for (int d = inner; d > 0 && at[d] == nest_.extents[nest_.kept + d]; --d) {
        at[d] = 0;
        ++at[d - 1];
      }
    }
  }

  const Isa& isa_;
  std::string debug_;
  bool column_;
  Graph graph_;
  Nest nest_;
  FrameLayout layout_;
  Feeds elements_, kept_;
  Uniforms uniforms_;
  int64_t length_;                 // reduced elements of one kept value
  int dimension_ = -1, row_ = -1;  // COLUMN: dimensions along a unit's columns and along the rows of a block
  int64_t columns_ = 1, rows_ = 1, run_ = 1;
  Phases phases_;
  int64_t chunk_ = 0, chunks_ = 0, units_ = 0;
  std::array<int64_t, kMaxDims> counts_{};
  double chunk_cost_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> prepare_chunks(const BoundInstruction& instruction) {
  return std::make_unique<ChunksKernel>(instruction);
}

}  // namespace neuron::engine
