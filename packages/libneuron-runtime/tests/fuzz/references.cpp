// The load phase's rules, met by force: what a random change broke is made legal, so that inputs get to run.
#include <algorithm>
#include <array>
#include <set>
#include <string>

#include "model.h"
#include "program/validate.h"

namespace neuron::fuzz {

namespace {

using schema::kNone;

bool is_reduce(Micro op) { return op >= Micro::REDUCE_SUM && op <= Micro::REDUCE_ARGMIN; }
bool gathers(Opcode opcode) { return opcode == Opcode::GATHER || opcode == Opcode::SCATTER; }
bool on_chip(BufferKind kind) { return kind == BufferKind::SBUF || kind == BufferKind::PSUM; }

class References {
 public:
  References(Model& model, Random& random) : m_(model), p_(model.p), random_(random) {}

  void run() {
    values();
    texts();
    const size_t before = (buffers(), io(), p_.buffers.size());
    for (Node& node : m_.nodes) instruction(node);
    if (p_.buffers.size() != before) buffers(), io();
  }

 private:
  void values() {
    p_.slot_count = std::min(p_.slot_count, 8u);
    p_.scalar_count = std::min(p_.scalar_count, 8u);
    if (p_.values.empty()) p_.number(0);
    for (uint32_t n = 0; n < p_.values.size(); ++n) {
      schema::ValueRecord& v = p_.values[n];
      const bool operands = v.op != ValueOp::CONST && v.op != ValueOp::SLOT;
      if (!name_of(v.op) || (operands && n == 0) || (v.op == ValueOp::SLOT && p_.slot_count == 0)) {
        v = {ValueOp::CONST, 0, 0, 0, static_cast<int64_t>(random_.below(9))};
        continue;
      }
      const bool binary = operands && v.op != ValueOp::ALIGN;
      v.a = operands && v.a >= n ? static_cast<uint32_t>(random_.below(n)) : operands ? v.a : 0;
      v.b = binary && v.b >= n ? static_cast<uint32_t>(random_.below(n)) : binary ? v.b : 0;
      v.reserved = 0;
      if (binary) v.imm = 0;
      if (v.op == ValueOp::ALIGN && v.imm < 1) v.imm = 64;
      if (v.op == ValueOp::SLOT && (v.imm < 0 || v.imm >= p_.slot_count))
        v.imm = static_cast<int64_t>(random_.below(p_.slot_count));
    }
    value(p_.scratch);
    for (auto& guard : p_.guards) {
      if (!name_of(guard.op)) guard.op = GuardOp::LE;
      value(guard.a), value(guard.b);
      guard.reserved = 0;
    }
  }

  void value(uint32_t& index) {
    if (index >= p_.values.size()) index = static_cast<uint32_t>(random_.below(p_.values.size()));
  }
  // The first `count` of a record's indices are values, the others NONE.
  void values_of(uint32_t (&list)[8], uint32_t count) {
    for (uint32_t d = 0; d < 8; ++d) d < count ? value(list[d]) : void(list[d] = kNone);
  }

  void texts() {
    if (p_.strings.empty() || p_.strings.back() != '\0') p_.strings += '\0';
  }

  void buffers() {
    uint32_t on_chip_seen[2] = {};
    std::set<uint32_t> taken[2];
    uint32_t count[2] = {};
    for (auto& b : p_.buffers) {
      if (!name_of(b.kind)) b.kind = BufferKind::TEMP;
      if (on_chip(b.kind) && on_chip_seen[b.kind == BufferKind::PSUM]++ > 0) b.kind = BufferKind::TEMP;
      if (b.kind == BufferKind::INPUT || b.kind == BufferKind::OUTPUT) ++count[b.kind == BufferKind::OUTPUT];
      value(b.nbytes), value(b.offset);
      if (b.kind != BufferKind::TEMP && b.kind != BufferKind::CONSTANT) b.offset = constant(m_, 0);
    }
    for (auto& b : p_.buffers) {
      if (b.kind != BufferKind::INPUT && b.kind != BufferKind::OUTPUT) {
        b.index = 0;
        continue;
      }
      const size_t side = b.kind == BufferKind::OUTPUT;
      if (b.index >= count[side] || taken[side].contains(b.index)) {
        b.index = 0;
        while (taken[side].contains(b.index)) ++b.index;
      }
      taken[side].insert(b.index);
    }
  }

