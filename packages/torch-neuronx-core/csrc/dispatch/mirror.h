// CPU tensors that stand for the device tensors of one call while a CPU kernel runs.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "runtime/device.h"

namespace torch_neuronx::dispatch {

// Where the host can see device memory the CPU tensors share it; elsewhere the bytes are copied there and back. Tensors
// that share a storage on the device share one here. Use: note() every tensor, then mirror() each, run, write_back(),
// restore() the results.
class Mirror {
 public:
  explicit Mirror(c10::Device device);

  // Announce a tensor of the call.
  void note(const at::Tensor& tensor, bool written);
  // The CPU tensor for a device tensor that was noted; a CPU tensor stands for itself.
  at::Tensor mirror(const at::Tensor& tensor);
  // Bring what the kernel wrote, and what it resized, back to the device.
  void write_back();
  // The device tensor for a result: the noted tensor that it mirrors, a view of that tensor's memory, or a new tensor.
  // Throws for layouts that the device does not hold.
  at::Tensor restore(const at::Tensor& result) const;

 private:
  struct Memory {  // one storage of the device
    at::Storage device;
    size_t begin, end;  // bytes that the call's tensors span
    bool written;
    at::Storage host;
    void* address = nullptr;  // of `host` when it was made
  };
  struct Pair {
    at::Tensor device, host;
    size_t memory;  // position among memories_
  };

  Memory& memory_of(const at::Tensor& tensor);
  void make_host(Memory& memory) const;
  // Take over the host tensor's sizes, strides and bytes.
  void take_over(const Pair& pair);

  c10::Device device_;
  bool visible_;
  std::vector<Memory> memories_;
  std::vector<Pair> pairs_;
};

}  // namespace torch_neuronx::dispatch
