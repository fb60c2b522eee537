// SCAN: running sums, products, minima and maxima along the last dimension, one element after the other.
#include <algorithm>

#include "engine/combine.h"
#include "engine/element.h"
#include "engine/isa.h"
#include "engine/move/move.h"
#include "engine/pool.h"

namespace neuron::engine {
namespace {

constexpr int64_t kSide = 256;           // lines that run side by side when they are neighbours in memory
constexpr double kTaskElements = 16384;  // worth a thread of its own

class ScanKernel final : public Kernel {
 public:
  explicit ScanKernel(const BoundInstruction& i)
      : isa_(isa()),
        in_(i.windows[0]),
        out_(i.windows[1]),
        combine_(static_cast<Combine>(i.params[0])),
        reverse_(i.params[1] != 0),
        rank_(i.rank - 1),
        extents_(i.extents),
        length_(i.rank ? i.extents[i.rank - 1] : 1) {
    for (int d = 0; d < rank_; ++d) {
      tile_[d] = 1;
      if (in_.strides[d] == 1 && out_.strides[d] == 1 && extents_[d] > 1) side_ = d;
    }
    together_ = side_ < 0 && rank_ >= 0 && in_.dtype == out_.dtype &&
                (in_.dtype == Dtype::FP32 || in_.dtype == Dtype::INT32) && in_.strides[rank_] == 1 &&
                out_.strides[rank_] == 1 && combine_ != Combine::SET;
    if (side_ >= 0) tile_[side_] = std::min(extents_[side_], kSide);
    for (int d = 0; d < rank_; ++d) lines_ *= (extents_[d] + tile_[d] - 1) / tile_[d];
  }

  void run(const Launch& launch) const override {
    if (lines_ == 0 || length_ == 0) return;
    if (together_) {
      const int64_t groups = (lines_ + isa_.scan_lines - 1) / isa_.scan_lines;
      const double cost = static_cast<double>(length_ * isa_.scan_lines);
      parallel_for(groups, static_cast<int64_t>(std::max(1.0, 2 * kTaskElements / cost)),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t g = begin; g < end; ++g) scan_together(launch, g * isa_.scan_lines);
                   });
      return;
    }
    with_kind(in_.dtype, [&](auto zero) {
      using R = decltype(zero);
      with_combine(combine_, [&](auto combine) { this->run<R, decltype(combine)::value>(launch); });
    });
  }

 private:
  // Lines `first` and following, side by side in registers.
  void scan_together(const Launch& launch, int64_t first) const {
    const char* in[64];
    char* out[64];
    const int count = static_cast<int>(std::min<int64_t>(isa_.scan_lines, lines_ - first));
    for (int i = 0; i < count; ++i) {
      int64_t rest = first + i, from = in_.offset, to = out_.offset;
      for (int d = rank_ - 1; d >= 0; --d) {
        const int64_t at = rest % extents_[d];
        rest /= extents_[d];
        from += at * in_.strides[d];
        to += at * out_.strides[d];
      }
      in[i] = static_cast<const char*>(launch.buffers[in_.buffer]) + from * 4;
      out[i] = static_cast<char*>(launch.buffers[out_.buffer]) + to * 4;
    }
    isa_.scan[static_cast<int>(combine_)][in_.dtype == Dtype::INT32](in, out, count, length_, reverse_);
  }

  // Reading, combining and writing are compiled apart from each other: their product over dtypes would be 500
  // functions.
  template <class R>
  using Read = void (*)(const std::byte* base, int64_t first, int64_t stride, int64_t count, R* to);
  template <class R>
  using Write = void (*)(const R* from, int64_t count, std::byte* base, int64_t first, int64_t stride);

  template <class F>
  static void with_kind(Dtype dtype, F&& f) {
    switch (kind_of(dtype)) {
      case Kind::F32:
        return f(float{});
      case Kind::I32:
        return f(int32_t{});
      case Kind::I64:
        return f(int64_t{});
    }
  }