  // The name at an offset; empty when it is no legal one.
  std::string name_at(uint32_t offset) const {
    if (offset >= p_.strings.size()) return "";
    std::string name(p_.strings.c_str() + offset);
    const bool legal = std::ranges::all_of(name, [](char c) { return c > ' ' && c < 127 && c != '/'; });
    return legal && name.size() <= 255 ? name : "";
  }

  void io() {
    std::vector<schema::IoRecord> list;
    writable_.assign(p_.buffers.size(), false);
    std::set<uint32_t> aliases;
    uint32_t inputs = 0;
    for (const BufferKind kind : {BufferKind::INPUT, BufferKind::OUTPUT}) {
      std::set<std::string> names;
      for (uint32_t index = 0;; ++index) {
        const auto place =
            std::ranges::find_if(p_.buffers, [&](const auto& b) { return b.kind == kind && b.index == index; });
        if (place == p_.buffers.end()) break;
        const auto buffer = static_cast<uint32_t>(place - p_.buffers.begin());
        const auto old = std::ranges::find_if(p_.io, [&](const auto& one) { return one.buffer == buffer; });
        schema::IoRecord one = old != p_.io.end() ? *old : schema::IoRecord{buffer, 0, Dtype::FP32, kNone, 0, {}, {}};
        std::string name = name_at(one.name);
        for (uint32_t n = index; name.empty() || names.contains(name); ++n) {
          name = (kind == BufferKind::INPUT ? "i" : "o") + std::to_string(n);
          const size_t found = p_.strings.find('\0' + name + '\0');
          one.name = found == std::string::npos ? p_.text(name) : static_cast<uint32_t>(found + 1);
        }
        names.insert(name);
        if (!schema::find(one.dtype)) one.dtype = Dtype::FP32;
        if (kind == BufferKind::INPUT || one.alias >= inputs || !aliases.insert(one.alias).second) one.alias = kNone;
        one.rank = std::min(one.rank, 8u);
        values_of(one.dims, one.rank);
        std::ranges::fill(one.reserved, 0u);
        list.push_back(one);
        if (kind == BufferKind::INPUT) ++inputs;
      }
    }
    p_.io = std::move(list);
    for (uint32_t n = 0; n < p_.buffers.size(); ++n) {
      const auto& b = p_.buffers[n];
      writable_[n] = b.kind == BufferKind::INPUT ? aliases.contains(b.index) : b.kind != BufferKind::CONSTANT;
    }
  }

  // A buffer that a pattern of this instruction may use.
  uint32_t pick(bool chip, bool write) {
    std::vector<uint32_t> list;
    for (uint32_t n = 0; n < p_.buffers.size(); ++n) {
      if ((!chip || on_chip(p_.buffers[n].kind)) && (!write || (n < writable_.size() && writable_[n])))
        list.push_back(n);
    }
    if (!list.empty()) return random_.of(list);
    const uint32_t zero = constant(m_, 0);
    const uint32_t size = constant(m_, chip ? 128 * 64 : 256);
    p_.buffers.push_back({chip ? BufferKind::SBUF : BufferKind::OUTPUT, 0, zero, size});
    writable_.resize(p_.buffers.size(), true);
    return static_cast<uint32_t>(p_.buffers.size() - 1);
  }

  void more_rank(schema::InstructionRecord& i, uint32_t least) {
    while (i.rank < least) i.extents[i.rank++] = constant(m_, 1 + static_cast<int64_t>(random_.below(5)));
  }

