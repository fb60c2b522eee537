// The bind phase's rules, met by force: extents, strides and sizes are changed so that instructions run, with buffers
// that end where the last element does.
#include <algorithm>
#include <tuple>

#include "model.h"
#include "program/validate.h"

namespace neuron::fuzz {

namespace {

constexpr int64_t kMostElements = 8192;   // of one instruction
constexpr int64_t kMostReach = 32 << 10;  // bytes of one window
constexpr int64_t kPartitionBytes = 256;  // of SBUF and PSUM
constexpr int64_t kPartitions = 128;

class Numbers {
 public:
  Numbers(Model& model, Random& random) : m_(model), p_(model.p), random_(random), need_(p_.buffers.size()) {}

  void run() {
    evaluate();
    for (auto& guard : p_.guards) hold(guard);
    for (Node& node : m_.nodes) instruction(node);
    sizes();
    for (auto& io : p_.io) {
      for (uint32_t d = 0; d < io.rank; ++d) {
        if (number(io.dims[d]) < 0 || number(io.dims[d]) > 64) io.dims[d] = constant(m_, 3);
      }
    }
  }

 private:
  // A value that cannot be computed becomes a small constant.
  void evaluate() {
    for (auto& v : p_.values) {
      const int64_t a = v.a < numbers_.size() ? numbers_[v.a] : 0, b = v.b < numbers_.size() ? numbers_[v.b] : 0;
      __int128 result = 0;
      bool legal = true;
      const auto divide = [&] {
        legal = b != 0;
        if (!legal) return __int128{0};
        const __int128 quotient = static_cast<__int128>(a) / b;
        return quotient - (static_cast<__int128>(a) % b != 0 && (a < 0) != (b < 0));
      };
      switch (v.op) {
        case ValueOp::CONST:
          result = v.imm;
          break;
        case ValueOp::SLOT:
          result = m_.launch.slots[static_cast<size_t>(v.imm) % 8];
          break;
        case ValueOp::ADD:
          result = static_cast<__int128>(a) + b;
          break;
        case ValueOp::SUB:
          result = static_cast<__int128>(a) - b;
          break;
        case ValueOp::MUL:
          result = static_cast<__int128>(a) * b;
          break;
        case ValueOp::FLOORDIV:
          result = divide();
          break;
        case ValueOp::MOD:
          result = static_cast<__int128>(a) - divide() * b;
          break;
        case ValueOp::MAX:
          result = std::max(a, b);
          break;
        case ValueOp::MIN:
          result = std::min(a, b);
          break;
        case ValueOp::ALIGN: {
          const __int128 rest = (static_cast<__int128>(a) % v.imm + v.imm) % v.imm;
          result = rest == 0 ? static_cast<__int128>(a) : static_cast<__int128>(a) + v.imm - rest;
          break;
        }
      }
      if (!legal || result != static_cast<int64_t>(result)) {
        result = static_cast<int64_t>(random_.below(9));
        v = {ValueOp::CONST, 0, 0, 0, static_cast<int64_t>(result)};
      }
      numbers_.push_back(static_cast<int64_t>(result));
    }
  }

  // Values that were added meanwhile are constants.
  int64_t number(uint32_t index) const { return index < numbers_.size() ? numbers_[index] : p_.values[index].imm; }
  void set(uint32_t& index, int64_t wanted) { index = constant(m_, wanted); }

  void hold(schema::GuardRecord& guard) {
    const int64_t a = number(guard.a), b = number(guard.b);
    const bool holds = guard.op == GuardOp::EQ   ? a == b
                       : guard.op == GuardOp::NE ? a != b
                       : guard.op == GuardOp::LT ? a < b
                                                 : a <= b;
    if (!holds) guard.op = a < b ? GuardOp::LT : a == b ? GuardOp::LE : GuardOp::NE;
  }

  bool gathers(const Node& node) const {
    return node.record.opcode == Opcode::GATHER || node.record.opcode == Opcode::SCATTER;
  }

