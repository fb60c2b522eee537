"""What one process compiled, the next one finds on disk, and finds without importing a compiler."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

EAGER = """
import json, sys, torch, torch_neuronx
x = torch.arange(12.0).reshape(3, 4).to("neuron").requires_grad_()
y = torch.softmax(x @ x.T, -1).relu().sum()
y.backward()
result = [y.item(), x.grad.cpu().tolist()]
"""
# torch.optim itself imports torch._dynamo, on every device; its steps are these calls.
TRAINING = """
import json, sys, torch, torch_neuronx
from torch.nn import functional as F
torch.manual_seed(0)
model = torch.nn.ModuleDict({
    "tokens": torch.nn.Embedding(20, 8), "norm": torch.nn.LayerNorm(8), "qkv": torch.nn.Linear(8, 24),
    "up": torch.nn.Linear(8, 16), "down": torch.nn.Linear(16, 8), "head": torch.nn.Linear(8, 20),
}).to("neuron")
tokens = torch.arange(12, device="neuron").reshape(2, 6)
parameters = list(model.parameters())
first, second = [[torch.zeros_like(p) for p in parameters] for _ in range(2)]
steps = [torch.zeros((), device="neuron") for _ in parameters]
def gradients():
    x = model["tokens"](tokens)
    q, k, v = model["qkv"](model["norm"](x)).chunk(3, -1)
    x = x + F.dropout(F.scaled_dot_product_attention(q, k, v, is_causal=True), 0.1)
    x = x + model["down"](F.gelu(model["up"](x))) + F.silu(x).clamp(-1, 1) + F.relu(x).abs() * 0.5
    loss = F.cross_entropy(model["head"](x).flatten(0, 1), tokens.flatten()) + (x / 2 - 1).square().mean()
    return list(torch.autograd.grad(loss, parameters))
grads = gradients()
with torch.no_grad():  # SGD with momentum, Adam
    torch._foreach_mul_(first, 0.9)
    torch._foreach_add_(first, grads, alpha=0.1)
    torch._foreach_add_(parameters, first, alpha=-0.1)
    torch._foreach_lerp_(first, grads, 0.1)
    torch._foreach_mul_(second, 0.999)
    torch._foreach_addcmul_(second, grads, grads, 0.001)
    torch._foreach_add_(steps, 1)
    root = torch._foreach_sqrt(second)
    torch._foreach_div_(root, 0.5)
    torch._foreach_add_(root, 1e-8)
    torch._foreach_addcdiv_(parameters, first, root, -0.01)
grads = gradients()
with torch.no_grad():
    torch._fused_adamw_(parameters, grads, first, second, [], steps, lr=0.01, beta1=0.9, beta2=0.999, weight_decay=0.01,
                        eps=1e-8, amsgrad=False, maximize=False)
    torch._fused_sgd_(parameters, grads, first, weight_decay=0.0, momentum=0.9, lr=0.01, dampening=0.0, nesterov=False,
                      maximize=False, is_first_step=False)
result = [float(sum(p.square().sum() for p in parameters))]
"""
COMPILED = """
import json, sys, torch, torch_neuronx
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.Linear(8, 2)).to("neuron")
step = torch.compile(lambda x: model(x).square().mean(), backend="neuron")
loss = step(torch.ones(3, 4, device="neuron"))
loss.backward()
result = [loss.item(), model[0].weight.grad.cpu().tolist()]
"""
REPORT = """
watched = "torch._dynamo", "torch._inductor", "torch_neuronx_compile.lowering", "torch_neuronx_compile.passes"
modules = [name for name in watched if name in sys.modules]
made = torch_neuronx._C._get_compilation_cache_stats()["total_compilations"]
if "torch._dynamo" in sys.modules:
    made += sum(not graph["cached"] for graph in torch.neuron.get_dynamo_metrics())
print(json.dumps({"result": result, "modules": modules, "fallbacks": torch_neuronx.get_fallback_ops(), "made": made}))
"""


def run(program: str, cache: Path) -> dict:
    environment = {**os.environ, "TORCH_NEURONX_NEFF_CACHE_DIR": str(cache)}
    command = [sys.executable, "-c", program + REPORT]
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout.splitlines()[-1])


@pytest.mark.parametrize("program", [EAGER, COMPILED], ids=["eager", "compiled"])
def test_a_second_process_compiles_nothing(program: str, tmp_path: Path):
    first, second = run(program, tmp_path), run(program, tmp_path)
    assert first["made"] > 0
    assert second["made"] == 0
    assert second["result"] == first["result"]
    assert second["fallbacks"] == []


@pytest.mark.parametrize("program", [EAGER, TRAINING], ids=["eager", "training"])
def test_an_eager_process_that_the_disk_serves_imports_no_compiler(program: str, tmp_path: Path):
    run(program, tmp_path)
    served = run(program, tmp_path)
    assert served["made"] == 0 and served["modules"] == [] and served["fallbacks"] == []
