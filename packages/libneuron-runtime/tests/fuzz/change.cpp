// Random changes of a model: of any field, by the schema's tables, and of whole instructions, operations and buffers.
#include <algorithm>
#include <limits>

#include "model.h"

namespace neuron::fuzz {

namespace {

using schema::kNone;

// Sizes around the edges of vectors, blocks and types.
int64_t size_like(Random& random) {
  constexpr int64_t kSizes[] = {0,  1,  2,  3,  4,  5,   7,   8,   9,   15,  16,  17,   31,   32,
                                33, 63, 64, 65, 96, 127, 128, 129, 255, 256, 257, 1023, 1024, 1025};
  return random.chance(3) ? static_cast<int64_t>(random.below(20)) : random.of(kSizes);
}

int64_t odd_number(Random& random) {
  constexpr int64_t kLow = std::numeric_limits<int64_t>::min(), kHigh = std::numeric_limits<int64_t>::max();
  constexpr int64_t kNumbers[] = {
      -1,    -2,       -8,        INT32_MAX,        INT32_MIN, int64_t{1} << 32, UINT32_MAX, kLow,
      kHigh, kLow + 1, kHigh - 1, int64_t{1} << 40, 255,       int64_t{1} << 46, kHigh / 4,  int64_t{1} << 61,
      65535, kLow / 8};
  return random.of(kNumbers);
}

size_t count_of(Model& m, uint8_t section) {
  switch (static_cast<SectionKind>(section)) {
    case SectionKind::STRINGS:
      return m.p.strings.size();
    case SectionKind::CONSTANTS:
      return m.p.constants.size();
    default:
      return records(m, static_cast<SectionKind>(section)).size();
  }
}

void field(Model& m, Random& random) {
  const auto section = static_cast<SectionKind>(random.of(schema::kSectionCodes));
  const auto list = records(m, section);
  if (list.empty()) return;
  const RecordView& record = list[random.below(list.size())];
  const schema::FieldInfo& info = random.of(record.fields);
  const size_t element = random.below(info.repeat);
  uint64_t number = get(record, info, element);
  if (!info.codes.empty() && !random.chance(16)) {
    number = random.of(info.codes);
  } else if (info.ref != 0 && !random.chance(16)) {
    number = random.chance(12) ? kNone : random.below(count_of(m, info.ref));
  } else {
    switch (random.below(4)) {
      case 0:
        number += random.below(5) - 2;
        break;
      case 1:
        number ^= uint64_t{1} << random.below(8 * info.width);
        break;
      case 2:
        number = static_cast<uint64_t>(odd_number(random));
        break;
      default:
        number = static_cast<uint64_t>(size_like(random));
    }
  }
  put(record, info, element, number);
}

void header(Model& m, Random& random) {
  uint32_t* const fields[] = {&m.p.slot_count, &m.p.scalar_count, &m.p.scratch};
  *random.of(fields) = static_cast<uint32_t>(random.chance(4) ? odd_number(random) : size_like(random));
}

void value(Model& m, Random& random) {
  auto& values = m.p.values;
  if (values.empty()) return;
  auto& v = random.of(values);
  if (v.op == ValueOp::CONST && !random.chance(4)) {
    v.imm = random.chance(24) ? odd_number(random) : random.chance(8) ? -size_like(random) : size_like(random);
  } else if (random.chance(2) && m.p.slot_count > 0) {
    v = {ValueOp::SLOT, 0, 0, 0, static_cast<int64_t>(random.below(m.p.slot_count))};
  } else {
    const auto count = static_cast<uint32_t>(values.size());
    const auto operand = [&] { return static_cast<uint32_t>(random.below(count)); };
    const auto op = static_cast<ValueOp>(2 + random.below(8));
    const uint32_t a = operand(), b = op == ValueOp::ALIGN ? 0 : operand();
    values.push_back({op, a, b, 0, op == ValueOp::ALIGN ? 1 + size_like(random) : 0});
    // Someone uses it from now on.
    std::vector<uint32_t*> uses;
    each_value_index(m, [&](uint32_t& index) {
      if (index < count) uses.push_back(&index);
    });
    if (!uses.empty()) *random.of(uses) = count;
  }
}

void launch(Model& m, Random& random) {
  switch (random.below(4)) {
    case 0:
      m.launch.slots[random.below(8)] = random.chance(12) ? odd_number(random) : size_like(random);
      break;
    case 1:
      m.launch.scalars[random.below(8)] = random.chance(2) ? random.next() : static_cast<uint64_t>(size_like(random));
      break;
    case 2:
      m.launch.seed = static_cast<uint32_t>(random.next());
      break;
    default:
      m.launch.flags ^= 1u << random.below(6);
  }
}

Node* node(Model& m, Random& random) { return m.nodes.empty() ? nullptr : &random.of(m.nodes); }

void nodes(Model& m, Random& random) {
  const size_t at = random.below(m.nodes.size() + 1);
  const auto place = [&](size_t n) { return m.nodes.begin() + static_cast<ptrdiff_t>(n); };
  switch (random.below(5)) {
    case 0:
      if (m.nodes.size() > 1) m.nodes.erase(place(random.below(m.nodes.size())));
      break;
    case 1:
      if (!m.nodes.empty() && m.nodes.size() < 12) {
        Node copy = random.of(m.nodes);
        m.nodes.insert(place(at), std::move(copy));
      }
      break;
    case 2:
      if (m.nodes.size() > 1) std::swap(random.of(m.nodes), random.of(m.nodes));
      break;
    default: {
      const Model& from = sample(random);
      if (m.nodes.size() < 12) import(m, at, from, random.below(from.nodes.size()), random);
    }
  }
}

void opcode(Model& m, Random& random) {
  if (Node* n = node(m, random)) {
    n->record.opcode = static_cast<Opcode>(random.of(schema::kOpcodeCodes));
    for (uint32_t& param : n->record.params) param = static_cast<uint32_t>(random.below(4));
  }
}

void param(Model& m, Random& random) {
  if (Node* n = node(m, random)) n->record.params[random.below(6)] = static_cast<uint32_t>(random.below(6));
}

// One more, one fewer or two exchanged loop dimensions, in extents and strides alike.
void dimensions(Model& m, Random& random) {
  Node* n = node(m, random);
  if (!n) return;
  uint32_t& rank = n->record.rank;
  std::vector<uint32_t*> lists = {n->record.extents};
  for (auto& pattern : n->patterns) lists.push_back(pattern.strides);
  const uint32_t now = std::min(rank, 8u);
  switch (random.below(3)) {
    case 0:
      if (now == 8) return;
      for (uint32_t* list : lists) {
        const size_t at = random.below(now + 1);
        std::copy_backward(list + at, list + now, list + now + 1);
        list[at] = constant(m, size_like(random));
      }
      rank = now + 1;
      break;
    case 1: {
      if (now == 0) return;
      const size_t at = random.below(now);
      for (uint32_t* list : lists) {
        std::copy(list + at + 1, list + now, list + at);
        list[now - 1] = kNone;
      }
      rank = now - 1;
      break;
    }
    default: {
      if (now < 2) return;
      const size_t a = random.below(now), b = random.below(now);
      for (uint32_t* list : lists) std::swap(list[a], list[b]);
    }
  }
}

void pattern(Model& m, Random& random) {
  Node* n = node(m, random);
  if (!n || n->patterns.empty()) return;
  auto& one = random.of(n->patterns);
  switch (random.below(6)) {
    case 0:
      one.dtype = static_cast<Dtype>(random.of(schema::kDtypeCodes));
      break;
    case 1: {  // all of them, which keeps most instructions whole
      const auto dtype = static_cast<Dtype>(random.of(schema::kDtypeCodes));
      for (auto& other : n->patterns) other.dtype = dtype;
      break;
    }
    case 2:
      one.strides[random.below(std::max(1u, std::min(n->record.rank, 8u)))] =
          constant(m, random.chance(3) ? -1 - static_cast<int64_t>(random.below(4)) : size_like(random));
      break;
    case 3:
      one.offset = constant(m, size_like(random));
      break;
    case 4:
      if (n->patterns.size() < 12) {
        const auto copy = one;
        n->patterns.push_back(copy);
      }
      break;
    default:
      one.flags ^= 1;
      if (!m.p.buffers.empty()) one.buffer = static_cast<uint32_t>(random.below(m.p.buffers.size()));
  }
}

schema::MicroRecord operation(Random& random) {
  const auto small = [&] { return static_cast<uint16_t>(random.below(6)); };
  const bool real = random.chance(2);
  const auto number = static_cast<double>(odd_number(random)) * 1e-3;
  return {static_cast<Micro>(random.of(schema::kMicroCodes)),
          static_cast<Kind>(random.of(schema::kKindCodes)),
          static_cast<uint16_t>(random.below(schema::kMaxMicro)),
          small(),
          small(),
          small(),
          static_cast<ImmSource>(random.of(schema::kImmSourceCodes)),
          static_cast<Kind>(random.of(schema::kKindCodes)),
          real ? __builtin_bit_cast(uint64_t, number) : random.below(9)};
}

void micro(Model& m, Random& random) {
  Node* n = node(m, random);
  if (!n) return;
  auto& list = n->micro;
  const auto at = list.begin() + static_cast<ptrdiff_t>(random.below(list.size() + 1));
  switch (random.below(4)) {
    case 0:
      if (!list.empty()) list.erase(list.begin() + static_cast<ptrdiff_t>(random.below(list.size())));
      break;
    case 1:
      if (!list.empty()) random.of(list).op = static_cast<Micro>(random.of(schema::kMicroCodes));
      break;
    default: {
      if (list.size() >= 48) return;
      // The operations behind read it, if they can.
      const schema::MicroRecord added = operation(random);
      for (auto later = list.insert(at, added) + 1; later != list.end(); ++later) {
        if (random.chance(2)) later->a = added.dst;
        if (random.chance(4)) later->b = added.dst;
      }
    }
  }
}

void buffers(Model& m, Random& random) {
  auto& list = m.p.buffers;
  const auto kind = static_cast<BufferKind>(random.of(schema::kBufferKindCodes));
  if (list.empty() || (random.chance(2) && list.size() < 12)) {
    const uint32_t zero = constant(m, 0);
    list.push_back({kind, 0, zero, constant(m, 64 * size_like(random))});
  } else {
    random.of(list).kind = kind;
  }
  if (!m.p.io.empty() && random.chance(2)) {
    auto& io = random.of(m.p.io);
    io.alias = random.chance(2) ? kNone : static_cast<uint32_t>(random.below(m.p.io.size()));
  }
}

void guards(Model& m, Random& random) {
  auto& list = m.p.guards;
  const auto any = [&] { return static_cast<uint32_t>(random.below(m.p.values.size())); };
  if (!list.empty() && random.chance(2)) {
    list.erase(list.begin() + static_cast<ptrdiff_t>(random.below(list.size())));
  } else if (list.size() < 4) {
    list.push_back({static_cast<GuardOp>(random.of(schema::kGuardOpCodes)), any(), any(), 0});
  }
}

void texts(Model& m, Random& random) {
  auto& strings = m.p.strings;
  if (!strings.empty() && random.chance(2)) {
    random.of(strings) = static_cast<char>(random.below(256));
  } else if (strings.size() < 600) {
    strings.insert(random.below(strings.size() + 1), random.chance(8) ? 300 : 1,
                   static_cast<char>('a' + random.below(26)));
  }
}

}  // namespace

void change(Model& m, Random& random) {
  using Change = void (*)(Model&, Random&);
  constexpr Change kChanges[] = {field,   field,   field,  value, value,      launch,     launch,
                                 nodes,   nodes,   opcode, param, dimensions, dimensions, pattern,
                                 pattern, pattern, micro,  micro, micro,      buffers,    guards};
  for (uint64_t n = 1 + random.below(3); n > 0; --n) random.of(kChanges)(m, random);
  if (random.chance(40)) header(m, random);
  if (random.chance(60)) texts(m, random);
}

}  // namespace neuron::fuzz
