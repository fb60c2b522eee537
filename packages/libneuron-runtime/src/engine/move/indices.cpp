#include "engine/move/indices.h"

#include "base/error.h"
#include "engine/element.h"

namespace neuron::engine {

Indices::Indices(const BoundInstruction& i)
    : debug_(i.debug),
      name_(i.opcode == Opcode::GATHER ? "gather" : "scatter"),
      window_(i.windows[1]),
      batch_(static_cast<int>(i.params[0])),
      components_(static_cast<int>(i.params[1])),
      clamp_(static_cast<IndexMode>(i.params[3]) == IndexMode::CLAMP),
      component_stride_(i.params[2]),
      strides_(i.windows[3].strides),
      limits_(i.windows[4].strides),
      operand_strides_(i.windows[0].strides),
      other_strides_(i.windows[2].strides) {
  for (int d = 0; d < batch_; ++d) {
    extents_[d] = i.extents[d];
    count_ *= i.extents[d];
  }
}

int64_t Indices::read_any(const char* memory, int64_t element) const {
  return with_dtype(window_.dtype, [&](auto e) {
    using E = decltype(e);
    return static_cast<int64_t>(E::get(reinterpret_cast<const typename E::Stored*>(memory)[element]));
  });
}

void Indices::refuse(int64_t index, int component, int64_t position) const {
  throw Error(NRT_EXEC_OOB,
              format("%s: index %lld (component %d of index %lld) is out of range: legal are 0 to %lld%s%s", name_,
                     static_cast<long long>(index), component, static_cast<long long>(position),
                     static_cast<long long>(limits_[component]), debug_.empty() ? "" : "; in ", debug_.c_str()));
}

}  // namespace neuron::engine
