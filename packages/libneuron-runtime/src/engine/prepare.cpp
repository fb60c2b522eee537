#include "base/error.h"
#include "engine/chain/chain.h"
#include "engine/instruction.h"
#include "engine/matmul/matmul.h"
#include "engine/move/move.h"
#include "engine/tile/map.h"
#include "engine/tile/reduce.h"

namespace neuron {

std::unique_ptr<Kernel> prepare(const BoundInstruction& instruction) {
  using namespace engine;
  switch (instruction.opcode) {
    case Opcode::TILE:
      if (static_cast<TileMode>(instruction.params[0]) == TileMode::MAP) return prepare_map(instruction);
      return prepare_reduction(instruction);
    case Opcode::MATMUL:
      return prepare_matmul(instruction);
    case Opcode::DMA:
      return prepare_dma(instruction);
    case Opcode::GATHER:
      return prepare_gather(instruction);
    case Opcode::SCATTER:
      return prepare_scatter(instruction);
    case Opcode::SCAN:
      return prepare_scan(instruction);
    case Opcode::TENSOR_TENSOR:
      return prepare_map(instruction);
    default:
      break;
  }
  throw Error(NRT_UNSUPPORTED_NEFF_VERSION,
              format("this build does not run opcode %u", static_cast<unsigned>(instruction.opcode)));
}

std::vector<std::unique_ptr<Kernel>> prepare(std::span<const BoundInstruction> program,
                                             std::span<const BufferPlace> buffers) {
  std::vector<std::unique_ptr<Kernel>> kernels(program.size());
  std::vector<char> done(program.size());
  for (size_t i = 0; i < program.size(); ++i) {
    if (done[i]) continue;
    const engine::Chain chain(program, buffers, i);
    if (chain.members().size() == 1) {
      kernels[i] = prepare(program[i]);
      continue;
    }
    for (const size_t member : chain.members()) done[member] = 1;
    kernels[i] = chain.prepare();
  }
  return kernels;
}

}  // namespace neuron
