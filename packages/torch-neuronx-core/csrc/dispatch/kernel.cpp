#include "dispatch/kernel.h"

#include "dispatch/fallback.h"
#include "dispatch/operator.h"

namespace torch_neuronx::dispatch {

void register_dispatch() {
  register_operators([](Operator& op, c10::Stack* stack) { run_on_cpu(op, stack, "no op compiler is installed"); });
}

}  // namespace torch_neuronx::dispatch