  void instruction(Node& node) {
    schema::InstructionRecord& i = node.record;
    if (!name_of(i.opcode) || i.opcode == Opcode::NATIVE) i.opcode = Opcode::TILE;
    if (!name_of(i.engine)) i.engine = Engine::VECTOR;
    i.flags = 0;
    i.rank = std::min(i.rank, 8u);
    std::ranges::fill(i.reserved, 0u);
    if (i.debug >= p_.strings.size()) i.debug = 0;
    if (i.opcode == Opcode::MATMUL) more_rank(i, 3);
    if (i.opcode == Opcode::SCAN || i.opcode == Opcode::TENSOR_TENSOR) more_rank(i, 1);
    values_of(i.extents, i.rank);
    params(i);
    const bool moves = i.opcode == Opcode::DMA || i.opcode == Opcode::SCAN;
    const size_t exact = moves ? 2 : gathers(i.opcode) ? 5 : 0;
    const size_t least = exact ? exact : i.opcode == Opcode::MATMUL ? 3 : 1;
    if (exact) node.patterns.resize(std::min(node.patterns.size(), exact));
    while (node.patterns.size() < least) {
      node.patterns.push_back({pick(false, false), Dtype::FP32, constant(m_, 0), 0, {}});
      std::ranges::fill(node.patterns.back().strides, constant(m_, 1));
    }
    for (size_t k = 0; k < node.patterns.size(); ++k) pattern(node, k);
    if (exact) node.micro.clear();
    const std::vector<bool> stored = exact ? std::vector<bool>{} : micro(node);
    for (size_t k = 0; k < node.patterns.size(); ++k) {
      const bool write = moves                         ? k == 1
                         : i.opcode == Opcode::GATHER  ? k == 2
                         : i.opcode == Opcode::SCATTER ? k == 0
                                                       : stored[k];
      if (write && !writable_[node.patterns[k].buffer]) node.patterns[k].buffer = pick(false, true);
    }
    if (gathers(i.opcode)) node.patterns[3].buffer = node.patterns[4].buffer = node.patterns[0].buffer;
  }

  void params(schema::InstructionRecord& i) {
    const schema::OpcodeInfo& info = *schema::find(i.opcode);
    for (size_t k = 0; k < 6; ++k) {
      uint32_t& number = i.params[k];
      switch (info.params[k].type) {
        case schema::ParamType::NUMBER:
          if (!info.params[k].name) number = 0;
          break;
        case schema::ParamType::VALUE:
          value(number);
          break;
        case schema::ParamType::TILE_MODE:
          number %= std::size(schema::kTileModeCodes);
          break;
        case schema::ParamType::KIND:
          number %= std::size(schema::kKindCodes);
          break;
        case schema::ParamType::INDEX_MODE:
          number %= std::size(schema::kIndexModeCodes);
          break;
        case schema::ParamType::COMBINE:
          number %= std::size(schema::kCombineCodes);
          break;
      }
    }
    if (i.opcode == Opcode::TILE) {
      const auto mode = static_cast<TileMode>(i.params[0]);
      const uint32_t most = mode == TileMode::MAP ? 0 : mode == TileMode::ROW ? i.rank : std::max(i.rank, 1u) - 1;
      i.params[1] = most == 0 ? 0 : 1 + (i.params[1] - 1) % most;
      if (most == 0) i.params[0] = static_cast<uint32_t>(TileMode::MAP);
    } else if (i.opcode == Opcode::MATMUL) {
      i.params[0] = i.rank - 3;
      if (static_cast<Kind>(i.params[1]) == Kind::I32) i.params[1] = static_cast<uint32_t>(Kind::I64);
    } else if (gathers(i.opcode)) {
      i.params[0] %= i.rank + 1;
      i.params[1] %= 9;
    } else if (i.opcode == Opcode::SCAN) {
      if (i.params[0] == static_cast<uint32_t>(Combine::SET)) i.params[0] = static_cast<uint32_t>(Combine::ADD);
      i.params[1] &= 1;
    }
  }

