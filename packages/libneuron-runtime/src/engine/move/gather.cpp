#include <algorithm>

#include "engine/move/indices.h"
#include "engine/move/move.h"
#include "engine/move/region.h"
#include "engine/pool.h"

namespace neuron::engine {
namespace {

constexpr double kTaskBytes = 64 << 10;  // of results, worth a thread of its own
constexpr double kIndexBytes = 32;       // what an index costs, in copied bytes

class GatherKernel final : public Kernel {
 public:
  explicit GatherKernel(const BoundInstruction& i)
      : operand_(i.windows[0]),
        out_(i.windows[2]),
        bytes_(bytes_of(out_.dtype)),
        indices_(i),
        window_(i, isa(), static_cast<int>(i.params[0]), i.rank - static_cast<int>(i.params[0]), operand_, out_) {}

  void run(const Launch& launch) const override {
    if (indices_.count() == 0 || window_.elements() == 0) return;
    const char* operand = static_cast<const char*>(launch.buffers[operand_.buffer]) + operand_.offset * bytes_;
    char* out = static_cast<char*>(launch.buffers[out_.buffer]) + out_.offset * bytes_;
    const double cost = static_cast<double>(window_.elements() * bytes_) + kIndexBytes;
    parallel_for(indices_.count(), static_cast<int64_t>(std::max(1.0, kTaskBytes / cost)),
                 [&](int64_t begin, int64_t end) {
                   if (window_.one_element()) {
                     switch (bytes_) {
                       case 1:
                         return elements<uint8_t>(launch, operand, out, begin, end);
                       case 2:
                         return elements<uint16_t>(launch, operand, out, begin, end);
                       case 4:
                         return elements<uint32_t>(launch, operand, out, begin, end);
                       default:
                         return elements<uint64_t>(launch, operand, out, begin, end);
                     }
                   }
                   indices_.each(launch, begin, end, false, [&](const Indices::Entry& e) {
                     if (e.skip) return;  // an operand without elements
                     window_.copy(operand + (e.start + e.position[0]) * bytes_, out + e.position[1] * bytes_);
                   });
                 });
  }

 private:
  template <class T>
  void elements(const Launch& launch, const char* operand, char* out, int64_t begin, int64_t end) const {
    indices_.each(launch, begin, end, false, [&](const Indices::Entry& e) {
      if (!e.skip)
        reinterpret_cast<T*>(out)[e.position[1]] = reinterpret_cast<const T*>(operand)[e.start + e.position[0]];
    });
  }

  Window operand_, out_;
  int bytes_;
  Indices indices_;
  Region window_;
};

}  // namespace

std::unique_ptr<Kernel> prepare_gather(const BoundInstruction& instruction) {
  return std::make_unique<GatherKernel>(instruction);
}

}  // namespace neuron::engine
