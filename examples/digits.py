"""Train two small classifiers of handwritten digits on the device "neuron", eagerly and compiled, beside the CPU.

    python examples/digits.py                                   # everything, about two minutes
    python examples/digits.py --model mlp --mode eager --epochs 5
    python examples/digits.py --device cpu --losses cpu.json    # only the CPU's side

The data are scikit-learn's 1,797 images of 8x8 pixels; the last 360 of a fixed permutation are kept for the test. Both
sides start from the same weights and see the same batches in the same order, so their losses can be compared step by
step (`--losses FILE` writes them).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from tqdm import tqdm

TEST_IMAGES = 360
BATCH = 64
COMPILERS = {"cpu": "inductor", "neuron": "neuron"}


class Mlp(nn.Module):
    """(batch, 64) fp32 pixels -> (batch, 10) logits."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.layers(images)


class Block(nn.Module):
    """A pre-norm transformer block: attention, then a two-layer perceptron, each added to its input."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, tokens, width = x.shape
        qkv = self.qkv(self.norm1(x)).view(batch, tokens, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        attended = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, tokens, width)
        x = x + self.out(attended)
        return x + self.mlp(self.norm2(x))


class Transformer(nn.Module):
    """(batch, 64) fp32 pixels -> (batch, 10) logits; each of the eight rows of an image is one token."""

    def __init__(self, width: int = 64, heads: int = 4, depth: int = 2) -> None:
        super().__init__()
        self.embed = nn.Linear(8, width)
        self.position = nn.Parameter(0.02 * torch.randn(8, width))
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = self.embed(images.view(-1, 8, 8)) + self.position
        return self.head(self.norm(self.blocks(x)).mean(1))


MODELS = {"mlp": (Mlp, 60), "transformer": (Transformer, 20)}  # class, epochs


@dataclass
class Data:
    """Images are (n, 64) fp32 in [0, 1], labels (n,) int64; all on the CPU."""

    train_images: torch.Tensor
    train_labels: torch.Tensor
    test_images: torch.Tensor
    test_labels: torch.Tensor

    @staticmethod
    def load() -> Data:
        digits = load_digits()
        order = torch.randperm(len(digits.target), generator=torch.Generator().manual_seed(0))
        images = torch.tensor(digits.data, dtype=torch.float32)[order] / 16
        labels = torch.tensor(digits.target, dtype=torch.int64)[order]
        return Data(images[:-TEST_IMAGES], labels[:-TEST_IMAGES], images[-TEST_IMAGES:], labels[-TEST_IMAGES:])


@dataclass
class Result:
    accuracy: float = 0.0
    first_step: float = 0.0  # seconds, compilation included
    epochs: list[float] = field(default_factory=list)  # seconds each; the first without its first step
    losses: list[float] = field(default_factory=list)  # one a step
    imported: int = 0  # modules of torch.compile's machinery that the loop imported

    @property
    def epoch(self) -> float:
        """Seconds of a typical epoch: the median."""
        return sorted(self.epochs)[len(self.epochs) // 2]


def compiler_modules() -> set[str]:
    """torch.compile's machinery, as far as it is imported. Creating a torch optimizer imports some; eager work none."""
    return {name for name in sys.modules if name.startswith(("torch._dynamo", "torch._inductor"))}


