// Whole compiled graphs: torch_neuronx._C.load, Model and Graph.
#pragma once

#include <pybind11/pybind11.h>

namespace torch_neuronx::dispatch {

void bind_graph(pybind11::module_& module);

}  // namespace torch_neuronx::dispatch