  void pattern(Node& node, size_t k) {
    const schema::InstructionRecord& i = node.record;
    schema::PatternRecord& pattern = node.patterns[k];
    const bool chip = i.opcode == Opcode::TENSOR_TENSOR;
    if (pattern.buffer >= p_.buffers.size() || (chip && !on_chip(p_.buffers[pattern.buffer].kind)))
      pattern.buffer = pick(chip, false);
    if (!schema::find(pattern.dtype)) pattern.dtype = static_cast<Dtype>(random_.of(schema::kDtypeCodes));
    value(pattern.offset);
    pattern.flags &= 1;
    values_of(pattern.strides, stride_count(i, k));
    if (i.opcode == Opcode::MATMUL && k < 2) {
      const bool floats = static_cast<Kind>(i.params[1]) == Kind::F32;
      if (floats != (kind_of(pattern.dtype) == Kind::F32)) pattern.dtype = floats ? Dtype::FP32 : Dtype::INT64;
    }
    if (gathers(i.opcode)) {
      if (k == 1 && kind_of(pattern.dtype) == Kind::F32) pattern.dtype = Dtype::INT64;
      if (k >= 2) pattern.dtype = node.patterns[0].dtype;
    }
    if (i.opcode == Opcode::SCAN && k == 1 && kind_of(pattern.dtype) != kind_of(node.patterns[0].dtype))
      pattern.dtype = node.patterns[0].dtype;
  }

  // Rewrites the micro-program with legal operands; returns which patterns it stores.
  std::vector<bool> micro(Node& node);

  Model& m_;
  test::ProgramBuilder& p_;
  Random& random_;
  std::vector<bool> writable_;  // by buffer
};

// A micro-program under construction: what is appended reads registers that exist.
class MicroWriter {
 public:
  MicroWriter(Node& node, test::ProgramBuilder& program, Random& random)
      : node_(node), p_(program), random_(random), stored_(node.patterns.size()) {
    kinds_.fill(-1);
  }

  std::vector<bool> run() {
    const std::vector<schema::MicroRecord> old = std::move(node_.micro);
    node_.micro.clear();
    for (const schema::MicroRecord& m : old) {
      if (node_.micro.size() < schema::kMaxMicro - 8) one(m);  // room for a few constants
    }
    if (std::ranges::none_of(stored_, [](bool b) { return b; }))
      store({Micro::STORE, Kind::F32, last(), 0, 0, 0, {}, {}, 0});
    return std::move(stored_);
  }

 private:
  bool matmul() const { return node_.record.opcode == Opcode::MATMUL; }
  uint16_t last() const { return static_cast<uint16_t>(node_.patterns.size() - 1); }
  uint16_t pattern(uint16_t number) const {
    const size_t first = matmul() ? 2 : 0, count = node_.patterns.size() - first;
    return static_cast<uint16_t>(number >= first && number < node_.patterns.size() ? number : first + number % count);
  }

