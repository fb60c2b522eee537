// Handles of models and bound programs.
#pragma once

#include <memory>
#include <string>

#include "api/runtime.h"
#include "program/executable.h"

struct nrtx_executable {
  std::shared_ptr<const neuron::Executable> executable;
};

struct nrt_model {
  std::shared_ptr<const neuron::Program> program;
  std::shared_ptr<const neuron::Executable> frozen;  // bound at load when there are no slots
  int vnc = -1;                                      // -1: none taken yet

  nrt_model() = default;
  ~nrt_model();
  nrt_model(const nrt_model&) = delete;
  nrt_model& operator=(const nrt_model&) = delete;
  // For the functions that need a model without slots. Throws Error(NRT_INVALID).
  const neuron::Executable& bound() const;
};

namespace neuron::api {

Handles<nrt_model>& models();

}  // namespace neuron::api
