// DMA: a copy, or a conversion, which is a TILE of one LOAD and one STORE.
#include <algorithm>

#include "engine/fence.h"
#include "engine/move/move.h"
#include "engine/move/region.h"
#include "engine/pool.h"
#include "engine/tile/cost.h"
#include "engine/tile/map.h"

namespace neuron::engine {
namespace {

constexpr int64_t kTaskBytes = 128 << 10;  // worth a thread of its own: about 10 us

class CopyKernel final : public Kernel {
 public:
  explicit CopyKernel(const BoundInstruction& i)
      : from_(i.windows[0]),
        to_(i.windows[1]),
        bytes_(bytes_of(to_.dtype)),
        region_(i, isa(), 0, i.rank, from_, to_),
        stream_(region_.elements() * bytes_ >= kStreamBytes) {}

  void run(const Launch& launch) const override {
    const char* from = static_cast<const char*>(launch.buffers[from_.buffer]) + from_.offset * bytes_;
    char* to = static_cast<char*>(launch.buffers[to_.buffer]) + to_.offset * bytes_;
    const int64_t blocks = region_.blocks();
    if (blocks == 0) return;
    const int64_t grain = std::max<int64_t>(1, kTaskBytes / region_.block_bytes());
    parallel_for(blocks, grain, [&](int64_t begin, int64_t end) {
      region_.copy(from, to, begin, end, stream_);
      if (stream_) store_fence();
    });
  }

 private:
  Window from_, to_;
  int bytes_;
  Region region_;
  bool stream_;
};

}  // namespace

std::unique_ptr<Kernel> prepare_dma(const BoundInstruction& instruction) {
  const Dtype from = instruction.windows[0].dtype, to = instruction.windows[1].dtype;
  if (from == to) return std::make_unique<CopyKernel>(instruction);
  BoundInstruction tile = instruction;
  tile.opcode = Opcode::TILE;
  tile.params = {};
  tile.micro.clear();
  MicroOp load;
  load.op = Micro::LOAD;
  load.kind = kind_of(from);
  tile.micro.push_back(load);
  uint16_t value = 0;
  if (kind_of(from) != kind_of(to)) {
    MicroOp convert;
    if (to == Dtype::BOOL) {  // any number that is not 0, where a conversion to I32 would lose bits
      MicroOp zero;
      zero.kind = kind_of(from);
      zero.dst = 1;
      tile.micro.push_back(zero);
      convert.op = Micro::NE;
      convert.kind = kind_of(from);
      convert.b = 1;
    } else {
      convert.op = Micro::CONVERT;
      convert.kind = kind_of(to);
      convert.from = kind_of(from);
    }
    convert.dst = value = 2;
    tile.micro.push_back(convert);
  }
  MicroOp store;
  store.op = Micro::STORE;
  store.kind = kind_of(to);
  store.dst = 1;
  store.a = value;
  tile.micro.push_back(store);
  return prepare_map(tile);
}

}  // namespace neuron::engine
