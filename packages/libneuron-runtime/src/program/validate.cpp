#include "program/validate.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_set>

namespace neuron {

using schema::kNone;
using schema::Rule;

class Validator {
 public:
  explicit Validator(Program& program) : p_(program), texts_end_(program.strings_.rfind('\0') + 1) {}

  void run() {
    values();
    guards();
    buffers();
    io();
    instructions();
  }

 private:
  // `where` names the record, e.g. "buffer 3".
  void value(Rule rule, const char* record, size_t n, const char* field, uint32_t index) const {
    if (index >= p_.values_.size()) {
      refuse(rule, "%s %zu: %s is %u, but there are %zu values", record, n, field, index, p_.values_.size());
    }
  }

  void text(const char* record, size_t n, const char* field, uint32_t offset) const {
    if (offset >= texts_end_) {
      refuse(Rule::names, "%s %zu: %s is %u, not a NUL-terminated text in STRINGS (%zu bytes)", record, n, field,
             offset, p_.strings_.size());
    }
  }

  void values() const {
    for (size_t n = 0; n < p_.values_.size(); ++n) {
      const schema::ValueRecord& v = p_.values_[n];
      const char* name = name_of(v.op);
      if (!name) refuse(Rule::values, "value %zu: unknown op %u", n, static_cast<unsigned>(v.op));
      const bool leaf = v.op == ValueOp::CONST || v.op == ValueOp::SLOT;
      const bool binary = !leaf && v.op != ValueOp::ALIGN;
      if (!leaf && v.a >= n)
        refuse(Rule::values, "value %zu: operand a of %s is %u, expected an earlier value", n, name, v.a);
      if (binary && v.b >= n)
        refuse(Rule::values, "value %zu: operand b of %s is %u, expected an earlier value", n, name, v.b);
      if (v.op == ValueOp::SLOT && (v.imm < 0 || v.imm >= static_cast<int64_t>(p_.header().slot_count))) {
        refuse(Rule::values, "value %zu: slot %lld, but slot_count is %u", n, static_cast<long long>(v.imm),
               p_.header().slot_count);
      }
      if (v.op == ValueOp::ALIGN && v.imm < 1) {
        refuse(Rule::values, "value %zu: ALIGN to %lld, expected at least 1", n, static_cast<long long>(v.imm));
      }
      if (v.reserved != 0 || (leaf && v.a != 0) || (!binary && v.b != 0) || (binary && v.imm != 0)) {
        refuse(Rule::reserved, "value %zu: a field that %s does not use is not 0", n, name);
      }
    }
    if (p_.header().scratch_bytes >= p_.values_.size()) {
      refuse(Rule::values, "header: scratch_bytes is %u, but there are %zu values", p_.header().scratch_bytes,
             p_.values_.size());
    }
  }

  void guards() const {
    for (size_t n = 0; n < p_.guards_.size(); ++n) {
      const schema::GuardRecord& g = p_.guards_[n];
      if (!name_of(g.op)) refuse(Rule::guards, "guard %zu: unknown op %u", n, static_cast<unsigned>(g.op));
      value(Rule::guards, "guard", n, "a", g.a);
      value(Rule::guards, "guard", n, "b", g.b);
      if (g.reserved != 0) refuse(Rule::reserved, "guard %zu: reserved is %u, expected 0", n, g.reserved);
    }
  }

