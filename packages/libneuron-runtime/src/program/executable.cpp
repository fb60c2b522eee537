#include "program/executable.h"

#include <algorithm>

#include "base/error.h"
#include "program/bind.h"

namespace neuron {

using schema::Rule;

class Binder {
 public:
  Binder(std::shared_ptr<const Program> program, std::span<const int64_t> slots)
      : e_(std::make_shared<Executable>()),
        p_(*program),
        values_(evaluate(p_, slots)),
        sizes_(buffer_sizes(p_, values_)) {
    e_->program_ = std::move(program);
  }

  std::shared_ptr<const Executable> run() {
    table();
    signature();
    uint64_t visited = 0;
    std::vector<BoundInstruction> bound(p_.instructions().size());
    for (size_t n = 0; n < bound.size(); ++n) bind_instruction(p_, n, values_, sizes_, visited, bound[n]);
    e_->kernels_ = prepare(bound, places());
    return e_;
  }

 private:
  std::vector<BufferPlace> places() const {
    std::vector<BufferPlace> result(sizes_.size());
    for (size_t n = 0; n < sizes_.size(); ++n)
      result[n] = {.kind = p_.buffers()[n].kind, .begin = values_[p_.buffers()[n].offset], .bytes = sizes_[n]};
    for (const schema::IoRecord& record : p_.io()) {
      if (record.alias != schema::kNone) result[record.buffer].alias = static_cast<int>(p_.io()[record.alias].buffer);
    }
    return result;
  }

  void table() {
    e_->temp_bytes_ = values_[p_.header().scratch_bytes];
    for (size_t n = 0; n < sizes_.size(); ++n) {
      const schema::BufferRecord& b = p_.buffers()[n];
      Executable::Slot slot{.kind = b.kind, .offset = 0};
      switch (b.kind) {
        case BufferKind::INPUT:
          slot.argument = b.index;
          break;
        case BufferKind::OUTPUT:
          slot.argument = p_.input_count() + b.index;
          break;
        case BufferKind::TEMP:
          slot.offset = values_[b.offset];
          break;
        case BufferKind::CONSTANT:
          slot.constant = p_.constants().data() + values_[b.offset];
          break;
        case BufferKind::SBUF:
          e_->sbuf_bytes_ = sizes_[n];
          break;
        case BufferKind::PSUM:
          e_->psum_bytes_ = sizes_[n];
          break;
      }
      e_->slots_.push_back(slot);
    }
  }

  void signature() {
    for (size_t n = 0; n < p_.io().size(); ++n) {
      const schema::IoRecord& record = p_.io()[n];
      Io io{.dtype = record.dtype,
            .rank = static_cast<int>(record.rank),
            .dims = {},
            .nbytes = sizes_[record.buffer],
            .alias = record.alias == schema::kNone ? -1 : static_cast<int32_t>(record.alias)};
      int64_t elements = 1;
      bool overflow = false;
      for (int d = 0; d < io.rank; ++d) {
        io.dims[d] = values_[record.dims[d]];
        overflow |= io.dims[d] < 0 || __builtin_mul_overflow(elements, std::max<int64_t>(io.dims[d], 1), &elements);
      }
      if (overflow) refuse(Rule::signature, "io %zu: its sizes are negative or their product overflows", n);
      e_->io_.push_back(io);
    }
  }

  std::shared_ptr<Executable> e_;
  const Program& p_;
  const std::vector<int64_t> values_, sizes_;
};

std::shared_ptr<const Executable> Executable::bind(std::shared_ptr<const Program> program,
                                                   std::span<const int64_t> slots) {
  return Binder(std::move(program), slots).run();
}

void Executable::run(void* const* buffers, const uint64_t* scalars, const Scratch& scratch) const {
  // Small programs need no allocation.
  constexpr size_t kOnStack = 64;
  if (slots_.size() <= kOnStack) {
    void* table[kOnStack];
    run_with(table, buffers, scalars, scratch);
  } else {
    std::vector<void*> table(slots_.size());
    run_with(table.data(), buffers, scalars, scratch);
  }
}

void Executable::run_with(void** table, void* const* buffers, const uint64_t* scalars, const Scratch& scratch) const {
  for (size_t n = 0; n < slots_.size(); ++n) {
    const Slot& slot = slots_[n];
    switch (slot.kind) {
      case BufferKind::INPUT:
      case BufferKind::OUTPUT:
        table[n] = buffers[slot.argument];
        break;
      case BufferKind::TEMP:
        table[n] = scratch.temp + slot.offset;
        break;
      case BufferKind::CONSTANT:
        table[n] = const_cast<void*>(slot.constant);
        break;  // no instruction writes it (rule read_only)
      case BufferKind::SBUF:
        table[n] = scratch.sbuf;
        break;
      case BufferKind::PSUM:
        table[n] = scratch.psum;
        break;
    }
  }
  const Launch launch{table, scalars};
  for (size_t n = 0; n < kernels_.size(); ++n) {
    if (!kernels_[n]) continue;
    try {
      kernels_[n]->run(launch);
    } catch (const Error& error) {
      throw Error(error.status(),
                  format("instruction %zu (%s): %s", n,
                         std::string(program_->text(program_->instructions()[n].debug)).c_str(), error.what()));
    }
  }
}

}  // namespace neuron
