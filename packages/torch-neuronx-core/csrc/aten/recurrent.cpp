// torch routes this device's LSTM and GRU cells to fused operators that only CUDA has. These compute them from smaller
// operators, forward and backward. B: batch, H: hidden size; gates lie side by side along the last dimension.
#include "aten/registration.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/sigmoid_backward.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/tanh_backward.h>
#include <torch/library.h>

#include <optional>
#include <tuple>

namespace torch_neuronx {

namespace {

using OptionalTensor = std::optional<at::Tensor>;

at::Tensor biased(const at::Tensor& gates, const OptionalTensor& bias) {
  return bias.has_value() && bias->defined() ? gates.add(*bias) : gates;
}

// [B, H] sums over the batch, for the biases.
at::Tensor bias_gradient(const at::Tensor& gradient, bool has_bias) {
  return has_bias ? gradient.sum(0) : at::Tensor();
}

// Returns hy, cy [B, H] and the activated gates [B, 4H] in the order input, forget, cell, output.
std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm_cell(const at::Tensor& input_gates, const at::Tensor& hidden_gates,
                                                         const at::Tensor& cx, const OptionalTensor& input_bias,
                                                         const OptionalTensor& hidden_bias) {
  const auto gates = biased(input_gates, input_bias).add(biased(hidden_gates, hidden_bias)).chunk(4, -1);
  const at::Tensor input = at::sigmoid(gates[0]), forget = at::sigmoid(gates[1]);
  const at::Tensor cell = at::tanh(gates[2]), output = at::sigmoid(gates[3]);
  const at::Tensor cy = forget.mul(cx).add(input.mul(cell));
  return {output.mul(at::tanh(cy)), cy, at::cat({input, forget, cell, output}, -1)};
}

// Returns the gradients of the gates [B, 4H], of cx [B, H] and of a bias [4H].
std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm_cell_backward(const OptionalTensor& grad_hy,
                                                                  const OptionalTensor& grad_cy, const at::Tensor& cx,
                                                                  const at::Tensor& cy, const at::Tensor& workspace,
                                                                  bool has_bias) {
  const auto gates = workspace.chunk(4, -1);
  const at::Tensor &input = gates[0], &forget = gates[1], &cell = gates[2], &output = gates[3];
  const at::Tensor tanh_cy = at::tanh(cy);
  at::Tensor grad_cell_state = grad_cy.has_value() && grad_cy->defined() ? *grad_cy : at::Tensor();
  at::Tensor grad_output;
  if (grad_hy.has_value() && grad_hy->defined()) {
    const at::Tensor through_hy = at::tanh_backward(grad_hy->mul(output), tanh_cy);
    grad_cell_state = grad_cell_state.defined() ? grad_cell_state.add(through_hy) : through_hy;
    grad_output = at::sigmoid_backward(grad_hy->mul(tanh_cy), output);
  } else {
    grad_output = output.mul(0);
  }
  const at::Tensor grad_gates = at::cat(
      {at::sigmoid_backward(grad_cell_state.mul(cell), input), at::sigmoid_backward(grad_cell_state.mul(cx), forget),
       at::tanh_backward(grad_cell_state.mul(input), cell), grad_output},
      -1);
  return {grad_gates, grad_cell_state.mul(forget), bias_gradient(grad_gates, has_bias)};
}

// Returns hy [B, H] and what the backward needs [B, 5H]: reset, update, new, hx, hidden part of new.
std::tuple<at::Tensor, at::Tensor> gru_cell(const at::Tensor& input_gates, const at::Tensor& hidden_gates,
                                            const at::Tensor& hx, const OptionalTensor& input_bias,
                                            const OptionalTensor& hidden_bias) {
  const auto from_input = biased(input_gates, input_bias).chunk(3, -1);
  const auto from_hidden = biased(hidden_gates, hidden_bias).chunk(3, -1);
  const at::Tensor reset = at::sigmoid(from_input[0].add(from_hidden[0]));
  const at::Tensor update = at::sigmoid(from_input[1].add(from_hidden[1]));
  const at::Tensor fresh = at::tanh(from_input[2].add(reset.mul(from_hidden[2])));
  return {fresh.add(update.mul(hx.sub(fresh))), at::cat({reset, update, fresh, hx, from_hidden[2]}, -1)};
}

// Returns the gradients of input_gates, hidden_gates [B, 3H], hx [B, H] and of the two biases [3H].
std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> gru_cell_backward(const at::Tensor& grad_hy,
                                                                                         const at::Tensor& workspace,
                                                                                         bool has_bias) {
  const auto saved = workspace.chunk(5, -1);
  const at::Tensor &reset = saved[0], &update = saved[1], &fresh = saved[2], &hx = saved[3], &hidden = saved[4];
  const at::Tensor grad_update = at::sigmoid_backward(grad_hy.mul(hx.sub(fresh)), update);
  const at::Tensor grad_fresh = at::tanh_backward(grad_hy.sub(grad_hy.mul(update)), fresh);
  const at::Tensor grad_reset = at::sigmoid_backward(grad_fresh.mul(hidden), reset);
  const at::Tensor grad_input_gates = at::cat({grad_reset, grad_update, grad_fresh}, -1);
  const at::Tensor grad_hidden_gates = at::cat({grad_reset, grad_update, grad_fresh.mul(reset)}, -1);
  return {grad_input_gates, grad_hidden_gates, grad_hy.mul(update), bias_gradient(grad_input_gates, has_bias),
          bias_gradient(grad_hidden_gates, has_bias)};
}

}  // namespace

void register_recurrent_operators() {
  static auto* library =
      new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  library->impl("_thnn_fused_lstm_cell", &lstm_cell);
  library->impl("_thnn_fused_lstm_cell_backward_impl", &lstm_cell_backward);
  library->impl("_thnn_fused_gru_cell", &gru_cell);
  library->impl("_thnn_fused_gru_cell_backward", &gru_cell_backward);
}

}  // namespace torch_neuronx