  void buffers() {
    size_t count[6] = {};
    for (size_t n = 0; n < p_.buffers_.size(); ++n) {
      const schema::BufferRecord& b = p_.buffers_[n];
      if (!name_of(b.kind)) refuse(Rule::buffers, "buffer %zu: unknown kind %u", n, static_cast<unsigned>(b.kind));
      ++count[static_cast<size_t>(b.kind)];
      value(Rule::buffers, "buffer", n, "offset", b.offset);
      value(Rule::buffers, "buffer", n, "nbytes", b.nbytes);
      if (b.kind != BufferKind::TEMP && b.kind != BufferKind::CONSTANT) {
        const schema::ValueRecord& offset = p_.values_[b.offset];
        if (offset.op != ValueOp::CONST || offset.imm != 0) {
          refuse(Rule::buffers, "buffer %zu: the offset of an %s is value %u, expected a CONST 0", n, name_of(b.kind),
                 b.offset);
        }
      }
      if (b.kind != BufferKind::INPUT && b.kind != BufferKind::OUTPUT && b.index != 0) {
        refuse(Rule::reserved, "buffer %zu: index of a %s is %u, expected 0", n, name_of(b.kind), b.index);
      }
    }
    for (const BufferKind kind : {BufferKind::SBUF, BufferKind::PSUM}) {
      if (count[static_cast<size_t>(kind)] > 1) {
        refuse(Rule::buffers, "%zu buffers are %s, expected at most one", count[static_cast<size_t>(kind)],
               name_of(kind));
      }
    }
    p_.input_count_ = static_cast<uint32_t>(count[static_cast<size_t>(BufferKind::INPUT)]);
    p_.output_count_ = static_cast<uint32_t>(count[static_cast<size_t>(BufferKind::OUTPUT)]);
    std::vector<bool> inputs(p_.input_count_), outputs(p_.output_count_);
    for (size_t n = 0; n < p_.buffers_.size(); ++n) {
      const schema::BufferRecord& b = p_.buffers_[n];
      if (b.kind != BufferKind::INPUT && b.kind != BufferKind::OUTPUT) continue;
      std::vector<bool>& taken = b.kind == BufferKind::INPUT ? inputs : outputs;
      if (b.index >= taken.size()) {
        refuse(Rule::buffers, "buffer %zu: %s %u, but there are %zu of them", n, name_of(b.kind), b.index,
               taken.size());
      }
      if (taken[b.index])
        refuse(Rule::buffers, "buffer %zu: %s %u is taken by an earlier buffer", n, name_of(b.kind), b.index);
      taken[b.index] = true;
    }
  }

