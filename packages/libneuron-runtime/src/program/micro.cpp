// Micro-programs: registers, kinds, patterns and numbers.
#include <array>
#include <bitset>

#include "program/validate.h"

namespace neuron {

using schema::Rule;

namespace {

bool is_reduce(Micro op) { return op >= Micro::REDUCE_SUM && op <= Micro::REDUCE_ARGMIN; }

class MicroValidator {
 public:
  MicroValidator(const Program& program, size_t number, const schema::InstructionRecord& instruction,
                 std::span<uint8_t> uses)
      : p_(program), n_(number), i_(instruction), uses_(uses) {}

  void run() {
    const auto micro = p_.micro_of(i_);
    for (k_ = 0; k_ < micro.size(); ++k_) one(micro[k_]);
    if (!micro.empty() && !stored_any_) refuse(Rule::micro_pattern, "instruction %zu: no STORE", n_);
  }

 private:
  void one(const schema::MicroRecord& m) {
    const schema::MicroInfo* info = schema::find(m.op);
    if (!info) refuse(Rule::micro, "instruction %zu, micro %zu: unknown op %u", n_, k_, static_cast<unsigned>(m.op));
    if (!name_of(m.kind) || !(info->kinds >> static_cast<unsigned>(m.kind) & 1)) {
      refuse(Rule::micro, "instruction %zu, micro %zu: kind %u is not legal for %s", n_, k_,
             static_cast<unsigned>(m.kind), info->name);
    }
    place(m, info->name);
    fields(m, *info);
    switch (m.op) {
      case Micro::LOAD:
        pattern(m, info->name, m.a);
        if (stored_[m.a]) {
          refuse(Rule::micro_pattern, "instruction %zu, micro %zu: LOAD of pattern %u after its STORE", n_, k_, m.a);
        }
        uses_[m.a] |= kReads;
        break;
      case Micro::STORE:
        pattern(m, info->name, m.dst);
        if (stored_[m.dst])
          refuse(Rule::micro_pattern, "instruction %zu, micro %zu: second STORE of pattern %u", n_, k_, m.dst);
        stored_[m.dst] = stored_any_ = true;
        uses_[m.dst] |= kWrites;
        read(m.a, m.kind, info->name);
        return;  // no result
      case Micro::CONST:
        number(m);
        break;
      case Micro::RANDOM:
        if (m.a > 3)
          refuse(Rule::micro_number, "instruction %zu, micro %zu: RANDOM word %u, expected 0 to 3", n_, k_, m.a);
        if (m.source != ImmSource::SCALAR) {
          refuse(Rule::micro_number, "instruction %zu, micro %zu: RANDOM takes its key from SCALAR only", n_, k_);
        }
        scalar(m.imm, 2);
        break;
      case Micro::IOTA: {
        const bool inner = i_.opcode == Opcode::MATMUL && m.a + 1u == i_.rank;
        if (m.a >= i_.rank || inner) {
          refuse(Rule::micro_number, "instruction %zu, micro %zu: IOTA along dimension %u of %u%s", n_, k_, m.a,
                 i_.rank, inner ? ", which is K" : "");
        }
        break;
      }
      case Micro::ACC:
        break;
      case Micro::CONVERT:
        read(m.a, m.from, info->name);
        break;
      case Micro::SELECT:
        read(m.a, Kind::I32, info->name);
        read(m.b, m.kind, info->name);
        read(m.c, m.kind, info->name);
        break;
      default:
        if (info->args >= 1) read(m.a, m.kind, info->name);
        if (info->args >= 2) read(m.b, m.kind, info->name);
    }
    write(m.dst, result_kind(m.op, m.kind), info->name);
  }

  // Fields that the operation does not use are 0.
  void fields(const schema::MicroRecord& m, const schema::MicroInfo& info) const {
    const bool a_is_number = m.op == Micro::LOAD || m.op == Micro::IOTA || m.op == Micro::RANDOM;
    const bool has_imm = m.op == Micro::CONST || m.op == Micro::RANDOM;
    if (m.op == Micro::CONVERT ? !name_of(m.from) : m.from != Kind::F32) {
      refuse(Rule::micro, "instruction %zu, micro %zu: `from` is %u in %s", n_, k_, static_cast<unsigned>(m.from),
             info.name);
    }
    if ((info.args < 1 && !a_is_number && m.a != 0) || (info.args < 2 && m.b != 0) || (info.args < 3 && m.c != 0) ||
        (!has_imm && (m.imm != 0 || m.source != ImmSource::LITERAL))) {
      refuse(Rule::micro, "instruction %zu, micro %zu: a field that %s does not use is not 0", n_, k_, info.name);
    }
  }