  template <class R>
  static Read<R> reader(Dtype dtype) {
    return with_dtype(dtype, [](auto element) -> Read<R> {
      using E = decltype(element);
      return [](const std::byte* base, int64_t first, int64_t stride, int64_t count, R* to) {
        const auto* x = reinterpret_cast<const typename E::Stored*>(base) + first;
        for (int64_t i = 0; i < count; ++i) to[i] = static_cast<R>(E::get(x[i * stride]));
      };
    });
  }

  template <class R>
  static Write<R> writer(Dtype dtype) {
    return with_dtype(dtype, [](auto element) -> Write<R> {
      using E = decltype(element);
      return [](const R* from, int64_t count, std::byte* base, int64_t first, int64_t stride) {
        auto* y = reinterpret_cast<typename E::Stored*>(base) + first;
        for (int64_t i = 0; i < count; ++i) y[i * stride] = E::put(static_cast<typename E::Register>(from[i]));
      };
    });
  }

  template <class R, Combine C>
  void run(const Launch& launch) const {
    const auto* in = static_cast<const std::byte*>(launch.buffers[in_.buffer]);
    auto* out = static_cast<std::byte*>(launch.buffers[out_.buffer]);
    const Read<R> read = reader<R>(in_.dtype);
    const Write<R> write = writer<R>(out_.dtype);
    const int64_t side = side_ < 0 ? 1 : tile_[side_];
    const double cost = static_cast<double>(length_ * side);
    parallel_for(lines_, static_cast<int64_t>(std::max(1.0, kTaskElements / cost)), [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        int64_t rest = line, from = in_.offset, to = out_.offset, width = 1;
        for (int d = rank_ - 1; d >= 0; --d) {
          const int64_t count = (extents_[d] + tile_[d] - 1) / tile_[d], at = rest % count * tile_[d];
          rest /= count;
          from += at * in_.strides[d];
          to += at * out_.strides[d];
          if (d == side_) width = std::min(tile_[d], extents_[d] - at);
        }
        const int64_t step = (reverse_ ? -1 : 1) * (rank_ >= 0 ? in_.strides[rank_] : 1);
        const int64_t out_step = (reverse_ ? -1 : 1) * (rank_ >= 0 ? out_.strides[rank_] : 1);
        const int64_t last = reverse_ ? length_ - 1 : 0;  // of the scanned dimension: where the scan begins
        from += last * (rank_ >= 0 ? in_.strides[rank_] : 1);
        to += last * (rank_ >= 0 ? out_.strides[rank_] : 1);
        R x[kSide], acc[kSide];
        if (width > 1) {
          for (int64_t k = 0; k < length_; ++k) {
            read(in, from + k * step, 1, width, x);
            for (int64_t c = 0; c < width; ++c) acc[c] = k == 0 ? x[c] : combined<C>(acc[c], x[c]);
            write(acc, width, out, to + k * out_step, 1);
          }
        } else {
          for (int64_t k = 0; k < length_; k += kSide) {
            const int64_t count = std::min(kSide, length_ - k);
            read(in, from + k * step, step, count, x);
            for (int64_t i = 0; i < count; ++i) {
              acc[i] = k + i == 0 ? x[i] : combined<C>(i == 0 ? acc[kSide - 1] : acc[i - 1], x[i]);
            }
            write(acc, count, out, to + k * out_step, out_step);
          }
        }
      }
    });
  }

  const Isa& isa_;
  Window in_, out_;
  Combine combine_;
  bool reverse_;
  bool together_ = false;  // several lines of 4-byte numbers at a time
  int rank_, side_ = -1;   // dimensions before the scanned one; the one along which lines are neighbours
  std::array<int64_t, kMaxDims> extents_, tile_{};
  int64_t length_, lines_ = 1;
};

}  // namespace

std::unique_ptr<Kernel> prepare_scan(const BoundInstruction& instruction) {
  return std::make_unique<ScanKernel>(instruction);
}

}  // namespace neuron::engine
