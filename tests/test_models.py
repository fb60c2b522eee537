"""Small models of the transformers library: forward and backward on the device against the CPU, eager and compiled."""

from __future__ import annotations

import pytest
import torch

import torch_neuronx

transformers = pytest.importorskip("transformers", reason="the models come from the transformers library")

CONFIGURATIONS = {
    "gpt2": lambda: transformers.GPT2Config(
        vocab_size=96, n_positions=32, n_embd=32, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=1
    ),
    "llama": lambda: transformers.LlamaConfig(
        vocab_size=96,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=32,
        bos_token_id=0,
        eos_token_id=1,
    ),
    "bert": lambda: transformers.BertConfig(
        vocab_size=96,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=32,
        pad_token_id=0,
    ),
    "t5": lambda: transformers.T5Config(
        vocab_size=96, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, pad_token_id=0, decoder_start_token_id=0
    ),
}
CLASSES = {
    "gpt2": "GPT2LMHeadModel",
    "llama": "LlamaForCausalLM",
    "bert": "BertForMaskedLM",
    "t5": "T5ForConditionalGeneration",
}


def model_and_batch(name: str) -> tuple[torch.nn.Module, dict[str, torch.Tensor]]:
    """A model with random weights, in evaluation mode (no dropout), and a batch with labels; both on the CPU."""
    torch.manual_seed(0)
    model = getattr(transformers, CLASSES[name])(CONFIGURATIONS[name]()).eval()
    ids = torch.randint(2, 96, (2, 12))
    return model, {"input_ids": ids, "labels": ids.clone()}


def step(model: torch.nn.Module, batch: dict[str, torch.Tensor], backend: str | None = None) -> dict[str, torch.Tensor]:
    """Loss, logits and every gradient of one forward and backward pass, on the CPU."""

    def forward(batch: dict[str, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        output = model(**batch, return_dict=True)
        return output.loss, output.logits

    function = torch.compile(forward, backend=backend, dynamic=False) if backend else forward
    model.zero_grad()
    loss, logits = function(batch)
    loss.backward()
    gradients = {name: p.grad.cpu().clone() for name, p in model.named_parameters() if p.grad is not None}
    return {"loss": loss.detach().cpu(), "logits": logits.detach().cpu(), **gradients}


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_a_training_step_follows_the_cpu(name: str):
    model, batch = model_and_batch(name)
    expected = step(model, batch)
    model.to("neuron")
    batch = {key: value.to("neuron") for key, value in batch.items()}
    torch_neuronx.clear_op_tracking()
    eager = step(model, batch)
    assert torch_neuronx.get_fallback_ops() == []
    compiled = step(model, batch, "neuron")
    assert torch_neuronx.get_fallback_ops() == []
    for results in (eager, compiled):
        assert results.keys() == expected.keys()
        for key, value in expected.items():
            # Gradients of small weights are sums of thousands of terms: the error is measured against the largest.
            scale = value.abs().max().clamp(min=1e-3).item()
            torch.testing.assert_close(
                results[key], value, rtol=1e-4, atol=1e-4 * scale, msg=lambda m, key=key: f"{key}: {m}"
            )


def test_tied_weights_stay_tied_on_the_device():
    model, _ = model_and_batch("gpt2")
    model.to("neuron")
    assert model.lm_head.weight is model.transformer.wte.weight
    assert model.lm_head.weight.device.type == "neuron"
