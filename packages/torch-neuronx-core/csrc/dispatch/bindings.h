// Everything that csrc/dispatch adds to the module _C.
#pragma once

#include <pybind11/pybind11.h>

namespace torch_neuronx::dispatch {

void bind_dispatch(pybind11::module_& module);

}  // namespace torch_neuronx::dispatch