  void io() {
    const size_t expected = size_t{p_.input_count_} + p_.output_count_;
    if (p_.io_.size() != expected) {
      refuse(Rule::io, "IO has %zu records, expected %zu (%u inputs and %u outputs)", p_.io_.size(), expected,
             p_.input_count_, p_.output_count_);
    }
    std::unordered_set<std::string_view> inputs, outputs;
    aliased_.assign(p_.input_count_, false);
    for (size_t n = 0; n < p_.io_.size(); ++n) {
      const schema::IoRecord& io = p_.io_[n];
      const bool input = n < p_.input_count_;
      const uint32_t index = static_cast<uint32_t>(input ? n : n - p_.input_count_);
      const BufferKind kind = input ? BufferKind::INPUT : BufferKind::OUTPUT;
      if (io.buffer >= p_.buffers_.size() || p_.buffers_[io.buffer].kind != kind ||
          p_.buffers_[io.buffer].index != index) {
        refuse(Rule::io, "io %zu: buffer is %u, expected the buffer of %s %u", n, io.buffer, name_of(kind), index);
      }
      text("io", n, "name", io.name);
      const std::string_view name = p_.text(io.name);
      const bool printable =
          std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c < 127 && c != '/'; });
      if (name.empty() || name.size() > 255 || !printable) {
        refuse(Rule::names, "io %zu: the name has %zu characters%s, expected 1 to 255 printable ones without '/'", n,
               name.size(), printable ? "" : ", some illegal");
      }
      if (!(input ? inputs : outputs).insert(name).second) {
        refuse(Rule::names, "io %zu: the name \"%.64s\" is taken by an earlier %s", n, name.data(), name_of(kind));
      }
      if (!schema::find(io.dtype)) refuse(Rule::io, "io %zu: unknown dtype %u", n, static_cast<unsigned>(io.dtype));
      if (io.alias != kNone) {
        if (input) refuse(Rule::io, "io %zu: an input has alias %u, expected NONE", n, io.alias);
        if (io.alias >= p_.input_count_) {
          refuse(Rule::io, "io %zu: alias is %u, but there are %u inputs", n, io.alias, p_.input_count_);
        }
        if (aliased_[io.alias]) refuse(Rule::io, "io %zu: input %u is aliased by an earlier output", n, io.alias);
        aliased_[io.alias] = true;
      }
      if (io.rank > schema::kMaxDims)
        refuse(Rule::io, "io %zu: rank is %u, expected at most %d", n, io.rank, schema::kMaxDims);
      indices(Rule::io, "io", n, "dims", io.dims, io.rank);
      if (io.reserved[0] | io.reserved[1] | io.reserved[2]) refuse(Rule::reserved, "io %zu: reserved is not 0", n);
    }
  }

  // The first `count` of a record's 8 indices are values, the others NONE.
  void indices(Rule rule, const char* record, size_t n, const char* field, const uint32_t (&list)[8],
               uint32_t count) const {
    for (uint32_t d = 0; d < 8; ++d) {
      if (d < count ? list[d] >= p_.values_.size() : list[d] != kNone) {
        refuse(d < count ? rule : Rule::reserved, "%s %zu: %s[%u] is %u, expected %s", record, n, field, d, list[d],
               d < count ? "a value" : "NONE");
      }
    }
  }

  void instructions() {
    p_.uses_.assign(p_.patterns_.size(), 0);
    uint64_t pattern_next = 0, micro_next = 0;
    for (size_t n = 0; n < p_.instructions_.size(); ++n) {
      const schema::InstructionRecord& i = p_.instructions_[n];
      head(n, i);
      if (i.pattern_first != pattern_next || i.pattern_count > p_.patterns_.size() - pattern_next) {
        refuse(Rule::ranges, "instruction %zu: patterns %u and %u more, expected them to begin at %llu of %zu", n,
               i.pattern_first, i.pattern_count, static_cast<unsigned long long>(pattern_next), p_.patterns_.size());
      }
      if (i.micro_first != micro_next || i.micro_count > p_.micro_.size() - micro_next) {
        refuse(Rule::ranges, "instruction %zu: micro-operations %u and %u more, expected them to begin at %llu of %zu",
               n, i.micro_first, i.micro_count, static_cast<unsigned long long>(micro_next), p_.micro_.size());
      }
      if (i.micro_count > schema::kMaxMicro) {
        refuse(Rule::ranges, "instruction %zu: %u micro-operations, expected at most %d", n, i.micro_count,
               schema::kMaxMicro);
      }
      pattern_next += i.pattern_count;
      micro_next += i.micro_count;
      params(n, i);
      const std::span<uint8_t> uses(p_.uses_.data() + i.pattern_first, i.pattern_count);
      patterns(n, i);
      validate_micro(p_, n, i, uses);
      validate_opcode(p_, n, i, uses);
      writes(n, i, uses);
    }
    if (pattern_next != p_.patterns_.size()) {
      refuse(Rule::ranges, "the instructions own %llu patterns, but there are %zu",
             static_cast<unsigned long long>(pattern_next), p_.patterns_.size());
    }
    if (micro_next != p_.micro_.size()) {
      refuse(Rule::ranges, "the instructions own %llu micro-operations, but there are %zu",
             static_cast<unsigned long long>(micro_next), p_.micro_.size());
    }
  }

  void head(size_t n, const schema::InstructionRecord& i) const {
    if (!name_of(i.opcode))
      refuse(Rule::instruction, "instruction %zu: unknown opcode %u", n, static_cast<unsigned>(i.opcode));
    if (i.opcode == Opcode::NATIVE) {
      refuse(Rule::instruction, "instruction %zu: NATIVE is host machine code, which this runtime never runs", n);
    }
    if (!name_of(i.engine))
      refuse(Rule::instruction, "instruction %zu: unknown engine %u", n, static_cast<unsigned>(i.engine));
    if (i.flags != 0) refuse(Rule::instruction, "instruction %zu: flags are %u, expected 0", n, i.flags);
    if (i.rank > schema::kMaxDims) {
      refuse(Rule::instruction, "instruction %zu: rank is %u, expected at most %d", n, i.rank, schema::kMaxDims);
    }
    indices(Rule::instruction, "instruction", n, "extents", i.extents, i.rank);
    text("instruction", n, "debug", i.debug);
    if (i.reserved[0] | i.reserved[1]) refuse(Rule::reserved, "instruction %zu: reserved is not 0", n);
  }

  void params(size_t n, const schema::InstructionRecord& i) const {
    const schema::OpcodeInfo& info = *schema::find(i.opcode);
    for (size_t k = 0; k < 6; ++k) {
      const schema::ParamInfo& param = info.params[k];
      const uint32_t number = i.params[k];
      bool legal = true;
      switch (param.type) {
        case schema::ParamType::NUMBER:
          legal = param.name || number == 0;
          break;
        case schema::ParamType::VALUE:
          legal = number < p_.values_.size();
          break;
        case schema::ParamType::TILE_MODE:
          legal = name_of(static_cast<TileMode>(number));
          break;
        case schema::ParamType::KIND:
          legal = number <= 0xFFFF && name_of(static_cast<Kind>(number));
          break;
        case schema::ParamType::INDEX_MODE:
          legal = name_of(static_cast<IndexMode>(number));
          break;
        case schema::ParamType::COMBINE:
          legal = name_of(static_cast<Combine>(number));
          break;
      }
      if (!legal) {
        refuse(Rule::params, "instruction %zu: params[%zu] (%s of %s) is %u, which is out of range", n, k,
               param.name ? param.name : "unused", info.name, number);
      }
    }
  }

  void patterns(size_t n, const schema::InstructionRecord& i) const {
    for (size_t k = 0; k < i.pattern_count; ++k) {
      const size_t number = i.pattern_first + k;
      const schema::PatternRecord& pattern = p_.patterns_[number];
      if (pattern.buffer >= p_.buffers_.size()) {
        refuse(Rule::pattern, "pattern %zu: buffer is %u, but there are %zu", number, pattern.buffer,
               p_.buffers_.size());
      }
      if (!schema::find(pattern.dtype)) {
        refuse(Rule::pattern, "pattern %zu: unknown dtype %u", number, static_cast<unsigned>(pattern.dtype));
      }
      value(Rule::pattern, "pattern", number, "offset", pattern.offset);
      if (pattern.flags & ~1u)
        refuse(Rule::pattern, "pattern %zu: flags are %u, expected 0 or 1", number, pattern.flags);
      const uint32_t strides = stride_count(i, k);
      if (strides > schema::kMaxDims) {
        refuse(Rule::gather, "instruction %zu: %u components, expected at most %d", n, strides, schema::kMaxDims);
      }
      indices(Rule::pattern, "pattern", number, "strides", pattern.strides, strides);
    }
  }

  void writes(size_t n, const schema::InstructionRecord& i, std::span<const uint8_t> uses) const {
    for (size_t k = 0; k < uses.size(); ++k) {
      if (!(uses[k] & kWrites)) continue;
      const schema::BufferRecord& buffer = p_.buffers_[p_.patterns_[i.pattern_first + k].buffer];
      if (buffer.kind == BufferKind::CONSTANT) {
        refuse(Rule::read_only, "instruction %zu: pattern %zu writes a CONSTANT buffer", n, k);
      }
      if (buffer.kind == BufferKind::INPUT && !aliased_[buffer.index]) {
        refuse(Rule::read_only, "instruction %zu: pattern %zu writes input %u, which no output aliases", n, k,
               buffer.index);
      }
    }
  }

  Program& p_;
  const size_t texts_end_;     // in STRINGS: what begins before it is terminated
  std::vector<bool> aliased_;  // inputs whose memory an output may share
};

void validate(Program& program) { Validator(program).run(); }

}  // namespace neuron