  void instruction(Node& node) {
    schema::InstructionRecord& i = node.record;
    extents(node);
    if (i.opcode == Opcode::MATMUL) {
      const uint32_t m = i.rank - 3;
      set(node.patterns[0].strides[m + 1], 0);
      set(node.patterns[1].strides[m], 0);
      for (size_t k = 2; k < node.patterns.size(); ++k) set(node.patterns[k].strides[m + 2], 0);
    }
    if (gathers(node)) {
      for (uint32_t d = 0; d < i.params[0]; ++d) set(node.patterns[0].strides[d], 0);
      for (uint32_t d = i.params[0]; d < i.rank; ++d) set(node.patterns[1].strides[d], 0);
      for (uint32_t j = 0; j < i.params[1]; ++j) {
        uint32_t& most = node.patterns[4].strides[j];
        if (number(most) > 16 || (number(most) < 0 && i.opcode == Opcode::GATHER)) set(most, 3);
        uint32_t& stride = node.patterns[3].strides[j];
        if (std::abs(number(stride)) > 64) set(stride, 5);
      }
      if (std::abs(number(i.params[2])) > 64) set(i.params[2], 1);
    }
    written_.assign(node.patterns.size(), false);
    if (i.opcode == Opcode::DMA || i.opcode == Opcode::SCAN) written_[1] = true;
    if (i.opcode == Opcode::GATHER) written_[2] = true;
    if (i.opcode == Opcode::SCATTER) written_[0] = true;
    for (const auto& m : node.micro) {
      if (m.op == Micro::STORE) written_[m.dst] = true;
    }
    if (i.opcode == Opcode::TENSOR_TENSOR) {
      for (auto& pattern : node.patterns) {
        set(pattern.strides[0], kPartitionBytes / bytes_of(pattern.dtype));
        for (uint32_t d = 1; d < i.rank; ++d) {
          if (std::abs(number(pattern.strides[d])) > 2) set(pattern.strides[d], 1);
        }
        if (number(pattern.offset) < 0 || number(pattern.offset) > 12) set(pattern.offset, 2);
      }
    }
    first_ignored_.assign(node.patterns.size(), i.rank);
    if (i.opcode == Opcode::TILE && i.params[1] > 0) phases(node);
    if (i.opcode == Opcode::MATMUL) std::fill(first_ignored_.begin() + 2, first_ignored_.end(), i.rank - 1);
    for (size_t k = 0; k < node.patterns.size(); ++k) {
      if (!gathers(node) || k < 3) window(node, k);
    }
  }

  void extents(Node& node) {
    schema::InstructionRecord& i = node.record;
    const bool chip = i.opcode == Opcode::TENSOR_TENSOR;
    for (;;) {
      int64_t product = 1;
      uint32_t* largest = nullptr;
      for (uint32_t d = 0; d < i.rank; ++d) {
        const int64_t e = number(i.extents[d]);
        if (e < 0) set(i.extents[d], 4);
        if (chip && d == 0 && e > kPartitions) set(i.extents[d], kPartitions);
        const int64_t now = number(i.extents[d]);
        if (!largest || now > number(*largest)) largest = &i.extents[d];
        product =
            now > kMostElements ? kMostElements + 1 : std::min(product * std::max<int64_t>(now, 1), kMostElements + 1);
      }
      // The free size of a partition stays within it.
      if (product <= (chip ? kPartitions * 8 : kMostElements)) return;
      set(*largest, number(*largest) > 70 ? 65 : number(*largest) / 2);
    }
  }

  // Strides of one pattern become those of a contiguous array over dimensions first to last.
  void dense(Node& node, size_t k, uint32_t first, uint32_t last) {
    int64_t stride = 1;
    for (uint32_t d = last; d-- > first;) {
      set(node.patterns[k].strides[d], stride);
      stride *= std::max<int64_t>(number(node.record.extents[d]), 1);
    }
  }

  void phases(Node& node) {
    const schema::InstructionRecord& i = node.record;
    const uint32_t reduced = i.rank - i.params[1];
    enum { kUniform, kRow, kElement } phase[schema::kMaxMicro] = {};
    const auto moves = [&](const schema::PatternRecord& pattern) {
      for (uint32_t d = reduced; d < i.rank; ++d) {
        if (number(i.extents[d]) != 1 && number(pattern.strides[d]) != 0) return true;
      }
      return false;
    };
    for (const auto& m : node.micro) {
      if (m.op == Micro::LOAD) {
        phase[m.dst] = moves(node.patterns[m.a]) ? kElement : kRow;
        if (phase[m.dst] == kRow) first_ignored_[m.a] = reduced;
      } else if (m.op == Micro::CONST) {
        phase[m.dst] = kUniform;
      } else if (m.op == Micro::IOTA) {
        phase[m.dst] = m.a >= reduced ? kElement : kRow;
      } else if (m.op == Micro::RANDOM) {
        phase[m.dst] = kElement;
      } else if (m.op == Micro::STORE) {
        auto& pattern = node.patterns[m.dst];
        bool element = phase[m.a] == kElement || (phase[m.a] == kUniform && moves(pattern));
        if (element) dense(node, m.dst, 0, i.rank);
        if (!element) {
          for (uint32_t d = reduced; d < i.rank; ++d) set(pattern.strides[d], 0);
          first_ignored_[m.dst] = reduced;
        }
      } else if (m.op >= Micro::REDUCE_SUM && m.op <= Micro::REDUCE_ARGMIN) {
        phase[m.dst] = kRow;
      } else {
        const int args = schema::find(m.op)->args;
        phase[m.dst] = phase[m.a];
        if (args >= 2) phase[m.dst] = std::max(phase[m.dst], phase[m.b]);
        if (args >= 3) phase[m.dst] = std::max(phase[m.dst], phase[m.c]);
      }
    }
  }

