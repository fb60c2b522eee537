#include "runtime/generator.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/scalar_tensor.h>

#include <cstring>
#include <deque>

namespace torch_neuronx {

namespace {

constexpr int64_t kStateBytes = 2 * sizeof(uint64_t);

at::Tensor int64_scalar(uint64_t value) {
  return at::scalar_tensor(static_cast<int64_t>(value), at::TensorOptions().dtype(at::kLong).device(at::kCPU));
}

}  // namespace

NeuronGenerator::NeuronGenerator(c10::DeviceIndex device)
    : c10::GeneratorImpl(c10::Device(kNeuron, device), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)) {}

void NeuronGenerator::set_current_seed(uint64_t seed) {
  std::lock_guard<std::mutex> lock(state_->mutex);
  state_->seed = seed;
  state_->offset = 0;
}

uint64_t NeuronGenerator::current_seed() const {
  std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->seed;
}

uint64_t NeuronGenerator::seed() {
  const uint64_t seed = c10::detail::getNonDeterministicRandom(/*is_cuda=*/true);
  set_current_seed(seed);
  return seed;
}

void NeuronGenerator::set_offset(uint64_t offset) {
  std::lock_guard<std::mutex> lock(state_->mutex);
  state_->offset = offset;
}

uint64_t NeuronGenerator::get_offset() const {
  std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->offset;
}

void NeuronGenerator::set_state(const c10::TensorImpl& state) {
  TORCH_CHECK(state.device().type() == at::kCPU && state.dtype() == at::kByte && state.is_contiguous() &&
                  state.numel() == kStateBytes,
              "The state of a neuron generator is a contiguous CPU tensor of ", kStateBytes,
              " bytes (seed, offset), got ", state.numel(), " elements of ", state.dtype(), " on ",
              state.device().str());
  uint64_t words[2];
  std::memcpy(words, state.data(), sizeof(words));
  std::lock_guard<std::mutex> lock(state_->mutex);
  state_->seed = words[0];
  state_->offset = words[1];
}

c10::intrusive_ptr<c10::TensorImpl> NeuronGenerator::get_state() const {
  auto tensor = at::detail::empty_cpu({kStateBytes}, at::kByte);
  std::lock_guard<std::mutex> lock(state_->mutex);
  const uint64_t words[2] = {state_->seed, state_->offset};
  std::memcpy(tensor.mutable_data_ptr(), words, sizeof(words));
  return tensor.getIntrusivePtr();
}

void NeuronGenerator::graphsafe_set_state(const c10::intrusive_ptr<c10::GeneratorImpl>& state) {
  const auto* other = dynamic_cast<const NeuronGenerator*>(state.get());
  TORCH_CHECK(other != nullptr, "Expected a neuron generator as the state of a neuron generator");
  state_ = other->state_;
}

c10::intrusive_ptr<c10::GeneratorImpl> NeuronGenerator::graphsafe_get_state() const {
  auto generator = c10::make_intrusive<NeuronGenerator>(device_.index());
  generator->state_ = state_;
  return generator;
}

#if TORCH_VERSION_MINOR >= 14
void NeuronGenerator::philox_state(uint64_t increment, at::Tensor& seed, at::Tensor& offset,
                                   at::Tensor& intragraph_offset) {
  const auto [key, first] = reserve(increment);
  seed.copy_(int64_scalar(key));
  offset.copy_(int64_scalar(first));
  intragraph_offset.copy_(int64_scalar(0));
}
#endif

std::pair<uint64_t, uint64_t> NeuronGenerator::reserve(uint64_t count) {
  std::lock_guard<std::mutex> lock(state_->mutex);
  const uint64_t first = state_->offset;
  state_->offset += count;
  return {state_->seed, first};
}

NeuronGenerator* NeuronGenerator::clone_impl() const {
  auto* copy = new NeuronGenerator(device_.index());
  std::lock_guard<std::mutex> lock(state_->mutex);
  copy->state_->seed = state_->seed;
  copy->state_->offset = state_->offset;
  return copy;
}

const at::Generator& default_generator(c10::DeviceIndex device) {
  // A deque: references stay valid. Never destroyed, like everything that an exit handler may use.
  static auto* generators = [] {
    auto* list = new std::deque<at::Generator>();
    for (c10::DeviceIndex index = 0; index < device_count(); ++index) {
      list->push_back(at::make_generator<NeuronGenerator>(index));
    }
    return list;
  }();
  const c10::DeviceIndex index = device < 0 ? current_device() : device;
  return (*generators)[static_cast<size_t>(resolve(c10::Device(kNeuron, index)))];
}

std::pair<uint64_t, uint64_t> reserve_philox(const std::optional<at::Generator>& generator, c10::DeviceIndex device,
                                             uint64_t count) {
  const at::Generator& source = generator.has_value() && generator->defined() ? *generator : default_generator(device);
  TORCH_CHECK(source.device().type() == kNeuron, "Expected a 'neuron' device type for generator but found '",
              source.device().type(), "'");
  return source.get<NeuronGenerator>()->reserve(count);
}

}  // namespace torch_neuronx
