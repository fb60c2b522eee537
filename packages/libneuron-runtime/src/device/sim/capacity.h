// How much memory a simulated core may take from the host.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace neuron::sim {

inline constexpr uint64_t kModelledBytes = uint64_t{24} << 30;  // HBM of one logical NeuronCore of trn2

// Bytes that this process could still use: the smaller of MemAvailable and what the cgroup leaves. Reads below `root`
// ("" for /).
uint64_t host_free_bytes(const std::string& root = "");

// NEURON_SIM_HBM_BYTES, or min(modelled, 60 % of `free_bytes` / `visible` cores). Throws Error(NRT_INVALID) for a
// malformed variable.
uint64_t core_capacity(uint64_t free_bytes, int visible);

}  // namespace neuron::sim