  // Elements from lowest to highest that a window reaches.
  std::pair<__int128, __int128> reach(const Node& node, size_t k) const {
    const schema::InstructionRecord& i = node.record;
    const schema::PatternRecord& pattern = node.patterns[k];
    __int128 low = 0, high = 0;
    const auto extend = [&](__int128 by) { (by < 0 ? low : high) += by; };
    for (uint32_t d = 0; d < i.rank; ++d)
      extend(static_cast<__int128>(std::max<int64_t>(number(i.extents[d]) - 1, 0)) * number(pattern.strides[d]));
    if (gathers(node) && k == 0) {
      for (uint32_t j = 0; j < i.params[1]; ++j) {
        extend(static_cast<__int128>(std::max<int64_t>(number(node.patterns[4].strides[j]), 0)) *
               number(node.patterns[3].strides[j]));
      }
    }
    if (gathers(node) && k == 1 && i.params[1] > 0)
      extend(static_cast<__int128>(i.params[1] - 1) * number(i.params[2]));
    return {low, high};
  }

  void window(Node& node, size_t k) {
    const schema::InstructionRecord& i = node.record;
    schema::PatternRecord& pattern = node.patterns[k];
    uint32_t first = 0, last = first_ignored_[k];
    if (i.opcode == Opcode::SCATTER && k == 0) first = i.params[0];
    if (gathers(node) && k == 1) last = i.params[0];
    if (i.opcode == Opcode::TENSOR_TENSOR) first = 1;
    if (written_[k]) {
      for (uint32_t d = first; d < last; ++d) {
        if (number(pattern.strides[d]) != 0 || number(i.extents[d]) <= 1) continue;
        dense(node, k, first, last);
        break;
      }
    }
    const int64_t size = bytes_of(pattern.dtype);
    auto [low, high] = reach(node, k);
    if ((high - low + 1) * size > kMostReach && i.opcode != Opcode::TENSOR_TENSOR) {
      // Nothing may be left that repeats where it must not.
      const std::vector<uint32_t> zeros(pattern.strides, pattern.strides + 8);
      dense(node, k, first, last);
      for (uint32_t d = 0; d < i.rank; ++d) {
        if (!written_[k] && number(zeros[d]) == 0) pattern.strides[d] = zeros[d];
      }
      if (i.opcode == Opcode::MATMUL && k < 2) set(pattern.strides[i.rank - 2 - k], 0);
      std::tie(low, high) = reach(node, k);
    }
    if (number(pattern.offset) + low < 0 || number(pattern.offset) > 4096)
      set(pattern.offset, static_cast<int64_t>(-low) + static_cast<int64_t>(random_.below(3)));
    if (pattern.buffer < need_.size()) {
      const auto end = static_cast<int64_t>((number(pattern.offset) + high + 1) * size);
      need_[pattern.buffer] = std::max(need_[pattern.buffer], end);
    }
  }

  void sizes() {
    int64_t scratch = 0;
    size_t constants = 0;
    for (size_t n = 0; n < p_.buffers.size(); ++n) {
      auto& b = p_.buffers[n];
      const bool chip = b.kind == BufferKind::SBUF || b.kind == BufferKind::PSUM;
      int64_t now = number(b.nbytes);
      if (chip) {
        set(b.nbytes, kPartitions * std::max(kPartitionBytes, (need_[n] + kPartitions - 1) / kPartitions));
      } else if (now < need_[n] || now > kMostReach || !random_.chance(8)) {
        set(b.nbytes, need_[n]);
      }
      now = number(b.nbytes);
      if (b.kind == BufferKind::TEMP) {
        if (random_.chance(8)) scratch = 0;
        set(b.offset, scratch);
        most_ = std::max(most_, scratch + now);
        scratch = (scratch + now + 63) / 64 * 64;
      } else if (b.kind == BufferKind::CONSTANT) {
        set(b.offset, static_cast<int64_t>(constants));
        p_.constants.resize(std::max(p_.constants.size(), constants + static_cast<size_t>(now)), std::byte{2});
        last_constant_ = constants + static_cast<size_t>(now);
        constants = (last_constant_ + 63) / 64 * 64;
      }
    }
    p_.constants.resize(last_constant_);
    set(p_.scratch, most_);
  }

  Model& m_;
  test::ProgramBuilder& p_;
  Random& random_;
  std::vector<int64_t> numbers_;
  std::vector<int64_t> need_;            // bytes, by buffer
  std::vector<bool> written_;            // by pattern of the current instruction
  std::vector<uint32_t> first_ignored_;  // likewise: from this dimension on the window does not move
  int64_t most_ = 0;
  size_t last_constant_ = 0;
};

}  // namespace

void repair_numbers(Model& model, Random& random) { Numbers(model, random).run(); }

}  // namespace neuron::fuzz