def train(name: str, mode: str, device: str, data: Data, epochs: int, seed: int) -> Result:
    """Train model `name` ("mlp", "transformer") in mode "eager" or "compiled" and test it."""
    torch.manual_seed(seed)
    model = MODELS[name][0]().to(device)  # initialised on the CPU: the same weights for every device
    optimizer = torch.optim.AdamW(model.parameters())
    imported_before = compiler_modules()

    def loss_of(images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(model(images), labels)

    step = torch.compile(loss_of, backend=COMPILERS[device], dynamic=False) if mode == "compiled" else loss_of
    order = torch.Generator().manual_seed(seed)
    steps = len(data.train_labels) // BATCH  # the last, smaller batch is left out: one shape, one program
    result = Result()
    with tqdm(total=epochs * steps, desc=f"{name}, {mode}, {device}", unit="step") as bar:
        for _ in range(epochs):
            start = time.perf_counter()
            for batch in torch.randperm(len(data.train_labels), generator=order)[: steps * BATCH].split(BATCH):
                images, labels = data.train_images[batch].to(device), data.train_labels[batch].to(device)
                loss = step(images, labels)
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
                result.losses.append(loss.item())
                if not result.first_step:
                    result.first_step = time.perf_counter() - start
                    start = time.perf_counter()
                bar.set_postfix(loss=f"{result.losses[-1]:.3f}", refresh=False)
                bar.update()
            result.epochs.append(time.perf_counter() - start)
    with torch.no_grad():
        guesses = model(data.test_images.to(device)).argmax(1).cpu()
    result.imported = len(compiler_modules() - imported_before)
    result.accuracy = (guesses == data.test_labels).float().mean().item()
    return result


def choose(value: str, choices: list[str]) -> list[str]:
    return choices if value == "both" else [value]


def report_device() -> None:
    """What the device did: programs compiled, found in caches, and ops that were left to the CPU."""
    import torch_neuronx

    stats = torch_neuronx._C._get_compilation_cache_stats()
    calls = stats["cache_hits"] + stats["cache_misses"]
    print(
        f"eager programs: {stats['total_compilations']} compiled now, {stats['persistent_hits']} found on disk; "
        f"{stats['cache_hits']} of {calls} calls found theirs in memory ({100 * stats['hit_rate']:.1f} %)"
    )
    for graph in torch.neuron.get_dynamo_metrics() if "torch_neuronx_compile.metrics" in sys.modules else ():
        what = "found on disk" if graph["cached"] else f"lowered in {graph['lowering_time_ms']:.0f} ms"
        print(f"graph {graph['graph']}: {graph['nodes']} nodes, {what}, compiled in {graph['compile_time_ms']:.0f} ms")
    print("ops left to the CPU:", ", ".join(sorted(set(torch_neuronx.get_fallback_ops()))) or "none")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=["neuron", "cpu"], default="neuron")
    parser.add_argument("--model", choices=[*MODELS, "both"], default="both")
    parser.add_argument("--mode", choices=["eager", "compiled", "both"], default="both")
    parser.add_argument("--epochs", type=int, help="default: 60 for mlp, 20 for transformer")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--losses", metavar="FILE", help="write the loss of every step as JSON")
    parser.add_argument("--no-compare", action="store_true", help="leave out the run on the CPU")
    options = parser.parse_args()
    if options.epochs is not None and options.epochs < 1:
        parser.error(f"--epochs must be at least 1, got {options.epochs}")

    data = Data.load()
    devices = [options.device] if options.device == "cpu" or options.no_compare else [options.device, "cpu"]
    losses: dict[str, list[float]] = {}
    lines = ["model        mode      device  accuracy  s/epoch  first step s  loss off by"]
    imported = 0
    for mode in choose(options.mode, ["eager", "compiled"]):
        for name in choose(options.model, list(MODELS)):
            results = {
                device: train(name, mode, device, data, options.epochs or MODELS[name][1], options.seed)
                for device in devices
            }
            imported += sum(result.imported for result in results.values()) if mode == "eager" else 0
            for device, result in results.items():
                losses[f"{name}/{mode}/{device}"] = result.losses
                off = ""  # the largest difference of a step's loss from the CPU's
                if device != "cpu" and "cpu" in results:
                    pairs = zip(result.losses, results["cpu"].losses, strict=True)
                    off = f"{max(abs(ours - theirs) for ours, theirs in pairs):.1e}"
                lines.append(
                    f"{name:12} {mode:9} {device:7} {result.accuracy:8.3f} {result.epoch:8.3f} "
                    f"{result.first_step:13.2f} {off:>12}"
                )
    print("\n".join(lines))
    if options.mode != "compiled":
        print(f"modules of torch._dynamo and torch._inductor imported by eager training: {imported}")
    if options.device == "neuron":
        report_device()
    if options.losses:
        with open(options.losses, "w") as file:
            json.dump(losses, file)


if __name__ == "__main__":
    main()
