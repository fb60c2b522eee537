#include "engine/move/region.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

namespace neuron::engine {
namespace {

constexpr int64_t kBlockElements = 16384;
constexpr int64_t kTransposeSide = 64;

}  // namespace

Region::Region(const BoundInstruction& instruction, const Isa& isa, int first, int count, const Window& from,
               const Window& to)
    : isa_(&isa), bytes_(bytes_of(to.dtype)) {
  struct Dimension {
    int64_t extent, from, to;
  };
  Dimension dimensions[kMaxDims];
  for (int d = first; d < first + count; ++d) {
    elements_ *= instruction.extents[d];
    if (instruction.extents[d] != 1) dimensions[rank_++] = {instruction.extents[d], from.strides[d], to.strides[d]};
  }
  if (elements_ == 0) {
    blocks_ = 0;
    rank_ = 0;
    return;
  }
  std::stable_sort(dimensions, dimensions + rank_,
                   [](const Dimension& x, const Dimension& y) { return std::abs(x.to) > std::abs(y.to); });
  int kept = 0;
  for (int d = 0; d < rank_; ++d) {
    if (kept > 0 && dimensions[kept - 1].from == dimensions[d].from * dimensions[d].extent &&
        dimensions[kept - 1].to == dimensions[d].to * dimensions[d].extent) {
      dimensions[kept - 1] = {dimensions[kept - 1].extent * dimensions[d].extent, dimensions[d].from, dimensions[d].to};
    } else {
      dimensions[kept++] = dimensions[d];
    }
  }
  rank_ = kept;
  for (int d = 0; d < rank_; ++d) {
    extents_[d] = dimensions[d].extent;
    from_[d] = dimensions[d].from;
    to_[d] = dimensions[d].to;
    tile_[d] = 1;
  }
  contiguous_ = rank_ == 0 || (rank_ == 1 && from_[0] == 1 && to_[0] == 1);
  int64_t block = 1;
  if (rank_ > 0) {
    const int column = rank_ - 1;
    for (int d = 0; d < column; ++d) {
      if (from_[d] == 1 && from_[column] != 1 && extents_[d] > 4) row_ = d;
    }
    if (row_ >= 0) {
      tile_[column] = std::min(extents_[column], kTransposeSide);
      tile_[row_] = std::min(extents_[row_], kTransposeSide);
    } else {
      tile_[column] = std::min(extents_[column], rank_ == 1 ? 4 * kBlockElements : kBlockElements);
      if (column > 0) {
        row_ = column - 1;
        tile_[row_] = std::clamp(kBlockElements / tile_[column], int64_t{1}, extents_[row_]);
      }
    }
    for (int d = 0; d < rank_; ++d) {
      counts_[d] = (extents_[d] + tile_[d] - 1) / tile_[d];
      blocks_ *= counts_[d];
      block *= tile_[d];
    }
  }
  block_bytes_ = block * bytes_;
}

void Region::copy(const char* from, char* to, int64_t first_block, int64_t last_block, bool stream) const {
  const auto copy = isa_->copy[std::countr_zero(static_cast<unsigned>(bytes_))];
  for (int64_t block = first_block; block < last_block; ++block) {
    int64_t rest = block, from_offset = 0, to_offset = 0, rows = 1, columns = 1;
    for (int d = rank_ - 1; d >= 0; --d) {
      const int64_t at = rest % counts_[d] * tile_[d];
      rest /= counts_[d];
      from_offset += at * from_[d];
      to_offset += at * to_[d];
      if (d == rank_ - 1) columns = std::min(tile_[d], extents_[d] - at);
      if (d == row_) rows = std::min(tile_[d], extents_[d] - at);
    }
    const char* source = from + from_offset * bytes_;
    char* target = to + to_offset * bytes_;
    if (stream && rank_ == 1 && from_[0] == 1 && to_[0] == 1) {
      isa_->stream(target, source, static_cast<size_t>(columns * bytes_));
    } else {
      copy(target, row_ < 0 ? 0 : to_[row_], rank_ ? to_[rank_ - 1] : 1, source, row_ < 0 ? 0 : from_[row_],
           rank_ ? from_[rank_ - 1] : 1, rows, columns);
    }
  }
}

}  // namespace neuron::engine