  void one(schema::MicroRecord m) {
    const schema::MicroInfo* info = schema::find(m.op);
    if (!info || (m.op == Micro::ACC && !matmul())) return;
    if (is_reduce(m.op) && (node_.record.opcode != Opcode::TILE || node_.record.params[0] == 0)) return;
    while (static_cast<size_t>(m.kind) > 2 || !(info->kinds >> static_cast<unsigned>(m.kind) & 1))
      m.kind = static_cast<Kind>(random_.of(schema::kKindCodes));
    m.from = m.op == Micro::CONVERT ? m.from : Kind::F32;
    const bool number = m.op == Micro::LOAD || m.op == Micro::IOTA || m.op == Micro::RANDOM;
    if (info->args < 1 && !number) m.a = 0;
    if (info->args < 2) m.b = 0;
    if (info->args < 3) m.c = 0;
    if (m.op != Micro::CONST && m.op != Micro::RANDOM) m.imm = 0, m.source = ImmSource::LITERAL;
    switch (m.op) {
      case Micro::STORE:
        store(m);
        return;
      case Micro::LOAD:
        m.a = pattern(m.a);
        m.kind = kind_of(node_.patterns[m.a].dtype);
        if (stored_[m.a]) return;
        break;
      case Micro::CONST:
        if (!name_of(m.source) || (m.source == ImmSource::SCALAR && p_.scalar_count == 0))
          m.source = ImmSource::LITERAL;
        if (m.source == ImmSource::SCALAR) m.imm %= p_.scalar_count;
        if (m.source == ImmSource::VALUE) m.imm %= p_.values.size();
        break;
      case Micro::RANDOM:
        p_.scalar_count = std::max(p_.scalar_count, 2u);
        m.source = ImmSource::SCALAR;
        m.imm %= p_.scalar_count - 1;
        m.a &= 3;
        break;
      case Micro::IOTA: {
        const uint32_t dimensions = node_.record.rank - (matmul() ? 1 : 0);
        if (dimensions == 0) return;
        m.a = static_cast<uint16_t>(m.a % dimensions);
        break;
      }
      case Micro::ACC:
        m.kind = static_cast<Kind>(node_.record.params[1]);
        break;
      case Micro::CONVERT:
        m.from = static_cast<size_t>(m.from) > 2 ? Kind::I32 : m.from;
        m.a = operand(m.a, m.from);
        break;
      case Micro::SELECT:
        m.a = operand(m.a, Kind::I32);
        m.b = operand(m.b, m.kind);
        m.c = operand(m.c, m.kind);
        break;
      default:
        if (info->args >= 1) m.a = operand(m.a, m.kind);
        if (info->args >= 2) m.b = operand(m.b, m.kind);
    }
    result(m);
  }

  void store(schema::MicroRecord m) {
    m.dst = pattern(m.dst);
    if (stored_[m.dst]) return;
    m.kind = kind_of(node_.patterns[m.dst].dtype);
    m.a = operand(m.a, m.kind);
    m.b = m.c = 0;
    stored_[m.dst] = true;
    node_.micro.push_back(m);
  }

  void result(schema::MicroRecord& m) {
    if (m.dst >= schema::kMaxMicro || kinds_[m.dst] >= 0) {
      m.dst = 0;
      while (kinds_[m.dst] >= 0) ++m.dst;
    }
    kinds_[m.dst] = static_cast<int8_t>(result_kind(m.op, m.kind));
    node_.micro.push_back(m);
  }

  // A register of the kind: the wanted one, another, or a new constant.
  uint16_t operand(uint16_t wanted, Kind kind) {
    if (wanted < schema::kMaxMicro && kinds_[wanted] == static_cast<int8_t>(kind)) return wanted;
    std::vector<uint16_t> list;
    for (uint16_t n = 0; n < schema::kMaxMicro; ++n) {
      if (kinds_[n] == static_cast<int8_t>(kind)) list.push_back(n);
    }
    if (!list.empty()) return random_.of(list);
    const uint64_t imm = kind == Kind::F32 ? __builtin_bit_cast(uint64_t, 1.5) : random_.below(9);
    schema::MicroRecord m{Micro::CONST, kind, 0, 0, 0, 0, ImmSource::LITERAL, Kind::F32, imm};
    result(m);
    return m.dst;
  }

  Node& node_;
  test::ProgramBuilder& p_;
  Random& random_;
  std::vector<bool> stored_;
  std::array<int8_t, schema::kMaxMicro> kinds_;  // by register; -1: not written
};

std::vector<bool> References::micro(Node& node) { return MicroWriter(node, p_, random_).run(); }

}  // namespace

void repair_references(Model& model, Random& random) { References(model, random).run(); }

}  // namespace neuron::fuzz
