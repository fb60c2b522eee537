// TILE in MAP mode: the index space is cut into blocks, every block runs one segment. Blocks are independent.
#include "engine/tile/map.h"

#include <algorithm>

#include "base/error.h"
#include "engine/fault.h"
#include "engine/fence.h"
#include "engine/pool.h"
#include "engine/scratch.h"
#include "engine/tile/cost.h"
#include "engine/tile/feed.h"
#include "engine/tile/uniform.h"

namespace neuron::engine {
namespace {

constexpr int64_t kStagedBlock = 1024;  // elements: a few buffers of this size stay in a 32 KiB cache
constexpr int64_t kDirectBlock = 8192;  // elements of a block without staging: the unit of work for a thread
constexpr int64_t kShortRow = 128;      // rows shorter than this are put together
constexpr int64_t kTransposeTile = 32;  // a transposed window is read in tiles of this side
constexpr size_t kSmallFrame = 4096;    // bytes of buffers that a launch keeps on the stack
constexpr int kSmallSlots = 48;

class MapKernel final : public Kernel {
 public:
  explicit MapKernel(const BoundInstruction& instruction)
      : isa_(isa()),
        debug_(instruction.debug),
        graph_(instruction, instruction.rank),
        nest_(instruction, graph_, instruction.rank, Nest::ANY),
        layout_(isa_.group),
        feeds_(instruction, graph_, nest_, layout_, Class::ELEMENT),
        uniforms_(graph_, instruction, layout_, isa_) {
    choose_blocks();
    const int row = row_, column = nest_.kept - 1;
    const BlockShape shape{row < 0 ? 1 : tile_[row], column < 0 ? 1 : tile_[column]};
    feeds_.plan(graph_, nest_, layout_, row, column < 0 ? Axis{} : Axis{column, 1}, shape,
                column < 0 || tile_[column] == nest_.extents[column]);

    SegmentBuilder builder(graph_, instruction, layout_, isa_);
    uniforms_.announce(builder);
    feeds_.announce(builder, graph_, nest_);
    const int64_t elements = nest_.kept_size();
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (graph_.nodes[i].op != Micro::STORE) continue;
      const Feed& f = feeds_.of(nest_.access_of[i]);
      const bool welcome = instruction.windows[graph_.nodes[i].pattern].flags & 1;
      const bool large = elements * f.bytes >= (welcome ? kWelcomeStreamBytes : kStreamBytes);
      const bool stream = large && f.mode == Feed::DIRECT && isa_.store_streaming[dtype_index(f.dtype)];
      stream_ |= stream;
      builder.add_store(static_cast<int>(i), f.slot, f.mode == Feed::DIRECT, stream);
    }
    body_ = builder.build();
    block_cost_ = graph_.cost() * static_cast<double>(shape.size()) + 10;
    single_ = blocks_ == 1 && feeds_.all_direct();
    small_ = layout_.shared_bytes() + layout_.local_bytes() + 64 <= kSmallFrame && layout_.slots() <= kSmallSlots;
  }

  void run(const Launch& launch) const override {
    if (blocks_ == 0) return;
    const double cost = block_cost_ * static_cast<double>(blocks_);
    if (small_ && (blocks_ == 1 || cost < 2 * kTaskNanoseconds)) {
      alignas(64) char memory[kSmallFrame];
      char* slots[kSmallSlots];
      layout_.start(memory);
      layout_.point(slots, memory, memory + ((layout_.shared_bytes() + 63) & ~size_t{63}));
      Context context;
      context.slots = slots;
      uniforms_.start(launch, isa_, context);
      if (single_) {
        feeds_.point(launch, slots);
        body_.run(isa_, context, nest_.kept_size());
      } else {
        visit(launch, context, 0, blocks_);
      }
      check_fault(context, debug_);
      return;
    }
    Scratch scratch;
    char* shared = scratch.take(layout_.shared_bytes());
    layout_.start(shared);
    {
      Scratch local;
      Context context;
      prepare(local, shared, context);
      uniforms_.start(launch, isa_, context);
      check_fault(context, debug_);
    }
    const auto grain = static_cast<int64_t>(std::max(1.0, kTaskNanoseconds / block_cost_));
    parallel_for(blocks_, cost < 2 * kTaskNanoseconds ? blocks_ : grain, [&](int64_t begin, int64_t end) {
      Scratch local;
      Context context;
      prepare(local, shared, context);
      visit(launch, context, begin, end);
      if (stream_) store_fence();
      check_fault(context, debug_);
    });
  }

