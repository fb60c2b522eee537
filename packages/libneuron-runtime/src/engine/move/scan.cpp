// SCAN: running sums, products, minima and maxima along the last dimension, one element after the other.
#include <algorithm>

#include "engine/combine.h"
#include "engine/element.h"
#include "engine/move/move.h"
#include "engine/pool.h"

namespace neuron::engine {
namespace {

constexpr int64_t kSide = 256;           // lines that run side by side when they are neighbours in memory
constexpr double kTaskElements = 16384;  // worth a thread of its own

class ScanKernel final : public Kernel {
 public:
  explicit ScanKernel(const BoundInstruction& i)
      : in_(i.windows[0]), out_(i.windows[1]), combine_(static_cast<Combine>(i.params[0])), reverse_(i.params[1] != 0), rank_(i.rank - 1),
        extents_(i.extents), length_(i.rank ? i.extents[i.rank - 1] : 1) {
    for (int d = 0; d < rank_; ++d) {
      tile_[d] = 1;
      if (in_.strides[d] == 1 && out_.strides[d] == 1 && extents_[d] > 1) side_ = d;
    }
    if (side_ >= 0) tile_[side_] = std::min(extents_[side_], kSide);
    for (int d = 0; d < rank_; ++d) lines_ *= (extents_[d] + tile_[d] - 1) / tile_[d];
  }

  void run(const Launch& launch) const override {
    if (lines_ == 0 || length_ == 0) return;
    with_dtype(in_.dtype, [&](auto in) {
      with_dtype(out_.dtype, [&](auto out) {
        with_combine(combine_, [&](auto combine) { this->run<decltype(in), decltype(out), decltype(combine)::value>(launch); });
      });
    });
  }

 private:
  template <class I, class O, Combine C>
  void run(const Launch& launch) const {
    const auto* in = reinterpret_cast<const typename I::Stored*>(launch.buffers[in_.buffer]) + in_.offset;
    auto* out = reinterpret_cast<typename O::Stored*>(launch.buffers[out_.buffer]) + out_.offset;
    const int64_t side = side_ < 0 ? 1 : tile_[side_];
    const double cost = static_cast<double>(length_ * side);
    parallel_for(lines_, static_cast<int64_t>(std::max(1.0, kTaskElements / cost)), [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        int64_t rest = line, from = 0, to = 0, width = 1;
        for (int d = rank_ - 1; d >= 0; --d) {
          const int64_t count = (extents_[d] + tile_[d] - 1) / tile_[d], at = rest % count * tile_[d];
          rest /= count;
          from += at * in_.strides[d];
          to += at * out_.strides[d];
          if (d == side_) width = std::min(tile_[d], extents_[d] - at);
        }
        scan<I, O, C>(in + from, out + to, width);
      }
    });
  }

  template <class I, class O, Combine C>
  void scan(const typename I::Stored* in, typename O::Stored* out, int64_t width) const {
    using R = typename I::Register;
    const int64_t step = rank_ >= 0 ? in_.strides[rank_] : 1, out_step = rank_ >= 0 ? out_.strides[rank_] : 1;
    const int64_t first = reverse_ ? length_ - 1 : 0, direction = reverse_ ? -1 : 1;
    R acc[kSide];
    for (int64_t k = 0; k < length_; ++k) {
      const auto* x = in + (first + k * direction) * step;
      auto* y = out + (first + k * direction) * out_step;
      for (int64_t c = 0; c < width; ++c) {
        acc[c] = k == 0 ? I::get(x[c]) : combined<C>(acc[c], I::get(x[c]));
        y[c] = O::put(static_cast<typename O::Register>(acc[c]));
      }
    }
  }

  Window in_, out_;
  Combine combine_;
  bool reverse_;
  int rank_, side_ = -1;  // dimensions before the scanned one; the one along which lines are neighbours
  std::array<int64_t, kMaxDims> extents_, tile_{};
  int64_t length_, lines_ = 1;
};

}  // namespace

std::unique_ptr<Kernel> prepare_scan(const BoundInstruction& instruction) { return std::make_unique<ScanKernel>(instruction); }

}  // namespace neuron::engine
