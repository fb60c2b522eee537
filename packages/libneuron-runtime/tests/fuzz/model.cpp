#include "model.h"

#include <algorithm>
#include <cstring>
#include <map>

namespace neuron::fuzz {

namespace {

template <class T>
std::vector<T> table(std::span<const std::byte> program, const schema::SectionRecord& row) {
  const uint64_t room = row.offset < program.size() ? (program.size() - row.offset) / sizeof(T) : 0;
  std::vector<T> list(static_cast<size_t>(std::min(row.count, room)));
  if (!list.empty()) std::memcpy(list.data(), program.data() + row.offset, list.size() * sizeof(T));
  return list;
}

// `count` entries from `first`, as far as they exist.
template <class T>
std::vector<T> part(const std::vector<T>& list, uint64_t first, uint64_t count) {
  first = std::min<uint64_t>(first, list.size());
  count = std::min<uint64_t>(count, list.size() - first);
  const auto begin = list.begin() + static_cast<ptrdiff_t>(first);
  return {begin, begin + static_cast<ptrdiff_t>(count)};
}

}  // namespace

std::optional<Model> read(std::span<const std::byte> program) {
  schema::HeaderRecord header;
  if (program.size() < sizeof(header)) return std::nullopt;
  std::memcpy(&header, program.data(), sizeof(header));
  const size_t room = (program.size() - sizeof(header)) / sizeof(schema::SectionRecord);
  if (header.section_count == 0 || header.section_count > room) return std::nullopt;
  std::vector<schema::SectionRecord> rows(header.section_count);
  std::memcpy(rows.data(), program.data() + sizeof(header), rows.size() * sizeof(rows[0]));
  Model m;
  m.p.slot_count = header.slot_count;
  m.p.scalar_count = header.scalar_count;
  m.p.scratch = header.scratch_bytes;
  std::vector<schema::InstructionRecord> instructions;
  std::vector<schema::PatternRecord> patterns;
  std::vector<schema::MicroRecord> micro;
  for (const schema::SectionRecord& row : rows) {
    switch (row.kind) {
      case SectionKind::VALUES:
        m.p.values = table<schema::ValueRecord>(program, row);
        break;
      case SectionKind::GUARDS:
        m.p.guards = table<schema::GuardRecord>(program, row);
        break;
      case SectionKind::BUFFERS:
        m.p.buffers = table<schema::BufferRecord>(program, row);
        break;
      case SectionKind::IO:
        m.p.io = table<schema::IoRecord>(program, row);
        break;
      case SectionKind::INSTRUCTIONS:
        instructions = table<schema::InstructionRecord>(program, row);
        break;
      case SectionKind::PATTERNS:
        patterns = table<schema::PatternRecord>(program, row);
        break;
      case SectionKind::MICRO:
        micro = table<schema::MicroRecord>(program, row);
        break;
      case SectionKind::CONSTANTS:
        m.p.constants = table<std::byte>(program, row);
        break;
      case SectionKind::STRINGS: {
        const auto text = table<char>(program, row);
        m.p.strings.assign(text.begin(), text.end());
        break;
      }
    }
  }
  for (const schema::InstructionRecord& i : instructions) {
    m.nodes.push_back({i, part(patterns, i.pattern_first, i.pattern_count), part(micro, i.micro_first, i.micro_count)});
  }
  return m;
}

std::vector<std::byte> write(const Model& model) {
  test::ProgramBuilder p = model.p;
  for (const Node& node : model.nodes) {
    schema::InstructionRecord& i = p.instructions.emplace_back(node.record);
    i.pattern_first = static_cast<uint32_t>(p.patterns.size());
    i.pattern_count = static_cast<uint32_t>(node.patterns.size());
    i.micro_first = static_cast<uint32_t>(p.micro.size());
    i.micro_count = static_cast<uint32_t>(node.micro.size());
    p.patterns.insert(p.patterns.end(), node.patterns.begin(), node.patterns.end());
    p.micro.insert(p.micro.end(), node.micro.begin(), node.micro.end());
  }
  return p.bytes();
}

std::vector<RecordView> records(Model& m, SectionKind section) {
  std::vector<RecordView> result;
  const auto add = [&](auto& list, std::span<const schema::FieldInfo> fields) {
    for (auto& record : list) result.push_back({reinterpret_cast<std::byte*>(&record), fields});
  };
  switch (section) {
    case SectionKind::VALUES:
      add(m.p.values, schema::kValueFields);
      break;
    case SectionKind::GUARDS:
      add(m.p.guards, schema::kGuardFields);
      break;
    case SectionKind::BUFFERS:
      add(m.p.buffers, schema::kBufferFields);
      break;
    case SectionKind::IO:
      add(m.p.io, schema::kIoFields);
      break;
    case SectionKind::INSTRUCTIONS:
      for (Node& node : m.nodes)
        result.push_back({reinterpret_cast<std::byte*>(&node.record), schema::kInstructionFields});
      break;
    case SectionKind::PATTERNS:
      for (Node& node : m.nodes) add(node.patterns, schema::kPatternFields);
      break;
    case SectionKind::MICRO:
      for (Node& node : m.nodes) add(node.micro, schema::kMicroFields);
      break;
    case SectionKind::CONSTANTS:
    case SectionKind::STRINGS:
      break;  // bytes
  }
  return result;
}

uint64_t get(const RecordView& record, const schema::FieldInfo& field, size_t element) {
  uint64_t number = 0;  // little-endian
  std::memcpy(&number, record.bytes + field.offset + element * field.width, field.width);
  return number;
}

void put(const RecordView& record, const schema::FieldInfo& field, size_t element, uint64_t number) {
  std::memcpy(record.bytes + field.offset + element * field.width, &number, field.width);
}

uint32_t constant(Model& m, int64_t number) {
  for (uint32_t n = 0; n < m.p.values.size(); ++n) {
    if (m.p.values[n].op == ValueOp::CONST && m.p.values[n].imm == number) return n;
  }
  return m.p.number(number);
}

void sweep(Model& m) {
  const size_t count = m.p.values.size();
  std::vector<bool> used(count);
  each_value_index(m, [&](uint32_t& index) {
    if (index < count) used[index] = true;
  });
  for (size_t n = count; n-- > 0;) {
    const schema::ValueRecord& value = m.p.values[n];
    if (!used[n] || value.op == ValueOp::CONST || value.op == ValueOp::SLOT) continue;
    if (value.a < n) used[value.a] = true;
    if (value.op != ValueOp::ALIGN && value.b < n) used[value.b] = true;
  }
  std::vector<uint32_t> place(count, schema::kNone);
  std::vector<schema::ValueRecord> kept;
  for (size_t n = 0; n < count; ++n) {
    if (!used[n]) continue;
    place[n] = static_cast<uint32_t>(kept.size());
    schema::ValueRecord value = m.p.values[n];
    if (value.op != ValueOp::CONST && value.op != ValueOp::SLOT) {
      if (value.a < n) value.a = place[value.a];
      if (value.op != ValueOp::ALIGN && value.b < n) value.b = place[value.b];
    }
    kept.push_back(value);
  }
  each_value_index(m, [&](uint32_t& index) {
    if (index < count) index = place[index];
  });
  m.p.values = std::move(kept);
}

void import(Model& to, size_t at, const Model& from, size_t number, Random& random) {
  Node node = from.nodes[number];
  std::map<uint32_t, uint32_t> values, buffers;
  const auto value = [&](auto& self, uint32_t index) -> uint32_t {
    if (index >= from.p.values.size()) return index;
    if (const auto found = values.find(index); found != values.end()) return found->second;
    schema::ValueRecord copy = from.p.values[index];
    if (copy.op == ValueOp::CONST) return values[index] = constant(to, copy.imm);
    if (copy.op != ValueOp::SLOT) {
      if (copy.a < index) copy.a = self(self, copy.a);
      if (copy.b < index && copy.op != ValueOp::ALIGN) copy.b = self(self, copy.b);
    } else {
      to.p.slot_count = std::max(to.p.slot_count, static_cast<uint32_t>(copy.imm + 1) & 7);
    }
    to.p.values.push_back(copy);
    return values[index] = static_cast<uint32_t>(to.p.values.size() - 1);
  };
  const auto buffer = [&](uint32_t index) -> uint32_t {
    if (index >= from.p.buffers.size()) return index;
    if (const auto found = buffers.find(index); found != buffers.end()) return found->second;
    const schema::BufferRecord& copy = from.p.buffers[index];
    // Half of the buffers are new, the others take the place of one that is here, so that instructions meet.
    if (random.chance(2)) {
      std::vector<uint32_t> same;
      for (uint32_t n = 0; n < to.p.buffers.size(); ++n) {
        if (to.p.buffers[n].kind == copy.kind) same.push_back(n);
      }
      if (!same.empty()) return buffers[index] = random.of(same);
    }
    to.p.buffers.push_back({copy.kind, copy.index, value(value, copy.offset), value(value, copy.nbytes)});
    return buffers[index] = static_cast<uint32_t>(to.p.buffers.size() - 1);
  };
  for (uint32_t& extent : node.record.extents) extent = value(value, extent);
  if (const schema::OpcodeInfo* info = schema::find(node.record.opcode)) {
    for (size_t k = 0; k < 6; ++k) {
      if (info->params[k].type == schema::ParamType::VALUE) node.record.params[k] = value(value, node.record.params[k]);
    }
  }
  for (auto& pattern : node.patterns) {
    pattern.buffer = buffer(pattern.buffer);
    pattern.offset = value(value, pattern.offset);
    for (uint32_t& stride : pattern.strides) stride = value(value, stride);
  }
  for (auto& micro : node.micro) {
    if (micro.source == ImmSource::VALUE && micro.op == Micro::CONST)
      micro.imm = value(value, static_cast<uint32_t>(micro.imm));
  }
  if (to.p.strings.empty()) to.p.strings.assign(1, '\0');
  node.record.debug = 0;
  to.p.scalar_count = std::max(to.p.scalar_count, std::min(from.p.scalar_count, 8u));
  to.nodes.insert(to.nodes.begin() + static_cast<ptrdiff_t>(std::min(at, to.nodes.size())), std::move(node));
}

const Model& sample(Random& random) {
  static const std::vector<Model> models = [] {
    std::vector<Model> list;
    for (const test::Sample& one : test::samples()) {
      Model model = *read(one.bytes);
      for (size_t n = 0; n < 8; ++n) {
        model.launch.slots[n] = one.slots.empty() ? 3 : one.slots[n % one.slots.size()];
        model.launch.scalars[n] = one.scalars.empty() ? 5 : one.scalars[n % one.scalars.size()];
      }
      list.push_back(std::move(model));
    }
    return list;
  }();
  return random.of(models);
}

}  // namespace neuron::fuzz
