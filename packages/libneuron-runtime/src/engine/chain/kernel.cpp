#include "engine/chain/kernel.h"

#include <cstring>

#include "engine/matmul/matmul.h"
#include "engine/pool.h"
#include "engine/scratch.h"
#include "engine/tile/map.h"
#include "engine/tile/reduce.h"

namespace neuron::engine {
namespace {

class ChainKernel final : public Kernel {
 public:
  explicit ChainKernel(ChainPlan plan) : plan_(std::move(plan)) {
    for (size_t k = 0; k < plan_.lengths.size(); ++k) {
      for (BoundInstruction& member : plan_.members) {
        member.extents[0] = plan_.lengths[k];
        if (member.opcode == Opcode::MATMUL) {
          kernels_[k].push_back(prepare_matmul(member, 1));
        } else if (static_cast<TileMode>(member.params[0]) == TileMode::MAP) {
          kernels_[k].push_back(prepare_map(member));
        } else {
          kernels_[k].push_back(prepare_reduction(member));
        }
      }
    }
  }

  void run(const Launch& launch) const override {
    parallel_for(plan_.tasks, 1, [&](int64_t begin, int64_t end) {
      Scratch scratch;
      char* own = scratch.take(plan_.own_bytes);
      void** addresses = reinterpret_cast<void**>(scratch.take(plan_.windows.size() * sizeof(void*)));
      auto* scalars = reinterpret_cast<uint64_t*>(scratch.take((plan_.scalars + plan_.starts.size()) * 8));
      if (plan_.scalars) std::memcpy(scalars, launch.scalars, plan_.scalars * 8);
      for (int64_t t = begin; t < end; ++t) {
        const auto task = static_cast<size_t>(t);
        for (size_t w = 0; w < plan_.windows.size(); ++w) {
          const ChainPlan::Address& a = plan_.windows[w];
          addresses[w] = a.own >= 0 ? own + a.own : static_cast<char*>(launch.buffers[a.buffer]) + a.offsets[task];
        }
        for (size_t s = 0; s < plan_.starts.size(); ++s)
          scalars[plan_.scalars + s] = static_cast<uint64_t>(plan_.starts[s][task]);
        const Launch inner{addresses, scalars};
        for (const auto& kernel : kernels_[t % plan_.parts + 1 == plan_.parts]) kernel->run(inner);
      }
    });
  }

 private:
  ChainPlan plan_;
  std::vector<std::unique_ptr<Kernel>> kernels_[2];  // by length
};

}  // namespace

std::unique_ptr<Kernel> prepare_chain(ChainPlan plan) { return std::make_unique<ChainKernel>(std::move(plan)); }

}  // namespace neuron::engine
