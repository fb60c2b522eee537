#include "program/bind.h"

#include <algorithm>
#include <limits>

#include "base/environment.h"

namespace neuron {

using schema::Rule;

namespace {

constexpr int64_t kMaxFreeBytes = 65536;
constexpr size_t kMostText = 1024;
constexpr uint64_t kDefaultBudget = uint64_t{1} << 40;

using ll = long long;

// Checks of one instruction.
class InstructionBinder {
 public:
  InstructionBinder(const Program& program, size_t number, std::span<const int64_t> values,
                    std::span<const int64_t> sizes, BoundInstruction& bound)
      : p_(program), n_(number), r_(program.instructions()[number]), values_(values), sizes_(sizes), b_(bound) {}

  // Returns the number of elements visited, saturated.
  uint64_t run() {
    fill();
    const uint64_t elements = count();
    const auto uses = p_.uses_of(r_);
    strides();
    if (b_.opcode == Opcode::TILE) phases();
    std::vector<size_t> unreached;
    for (size_t k = 0; k < uses.size(); ++k) {
      if (uses[k] & kTable) continue;
      if (!window(k)) unreached.push_back(k);
      if (uses[k] & kWrites) written(k);
    }
    if (b_.opcode == Opcode::TENSOR_TENSOR) partition();
    const uint64_t visited = weighted(elements);
    settle(unreached);
    return visited;
  }

 private:
  int64_t value(uint32_t index) const { return values_[index]; }

  // Trailing dimensions that are reduced or multiplied away.
  int inner_dimensions() const {
    return b_.opcode == Opcode::MATMUL ? 1 : b_.opcode == Opcode::TILE ? static_cast<int>(b_.params[1]) : 0;
  }

  // The elements of the loop, saturated. With K = 0 a MATMUL still runs its epilogue and stores zeros; with no reduced
  // elements a TILE still stores its rows: what remains empty then counts as one.
  uint64_t count() {
    const int inner = inner_dimensions();
    uint64_t elements = 1;
    for (int d = 0; d < b_.rank; ++d) {
      if (b_.extents[d] < 0) {
        refuse(Rule::extents, "instruction %zu: extent %d is %lld, expected at least 0", n_, d,
               static_cast<ll>(b_.extents[d]));
      }
      if (b_.extents[d] == 0) (d < b_.rank - inner ? idle_ : empty_) = true;
      const uint64_t extent = std::max<uint64_t>(static_cast<uint64_t>(b_.extents[d]), 1);
      if (__builtin_mul_overflow(elements, extent, &elements)) elements = std::numeric_limits<uint64_t>::max();
    }
    if (idle_) return 0;
    if (!empty_) return elements;
    elements = 1;
    for (int d = 0; d < b_.rank - inner; ++d) {
      if (__builtin_mul_overflow(elements, static_cast<uint64_t>(b_.extents[d]), &elements))
        elements = std::numeric_limits<uint64_t>::max();
    }
    return elements;
  }

  // Numbers that no rule bounds, because nothing is reached by them, become small ones with the same meaning, so that
  // the engine may compute with all of them.
  void settle(const std::vector<size_t>& unreached) {
    const int first = idle_ ? 0 : empty_ ? b_.rank - inner_dimensions() : b_.rank;
    for (int d = first; d < b_.rank; ++d) b_.extents[d] = std::min<int64_t>(b_.extents[d], 2);
    for (const size_t k : unreached) {
      b_.windows[k].offset = 0;
      for (int64_t& stride : b_.windows[k].strides) stride = stride != 0;
    }
    for (Window& w : b_.windows) {
      if (gathers() && !idle_ && &w - b_.windows.data() >= 3) continue;  // tables
      for (int64_t& stride : w.strides) {
        if (stride > kMaxBytes || stride < -kMaxBytes) stride = 0;
      }
    }
  }

  bool gathers() const { return b_.opcode == Opcode::GATHER || b_.opcode == Opcode::SCATTER; }

