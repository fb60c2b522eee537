// A chain ready to run.
#pragma once

#include <vector>

#include "engine/instruction.h"

namespace neuron::engine {

struct ChainPlan {
  // Where a window of a member's slice begins.
  struct Address {
    uint32_t buffer;               // of the launch
    int64_t own;                   // offset in the thread's memory, or -1: then
    std::vector<int64_t> offsets;  // bytes in the buffer, by task
  };
  std::vector<BoundInstruction> members;  // loop dimension 0: the rows of a task; window.buffer: position in `windows`
  std::vector<Address> windows;
  std::vector<int64_t> lengths;  // rows of a task, and of the last task of a run
  int64_t tasks = 0, parts = 0;  // parts: tasks of a run
  size_t own_bytes = 0;
  size_t scalars = 0;                        // of the launch
  std::vector<std::vector<int64_t>> starts;  // scalars that follow them, by task
};
std::unique_ptr<Kernel> prepare_chain(ChainPlan plan);

}  // namespace neuron::engine
