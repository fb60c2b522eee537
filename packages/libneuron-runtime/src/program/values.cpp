// Values, guards and the sizes of buffers.
#include <algorithm>
#include <limits>

#include "program/bind.h"

namespace neuron {

using schema::Rule;

namespace {

using ll = long long;

constexpr int64_t kMaxSbuf = int64_t{32} << 20;  // trn3: 128 partitions of 256 KiB
constexpr int64_t kMaxPsum = int64_t{4} << 20;

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

// One value; false on overflow or a division by 0.
bool compute(const schema::ValueRecord& v, const int64_t* values, std::span<const int64_t> slots, int64_t& result) {
  const int64_t a = values[v.a], b = values[v.b];
  switch (v.op) {
    case ValueOp::CONST:
      result = v.imm;
      return true;
    case ValueOp::SLOT:
      result = slots[static_cast<size_t>(v.imm)];
      return true;
    case ValueOp::ADD:
      return !__builtin_add_overflow(a, b, &result);
    case ValueOp::SUB:
      return !__builtin_sub_overflow(a, b, &result);
    case ValueOp::MUL:
      return !__builtin_mul_overflow(a, b, &result);
    case ValueOp::FLOORDIV:
    case ValueOp::MOD:
      if (b == 0 || (a == std::numeric_limits<int64_t>::min() && b == -1)) return false;
      result = v.op == ValueOp::FLOORDIV ? floor_div(a, b) : a - b * floor_div(a, b);
      return true;
    case ValueOp::MAX:
      result = std::max(a, b);
      return true;
    case ValueOp::MIN:
      result = std::min(a, b);
      return true;
    case ValueOp::ALIGN: {
      const int64_t rest = a % v.imm;
      return !__builtin_add_overflow(a, rest == 0 ? 0 : rest > 0 ? v.imm - rest : -rest, &result);
    }
  }
  return false;
}

bool holds(GuardOp op, int64_t a, int64_t b) {
  switch (op) {
    case GuardOp::EQ:
      return a == b;
    case GuardOp::NE:
      return a != b;
    case GuardOp::LT:
      return a < b;
    case GuardOp::LE:
      return a <= b;
  }
  return false;
}

}  // namespace

std::vector<int64_t> evaluate(const Program& program, std::span<const int64_t> slots) {
  if (slots.size() != program.header().slot_count) {
    refuse(Rule::slots, "%zu slots are given, expected %u", slots.size(), program.header().slot_count);
  }
  std::vector<int64_t> values(program.values().size());
  for (size_t n = 0; n < values.size(); ++n) {
    const schema::ValueRecord& v = program.values()[n];
    if (!compute(v, values.data(), slots, values[n])) {
      refuse(Rule::arithmetic, "value %zu: %s of %lld and %lld overflows or divides by 0", n, name_of(v.op),
             static_cast<ll>(values[v.a]), static_cast<ll>(v.op == ValueOp::ALIGN ? v.imm : values[v.b]));
    }
  }
  for (size_t n = 0; n < program.guards().size(); ++n) {
    const schema::GuardRecord& g = program.guards()[n];
    if (!holds(g.op, values[g.a], values[g.b])) {
      throw GuardError(
          static_cast<int>(n),
          format("program: guard %zu does not hold: %lld %s %lld (rule %s)", n, static_cast<ll>(values[g.a]),
                 name_of(g.op), static_cast<ll>(values[g.b]), schema::kRuleIds[static_cast<size_t>(Rule::guard)]));
    }
  }
  return values;
}

std::vector<int64_t> buffer_sizes(const Program& program, std::span<const int64_t> values) {
  const int64_t scratch = values[program.header().scratch_bytes];
  if (scratch < 0 || scratch > kMaxBytes) {
    refuse(Rule::memory, "scratch_bytes is %lld, expected 0 to %lld", static_cast<ll>(scratch),
           static_cast<ll>(kMaxBytes));
  }
  std::vector<int64_t> sizes(program.buffers().size());
  for (size_t n = 0; n < sizes.size(); ++n) {
    const schema::BufferRecord& b = program.buffers()[n];
    const int64_t nbytes = values[b.nbytes], offset = values[b.offset];
    if (nbytes < 0 || nbytes > kMaxBytes) {
      refuse(Rule::memory, "buffer %zu: nbytes is %lld, expected 0 to %lld", n, static_cast<ll>(nbytes),
             static_cast<ll>(kMaxBytes));
    }
    sizes[n] = nbytes;
    int64_t room = std::numeric_limits<int64_t>::max();
    if (b.kind == BufferKind::TEMP) room = scratch;
    if (b.kind == BufferKind::CONSTANT) room = static_cast<int64_t>(program.constants().size());
    if (offset < 0 || offset % 64 != 0 || offset > room || nbytes > room - offset) {
      refuse(Rule::memory,
             "buffer %zu: %lld bytes from byte %lld, expected a multiple of 64 and an end within %lld bytes", n,
             static_cast<ll>(nbytes), static_cast<ll>(offset), static_cast<ll>(room));
    }
    if (b.kind == BufferKind::SBUF || b.kind == BufferKind::PSUM) {
      const int64_t most = b.kind == BufferKind::SBUF ? kMaxSbuf : kMaxPsum;
      if (nbytes > most || nbytes % kPartitions != 0) {
        refuse(Rule::memory, "buffer %zu: %s of %lld bytes, expected a multiple of %lld up to %lld", n, name_of(b.kind),
               static_cast<ll>(nbytes), static_cast<ll>(kPartitions), static_cast<ll>(most));
      }
    }
  }
  return sizes;
}

}  // namespace neuron
