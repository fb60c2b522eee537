// The device's random numbers: Philox4x32-10, whose whole state is a seed and an offset.
#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/GeneratorImpl.h>
#include <torch/headeronly/version.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "runtime/device.h"

namespace torch_neuronx {

// Shared by the generators that graphsafe_set_state made one.
struct PhiloxState {
  std::mutex mutex;
  uint64_t seed = c10::default_rng_seed_val;
  uint64_t offset = 0;
};

// Safe to use from several threads at once: each call is atomic.
struct NeuronGenerator final : c10::GeneratorImpl {
  explicit NeuronGenerator(c10::DeviceIndex device);

  void set_current_seed(uint64_t seed) override;  // also returns the offset to 0
  uint64_t current_seed() const override;
  uint64_t seed() override;  // takes a seed from the system's entropy and returns it
  void set_offset(uint64_t offset) override;
  uint64_t get_offset() const override;

  // 16 bytes on the CPU: seed, then offset, as the machine's uint64.
  void set_state(const c10::TensorImpl& state) override;
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override;
  // From then on this generator and `state` draw from one sequence.
  void graphsafe_set_state(const c10::intrusive_ptr<c10::GeneratorImpl>& state) override;
  // A generator that draws from this one's sequence.
  c10::intrusive_ptr<c10::GeneratorImpl> graphsafe_get_state() const override;
#if TORCH_VERSION_MINOR >= 14
  void philox_state(uint64_t increment, at::Tensor& seed, at::Tensor& offset, at::Tensor& intragraph_offset) override;
#endif

  static c10::DeviceType device_type() { return kNeuron; }

  // Reserve `count` counters: returns (seed, first offset).
  std::pair<uint64_t, uint64_t> reserve(uint64_t count);

 private:
  NeuronGenerator* clone_impl() const override;

  std::shared_ptr<PhiloxState> state_ = std::make_shared<PhiloxState>();
};

// The generator used when none is given. Does not start the runtime.
const at::Generator& default_generator(c10::DeviceIndex device);

// Reserve `count` counters of `generator`, or of the device's default one, in program order. Throws for a generator of
// another device type.
std::pair<uint64_t, uint64_t> reserve_philox(const std::optional<at::Generator>& generator, c10::DeviceIndex device,
                                             uint64_t count);

}  // namespace torch_neuronx