  void fill() {
    b_.opcode = r_.opcode;
    b_.flags = r_.flags;
    b_.rank = static_cast<int>(r_.rank);
    b_.extents.fill(0);
    for (int d = 0; d < b_.rank; ++d) b_.extents[d] = value(r_.extents[d]);
    const schema::OpcodeInfo& info = *schema::find(r_.opcode);
    for (size_t k = 0; k < 6; ++k) {
      b_.params[k] =
          info.params[k].type == schema::ParamType::VALUE ? value(r_.params[k]) : static_cast<int64_t>(r_.params[k]);
    }
    const auto patterns = p_.patterns_of(r_);
    b_.windows.resize(patterns.size());
    for (size_t k = 0; k < patterns.size(); ++k) {
      const schema::PatternRecord& pattern = patterns[k];
      Window& w = b_.windows[k];
      w = {.buffer = pattern.buffer,
           .dtype = pattern.dtype,
           .flags = pattern.flags,
           .offset = value(pattern.offset),
           .strides = {}};
      for (size_t d = 0; d < schema::kMaxDims; ++d)
        w.strides[d] = pattern.strides[d] == schema::kNone ? 0 : value(pattern.strides[d]);
    }
    const auto micro = p_.micro_of(r_);
    b_.micro.resize(micro.size());
    for (size_t k = 0; k < micro.size(); ++k) {
      const schema::MicroRecord& m = micro[k];
      b_.micro[k] = {m.op, m.kind, m.from, m.source, m.dst, m.a, m.b, m.c, m.imm};
      if (m.source == ImmSource::VALUE) {
        const int64_t number = value(static_cast<uint32_t>(m.imm));
        b_.micro[k].imm = m.kind == Kind::F32 ? __builtin_bit_cast(uint64_t, static_cast<double>(number))
                                              : static_cast<uint64_t>(number);
      }
    }
    b_.debug = p_.text(r_.debug, kMostText);  // every instruction keeps a copy, and they may share a text
  }

  // Trailing loop dimensions that a window's elements do not depend on, so that an extent of 0 along them reaches
  // memory all the same.
  int ignored_dimensions(size_t k) const {
    switch (b_.opcode) {
      case Opcode::TILE:
        return per_element_[k] ? 0 : static_cast<int>(b_.params[1]);
      case Opcode::MATMUL:
        return k >= 2 ? 1 : 0;
      case Opcode::GATHER:
      case Opcode::SCATTER:
        return k == 1 ? b_.rank - static_cast<int>(b_.params[0]) : 0;
      default:
        return 0;
    }
  }

  void outside(size_t k, __int128 low, __int128 high) const {
    const auto clip = [](__int128 x) {
      return static_cast<ll>(std::clamp<__int128>(x, std::numeric_limits<ll>::min(), std::numeric_limits<ll>::max()));
    };
    const Window& w = b_.windows[k];
    refuse(Rule::window,
           "instruction %zu: pattern %zu reaches elements %lld to %lld of buffer %u, which has %lld bytes of %d each",
           n_, k, clip(low), clip(high), w.buffer, static_cast<ll>(sizes_[w.buffer]), bytes_of(w.dtype));
  }

  // False for a window that is never reached.
  bool window(size_t k) const {
    const Window& w = b_.windows[k];
    const int ignored = ignored_dimensions(k);
    __int128 low = w.offset, high = w.offset;
    const auto extend = [&](int64_t steps, int64_t stride) {
      constexpr __int128 kFar = static_cast<__int128>(1) << 100;  // far outside; a sum of a few does not overflow
      const __int128 reach = std::clamp(static_cast<__int128>(steps) * stride, -kFar, kFar);
      (reach < 0 ? low : high) += reach;
    };
    for (int d = 0; d < b_.rank; ++d) {
      if (b_.extents[d] == 0 && d < b_.rank - ignored) return false;
      if (b_.extents[d] > 0) extend(b_.extents[d] - 1, w.strides[d]);
    }
    if (gathers() && k == 0) {
      for (int64_t j = 0; j < b_.params[1]; ++j)
        extend(std::max<int64_t>(b_.windows[4].strides[j], 0), b_.windows[3].strides[j]);
    }
    if (gathers() && k == 1) {
      if (b_.params[1] == 0) return false;
      extend(b_.params[1] - 1, b_.params[2]);
    }
    if (low < 0 || (high + 1) * bytes_of(w.dtype) > sizes_[w.buffer]) outside(k, low, high);
    return true;
  }