 private:
  void prepare(Scratch& local, char* shared, Context& context) const {
    context.slots = reinterpret_cast<char**>(local.take(sizeof(char*) * static_cast<size_t>(layout_.slots())));
    layout_.point(context.slots, shared, local.take(layout_.local_bytes()));
  }

  void choose_blocks() {
    const int rank = nest_.kept;
    tile_.fill(1);
    blocks_ = nest_.kept_size() > 0;
    if (rank == 0 || blocks_ == 0) return;
    const int column = rank - 1;
    bool staged = false;
    int transposed = -1;
    for (const Access& a : nest_.accesses) {
      const int64_t stride = a.strides[column];
      staged |= !a.is_window() || (stride != 1 && !(stride == 0 && a.type == Access::READ));
      if (a.is_window() && stride != 0 && stride != 1) {
        for (int d = 0; d < column; ++d) {
          if (a.strides[d] == 1 && nest_.extents[d] >= 8) transposed = d;
        }
      }
    }
    const int64_t columns = nest_.extents[column];
    if (transposed >= 0) {
      row_ = transposed;
      tile_[column] = std::min(columns, kTransposeTile);
      tile_[row_] = std::min(nest_.extents[row_], kStagedBlock / tile_[column]);
      if (tile_[column] == kTransposeTile) tile_[row_] = std::min(tile_[row_], kTransposeTile);
    } else if (columns < kShortRow && rank > 1) {
      row_ = column - 1;
      if (nest_.extents[row_] * columns < kStagedBlock / 4) {
        for (int d = 0; d < column - 1; ++d) {
          if (nest_.extents[d] > nest_.extents[row_]) row_ = d;
        }
      }
      tile_[column] = columns;
      tile_[row_] = std::min(nest_.extents[row_], kStagedBlock / columns);
    } else {
      tile_[column] = std::min(columns, staged ? kStagedBlock : kDirectBlock);
    }
    for (int d = 0; d < rank; ++d) {
      counts_[d] = (nest_.extents[d] + tile_[d] - 1) / tile_[d];
      blocks_ *= counts_[d];
    }
  }

  void visit(const Launch& launch, Context& context, int64_t begin, int64_t end) const {
    const int rank = nest_.kept;
    std::array<int64_t, kMaxDims> at{};  // in blocks
    int64_t rest = begin;
    for (int d = rank - 1; d > 0 && rest; --d) {
      at[d] = rest % counts_[d];
      rest /= counts_[d];
    }
    at[0] = rest;
    int64_t small_offsets[16];
    std::vector<int64_t> large_offsets;
    int64_t* offsets = small_offsets;
    if (nest_.accesses.size() > 16) {
      large_offsets.resize(nest_.accesses.size());
      offsets = large_offsets.data();
    }
    for (int64_t block = begin; block < end; ++block) {
      for (size_t a = 0; a < nest_.accesses.size(); ++a) {
        int64_t offset = 0;
        for (int d = 0; d < rank; ++d) offset += at[d] * tile_[d] * nest_.accesses[a].strides[d];
        offsets[a] = offset;
      }
      BlockShape shape;
      if (rank) shape.columns = std::min(tile_[rank - 1], nest_.extents[rank - 1] - at[rank - 1] * tile_[rank - 1]);
      if (row_ >= 0) shape.rows = std::min(tile_[row_], nest_.extents[row_] - at[row_] * tile_[row_]);
      feeds_.before(launch, isa_, context.slots, offsets, 0, shape);
      body_.run(isa_, context, shape.size(), stream_);
      feeds_.after(isa_, context.slots, 0, shape);
      for (int d = rank - 1; d >= 0; --d) {
        if (++at[d] < counts_[d]) break;
        at[d] = 0;
      }
    }
  }

  const Isa& isa_;
  std::string debug_;
  Graph graph_;
  Nest nest_;
  FrameLayout layout_;
  Feeds feeds_;
  Uniforms uniforms_;
  Segment body_;
  int row_ = -1;  // dimension along the rows of a block
  std::array<int64_t, kMaxDims> tile_{}, counts_{};
  int64_t blocks_ = 0;
  double block_cost_ = 0;  // nanoseconds
  bool single_ = false;    // one block whose windows are used in place
  bool small_ = false, stream_ = false;
};

}  // namespace

std::unique_ptr<Kernel> prepare_map(const BoundInstruction& instruction) {
  return std::make_unique<MapKernel>(instruction);
}

}  // namespace neuron::engine