  // Operations that are tied to an opcode.
  void place(const schema::MicroRecord& m, const char* name) const {
    if (is_reduce(m.op)) {
      if (i_.opcode != Opcode::TILE || static_cast<TileMode>(i_.params[0]) == TileMode::MAP) {
        refuse(Rule::tile, "instruction %zu, micro %zu: %s outside a TILE in ROW or COLUMN mode", n_, k_, name);
      }
    }
    if (m.op == Micro::ACC) {
      if (i_.opcode != Opcode::MATMUL) refuse(Rule::tile, "instruction %zu, micro %zu: ACC outside a MATMUL", n_, k_);
      if (static_cast<uint32_t>(m.kind) != i_.params[1]) {
        refuse(Rule::matmul, "instruction %zu, micro %zu: ACC of kind %s, but the product has another", n_, k_,
               name_of(m.kind));
      }
    }
  }

  void pattern(const schema::MicroRecord& m, const char* name, uint16_t index) const {
    if (index >= uses_.size() || index >= stored_.size()) {
      refuse(Rule::micro_pattern, "instruction %zu, micro %zu: %s of pattern %u, but the instruction has %zu", n_, k_,
             name, index, uses_.size());
    }
    if (i_.opcode == Opcode::MATMUL && index < 2) {
      refuse(Rule::matmul, "instruction %zu, micro %zu: %s of pattern %u, which is an operand of the product", n_, k_,
             name, index);
    }
    const Dtype dtype = p_.patterns_of(i_)[index].dtype;
    if (kind_of(dtype) != m.kind) {
      refuse(Rule::micro_pattern, "instruction %zu, micro %zu: %s as %s, but %s loads into %s", n_, k_, name,
             name_of(m.kind), name_of(dtype), name_of(kind_of(dtype)));
    }
  }

  void number(const schema::MicroRecord& m) const {
    if (!name_of(m.source)) {
      refuse(Rule::micro_number, "instruction %zu, micro %zu: unknown source %u", n_, k_,
             static_cast<unsigned>(m.source));
    }
    if (m.source == ImmSource::VALUE && m.imm >= p_.values().size()) {
      refuse(Rule::micro_number, "instruction %zu, micro %zu: value %llu, but there are %zu", n_, k_,
             static_cast<unsigned long long>(m.imm), p_.values().size());
    }
    if (m.source == ImmSource::SCALAR) scalar(m.imm, 1);
  }

  // `count` scalars from `first`.
  void scalar(uint64_t first, uint32_t count) const {
    const uint32_t total = p_.header().scalar_count;
    if (total < count || first > total - count) {
      refuse(Rule::micro_number, "instruction %zu, micro %zu: scalar %llu, but scalar_count is %u", n_, k_,
             static_cast<unsigned long long>(first + count - 1), total);
    }
  }

  void read(uint16_t index, Kind kind, const char* name) const {
    if (index >= schema::kMaxMicro || !written_[index]) {
      refuse(Rule::registers, "instruction %zu, micro %zu: %s reads register %u before it is written", n_, k_, name,
             index);
    }
    if (kinds_[index] != kind) {
      refuse(Rule::registers, "instruction %zu, micro %zu: %s reads register %u as %s, but it is %s", n_, k_, name,
             index, name_of(kind), name_of(kinds_[index]));
    }
  }

  void write(uint16_t index, Kind kind, const char* name) {
    if (index >= schema::kMaxMicro) {
      refuse(Rule::registers, "instruction %zu, micro %zu: %s writes register %u, expected less than %d", n_, k_, name,
             index, schema::kMaxMicro);
    }
    if (written_[index])
      refuse(Rule::registers, "instruction %zu, micro %zu: %s writes register %u again", n_, k_, name, index);
    written_[index] = true;
    kinds_[index] = kind;
  }

  const Program& p_;
  const size_t n_;
  const schema::InstructionRecord& i_;
  const std::span<uint8_t> uses_;
  size_t k_ = 0;
  std::bitset<schema::kMaxMicro> written_;
  std::array<Kind, schema::kMaxMicro> kinds_{};
  std::bitset<2 * schema::kMaxMicro> stored_;  // by pattern
  bool stored_any_ = false;
};

}  // namespace

void validate_micro(const Program& program, size_t number, const schema::InstructionRecord& instruction,
                    std::span<uint8_t> uses) {
  MicroValidator(program, number, instruction, uses).run();
}

}  // namespace neuron