  void written(size_t k) const {
    const Window& w = b_.windows[k];
    int first = 0, last = b_.rank - ignored_dimensions(k);
    if (b_.opcode == Opcode::SCATTER) first = static_cast<int>(b_.params[0]);
    if (idle_ || (empty_ && last == b_.rank)) return;
    for (int d = first; d < last; ++d) {
      if (w.strides[d] == 0 && b_.extents[d] > 1) {
        refuse(Rule::written_once,
               "instruction %zu: pattern %zu is written with stride 0 along dimension %d of %lld elements", n_, k, d,
               static_cast<ll>(b_.extents[d]));
      }
    }
  }

  void zero_stride(Rule rule, size_t k, int d) const {
    if (b_.windows[k].strides[d] != 0) {
      refuse(rule, "instruction %zu: the stride of pattern %zu along dimension %d is %lld, expected 0", n_, k, d,
             static_cast<ll>(b_.windows[k].strides[d]));
    }
  }

  void strides() const {
    if (b_.opcode == Opcode::MATMUL) {
      const int m = b_.rank - 3;
      zero_stride(Rule::matmul_strides, 0, m + 1);
      zero_stride(Rule::matmul_strides, 1, m);
      for (size_t k = 2; k < b_.windows.size(); ++k) zero_stride(Rule::matmul_strides, k, m + 2);
    }
    if (gathers()) {
      const int batch = static_cast<int>(b_.params[0]);
      for (int d = 0; d < batch; ++d) zero_stride(Rule::gather_strides, 0, d);
      for (int d = batch; d < b_.rank; ++d) zero_stride(Rule::gather_strides, 1, d);
      if (b_.opcode == Opcode::GATHER && static_cast<IndexMode>(b_.params[3]) == IndexMode::CLAMP && !idle_) {
        for (int64_t j = 0; j < b_.params[1]; ++j) {
          if (b_.windows[4].strides[j] < 0) {
            refuse(
                Rule::gather_strides,
                "instruction %zu: the largest legal index of component %lld is %lld, so that nothing can be clamped to",
                n_, static_cast<ll>(j), static_cast<ll>(b_.windows[4].strides[j]));
          }
        }
      }
    }
  }

  // Whether a window moves along some reduced dimension, and whether it moves along all that have several elements.
  // Dimensions of one element do not count; one without elements does, so that its windows, which may lie outside their
  // buffers, are per element and never read.
  std::pair<bool, bool> moves(const Window& w) const {
    bool some = false, all = true;
    for (int d = b_.rank - static_cast<int>(b_.params[1]); d < b_.rank; ++d) {
      if (b_.extents[d] == 1) continue;
      if (w.strides[d] != 0) some = true;
      if (w.strides[d] == 0 && b_.extents[d] > 1) all = false;
    }
    return {some, all};
  }

  // Leaves in per_element_ which windows of a TILE are visited element by element.
  void phases() {
    per_element_.assign(b_.windows.size(), true);
    if (b_.params[1] == 0) return;
    const int first_reduced = b_.rank - static_cast<int>(b_.params[1]);
    enum Phase : uint8_t { kUniform, kRow, kElement };
    Phase phase[schema::kMaxMicro] = {};
    for (size_t k = 0; k < b_.micro.size(); ++k) {
      const MicroOp& m = b_.micro[k];
      switch (m.op) {
        case Micro::LOAD:
          per_element_[m.a] = moves(b_.windows[m.a]).first;
          phase[m.dst] = per_element_[m.a] ? kElement : kRow;
          break;
        case Micro::CONST:
          phase[m.dst] = kUniform;
          break;
        case Micro::IOTA:
          phase[m.dst] = m.a >= first_reduced ? kElement : kRow;
          break;
        case Micro::RANDOM:
          phase[m.dst] = kElement;
          break;
        case Micro::STORE:
          store_phase(k, m, phase[m.a] == kElement, phase[m.a] == kRow);
          break;
        default: {
          if (m.op >= Micro::REDUCE_SUM && m.op <= Micro::REDUCE_ARGMIN) {
            phase[m.dst] = kRow;
            break;
          }
          const int args = schema::kMicros[static_cast<size_t>(m.op)].args;
          phase[m.dst] = phase[m.a];
          if (args >= 2) phase[m.dst] = std::max(phase[m.dst], phase[m.b]);
          if (args >= 3) phase[m.dst] = std::max(phase[m.dst], phase[m.c]);
        }
      }
    }
  }

