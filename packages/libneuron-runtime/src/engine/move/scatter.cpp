// SCATTER. Updates that meet at one element combine in the order of the indices, for any number of threads: work is
// divided by destination, and only where different destinations are known to be different elements.
#include <algorithm>
#include <cstdlib>

#include "engine/combine.h"
#include "engine/element.h"
#include "engine/move/indices.h"
#include "engine/move/move.h"
#include "engine/pool.h"

namespace neuron::engine {
namespace {

constexpr double kTaskElements = 16384;  // worth a thread of its own
constexpr int kMostTasks = 16;           // each one reads all indices

struct Dimension {
  int64_t extent, out, update;  // strides
};

class ScatterKernel final : public Kernel {
 public:
  explicit ScatterKernel(const BoundInstruction& i)
      : out_(i.windows[0]), updates_(i.windows[2]), combine_(static_cast<Combine>(i.params[4])), indices_(i) {
    for (int d = static_cast<int>(i.params[0]); d < i.rank; ++d) {
      elements_ *= i.extents[d];
      if (i.extents[d] != 1) window_[rank_++] = {i.extents[d], out_.strides[d], updates_.strides[d]};
    }
    int kept = 0;
    for (int d = 0; d < rank_; ++d) {
      const Dimension& x = window_[d];
      if (kept > 0 && window_[kept - 1].out == x.out * x.extent && window_[kept - 1].update == x.update * x.extent) {
        window_[kept - 1] = {window_[kept - 1].extent * x.extent, x.out, x.update};
      } else {
        window_[kept++] = x;
      }
    }
    rank_ = kept;
    separate_ = is_separate();
  }

  void run(const Launch& launch) const override {
    if (indices_.count() == 0 || elements_ == 0) return;
    with_dtype(out_.dtype, [&](auto element) {
      with_combine(combine_, [&](auto combine) { this->run<decltype(element), decltype(combine)::value>(launch); });
    });
  }

 private:
  // Whether (index, position in the window) names each element once: strides, sorted, must each step over all smaller
  // ones.
  bool is_separate() const {
    std::vector<std::pair<int64_t, int64_t>> steps;  // stride, last multiple
    for (int j = 0; j < indices_.components(); ++j) {
      if (indices_.limit(j) > 0) steps.emplace_back(std::abs(indices_.stride(j)), indices_.limit(j));
    }
    for (int d = 0; d < rank_; ++d) steps.emplace_back(std::abs(window_[d].out), window_[d].extent - 1);
    std::sort(steps.begin(), steps.end());
    int64_t span = 0;
    for (const auto& [stride, last] : steps) {
      if (stride <= span) return false;
      span += stride * last;
    }
    return true;
  }

  template <class E, Combine C>
  void run(const Launch& launch) const {
    auto* out = reinterpret_cast<typename E::Stored*>(launch.buffers[out_.buffer]) + out_.offset;
    const auto* updates =
        reinterpret_cast<const typename E::Stored*>(launch.buffers[updates_.buffer]) + updates_.offset;
    const double work = static_cast<double>(indices_.count()) * static_cast<double>(elements_ + 4);
    int64_t tasks =
        separate_ ? std::min<int64_t>({static_cast<int64_t>(work / kTaskElements), threads(), kMostTasks}) : 1;
    const int64_t inner = rank_ ? window_[rank_ - 1].extent : 1;
    const bool by_window = inner >= 64 * tasks;
    const int64_t values = indices_.components() ? indices_.limit(0) + 1 : 1;
    if (!by_window) tasks = std::min(tasks, values);
    if (tasks <= 1) {
      indices_.each(launch, 0, indices_.count(), true, [&](const Indices::Entry& e) {
        if (!e.skip) apply<E, C>(out + e.start + e.position[0], updates + e.position[1], 0, inner);
      });
      return;
    }
    parallel_for(tasks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t all = by_window ? inner : values;
        const int64_t low = all * task / tasks, high = all * (task + 1) / tasks;
        indices_.each(launch, 0, indices_.count(), true, [&](const Indices::Entry& e) {
          if (e.skip) return;
          if (by_window) {
            apply<E, C>(out + e.start + e.position[0], updates + e.position[1], low, high);
          } else if (e.first >= low && e.first < high) {
            apply<E, C>(out + e.start + e.position[0], updates + e.position[1], 0, inner);
          }
        });
      }
    });
  }

  // One update; of the innermost dimension only elements low to high.
  template <class E, Combine C>
  void apply(typename E::Stored* out, const typename E::Stored* update, int64_t low, int64_t high) const {
    std::array<int64_t, kMaxDims> at{};
    const Dimension inner = rank_ ? window_[rank_ - 1] : Dimension{1, 1, 1};
    for (;;) {
      typename E::Stored* o = out;
      const typename E::Stored* u = update;
      for (int d = 0; d + 1 < rank_; ++d) o += at[d] * window_[d].out, u += at[d] * window_[d].update;
      if (inner.out == 1 && inner.update == 1) {
        row<E, C>(o + low, u + low, high - low);
      } else {
        for (int64_t k = low; k < high; ++k) one<E, C>(o[k * inner.out], u[k * inner.update]);
      }
      int d = rank_ - 2;
      for (; d >= 0; --d) {
        if (++at[d] < window_[d].extent) break;
        at[d] = 0;
      }
      if (d < 0) return;
    }
  }
  // Neighbouring elements of both windows, which do not overlap.
  template <class E, Combine C>
  static void row(typename E::Stored* __restrict out, const typename E::Stored* __restrict update, int64_t n) {
    for (int64_t k = 0; k < n; ++k) one<E, C>(out[k], update[k]);
  }
  template <class E, Combine C>
  static void one(typename E::Stored& out, typename E::Stored update) {
    if constexpr (C == Combine::SET) {
      out = update;
    } else {
      out = E::put(combined<C>(E::get(out), E::get(update)));
    }
  }

  Window out_, updates_;
  Combine combine_;
  Indices indices_;
  std::array<Dimension, kMaxDims> window_{};
  int rank_ = 0;
  int64_t elements_ = 1;
  bool separate_ = false;
};

}  // namespace

std::unique_ptr<Kernel> prepare_scatter(const BoundInstruction& instruction) {
  return std::make_unique<ScatterKernel>(instruction);
}

}  // namespace neuron::engine