  // A uniform register follows its pattern.
  void store_phase(size_t k, const MicroOp& m, bool element, bool row) {
    const auto [some, all] = moves(b_.windows[m.dst]);
    if ((element || (!row && some)) && !all) {
      refuse(Rule::phases,
             "instruction %zu, micro %zu: register %u is per element, but pattern %u does not move along a reduced "
             "dimension",
             n_, k, m.a, m.dst);
    }
    if (row && some) {
      refuse(Rule::phases,
             "instruction %zu, micro %zu: register %u is per row, but pattern %u moves along a reduced dimension", n_,
             k, m.a, m.dst);
    }
    per_element_[m.dst] = element || (!row && some);
  }

  void partition() const {
    for (size_t k = 0; k < b_.windows.size(); ++k) {
      const Window& w = b_.windows[k];
      const int64_t partition_bytes = sizes_[w.buffer] / kPartitions;
      if (w.strides[0] * static_cast<__int128>(bytes_of(w.dtype)) != partition_bytes) {
        refuse(Rule::partition,
               "instruction %zu: pattern %zu has partition stride %lld of %d bytes each, expected a partition of %lld "
               "bytes",
               n_, k, static_cast<ll>(w.strides[0]), bytes_of(w.dtype), static_cast<ll>(partition_bytes));
      }
      __int128 free_bytes = bytes_of(w.dtype);
      for (int d = 1; d < b_.rank; ++d) free_bytes = std::min<__int128>(free_bytes * b_.extents[d], kMaxFreeBytes + 1);
      if (free_bytes > kMaxFreeBytes && !idle_) {
        refuse(Rule::partition, "instruction %zu: pattern %zu has more than %lld bytes a partition", n_, k,
               static_cast<ll>(kMaxFreeBytes));
      }
    }
  }

  uint64_t weighted(uint64_t elements) const {
    uint64_t weight = gathers() ? std::max<uint64_t>(1, static_cast<uint64_t>(b_.params[1])) : 1;
    uint64_t result = 0;
    return __builtin_mul_overflow(elements, weight, &result) ? std::numeric_limits<uint64_t>::max() : result;
  }

  const Program& p_;
  const size_t n_;
  const schema::InstructionRecord& r_;
  const std::span<const int64_t> values_, sizes_;
  BoundInstruction& b_;
  bool idle_ = false;              // nothing is visited
  bool empty_ = false;             // nothing is reduced (TILE) or multiplied (MATMUL)
  std::vector<bool> per_element_;  // TILE: by window
};

}  // namespace

uint64_t element_budget() {
  static const uint64_t budget = static_cast<uint64_t>(
      environment_integer("NEURON_RT_MAX_ELEMENTS", 1, std::numeric_limits<int64_t>::max()).value_or(kDefaultBudget));
  return budget;
}

void bind_instruction(const Program& program, size_t number, std::span<const int64_t> values,
                      std::span<const int64_t> sizes, uint64_t& visited, BoundInstruction& bound) {
  const uint64_t elements = InstructionBinder(program, number, values, sizes, bound).run();
  if (__builtin_add_overflow(visited, elements, &visited) || visited > element_budget()) {
    refuse(Rule::budget, "instructions 0 to %zu visit more than %llu elements; NEURON_RT_MAX_ELEMENTS raises the limit",
           number, static_cast<unsigned long long>(element_budget()));
  }
}

}  // namespace neuron
