"""One side of a comparison, in a process of its own. Commands and answers are JSON lines on stdin and stdout.

    {"do": "time", "suite": "eager", "row": NAME}  ->  {"seconds": S}        a call, by the median of several batches
    {"do": "misses"}                               ->  {"seconds": {NAME: S}}  first calls, each once
    {"do": "compiler", "row": NAME}                ->  {"seconds": S}        inside the backend's compilers, cold
    {"do": "first call", "row": NAME}              ->  {"seconds": S}        from torch.compile to the first result
    {"do": "startup"}                              ->  {"seconds": {"autoload": S, "first op": S}}

An answer may instead be {"not yet": REASON}: the device raised, or left an op to the CPU.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator

BATCH_SECONDS = 0.03  # long enough to hide the clock, short enough to change sides often
BATCHES = 5

side = sys.argv[1]  # "neuron" or "cpu": the device
backend = sys.argv[2]  # the Dynamo backend of the compiled rows
compiler_seconds: float | None = None  # None: not measured yet in this process
made: dict[tuple[str, str], Callable[[], object]] = {}


class NotYet(Exception):
    """The device cannot run this row natively."""


def synchronize() -> None:
    import torch

    if side == "neuron":
        torch.neuron.synchronize()


@contextlib.contextmanager
def natively() -> Iterator[None]:
    """Turn whatever goes wrong on our device, and every fallback, into NotYet. The peer's errors stay errors."""
    if side != "neuron":
        yield
        return
    import torch_neuronx

    torch_neuronx.clear_op_tracking()
    try:
        yield
        synchronize()
    except Exception as error:
        raise NotYet(f"{type(error).__name__}: {str(error).strip().splitlines()[0][:120]}") from error
    if fallbacks := sorted(set(torch_neuronx.get_fallback_ops())):
        raise NotYet(f"left to the CPU: {', '.join(fallbacks)}")


def compiler(function: Callable) -> Callable:
    import torch

    return torch.compile(function, backend=backend, dynamic=False)


def make(suite: str, row: str) -> Callable[[], object]:
    if suite == "eager":
        from eager_rows import LARGE, SMALL

        return {**SMALL, **LARGE}[row](side)
    from graph_rows import GRAPHS

    return GRAPHS[row](side, compiler)


def batch(call: Callable[[], object], count: int) -> float:
    """Seconds a call, over `count` calls in a row."""
    start = time.perf_counter()
    for _ in range(count):
        call()
    synchronize()
    return (time.perf_counter() - start) / count


def prepare(suite: str, row: str) -> Callable[[], object]:
    """The row's call, made and called once, and kept until another row is asked for."""
    if (suite, row) not in made:
        made.clear()  # the memory of the row before
        with natively():
            call = make(suite, row)
            call()
        made[suite, row] = call
    return made[suite, row]


def time_row(suite: str, row: str) -> float:
    call = prepare(suite, row)
    with natively():
        for _ in range(2):
            call()
    count = max(1, int(BATCH_SECONDS / max(batch(call, 1), 1e-7)))
    count = max(1, int(BATCH_SECONDS / max(batch(call, min(count, 1000)), 1e-7)))
    return statistics.median(batch(call, count) for _ in range(BATCHES))


def time_misses() -> dict[str, float]:
    from eager_rows import filled, misses

    x = filled(side, 8)
    seconds = {}
    with natively():
        (x * x).expm1_()  # the compiler itself is imported by the first miss of a process
        synchronize()
        for name, call in misses(side):
            synchronize()
            start = time.perf_counter()
            call()
            seconds[name] = time.perf_counter() - start
    return seconds


def time_compilers() -> None:
    """Add up in `compiler_seconds` the time inside every function that a backend hands to AOTAutograd as a compiler."""
    import torch._dynamo.backends.common as common

    def timed(function: Callable) -> Callable:
        def compile_graph(*arguments, **keywords):
            global compiler_seconds
            start = time.perf_counter()
            try:
                return function(*arguments, **keywords)
            finally:
                compiler_seconds += time.perf_counter() - start

        return compile_graph

    original = common.aot_module_simplified

    def aot_module_simplified(module, inputs, **keywords):
        for name in ("fw_compiler", "bw_compiler", "inference_compiler"):
            if keywords.get(name):
                keywords[name] = timed(keywords[name])
        return original(module, inputs, **keywords)

    common.aot_module_simplified = aot_module_simplified


def time_compiler(row: str) -> float:
    import torch

    global compiler_seconds
    if compiler_seconds is None:
        time_compilers()
        compiler_seconds = 0.0
        with natively():
            compiler(lambda x: torch.cos(x) + 1)(torch.ones(8, device=side))  # the throw-away graph
    torch._dynamo.reset()
    compiler_seconds = 0.0
    prepare("compile", row)
    if not compiler_seconds:
        raise NotYet("no compiler callable was seen")
    return compiler_seconds


def time_first_call(row: str) -> float:
    with natively():
        start = time.perf_counter()
        make("compile", row)()
        synchronize()
        return time.perf_counter() - start


def time_startup() -> dict[str, float]:
    """This process runs with autoload switched off and does by hand what `import torch` would do."""
    import torch

    (entry,) = importlib.metadata.entry_points(group="torch.backends", name="neuron")
    start = time.perf_counter()
    entry.load()()
    autoload = time.perf_counter() - start
    x = torch.ones(16, 16)
    with natively():
        start = time.perf_counter()
        d = x.to("neuron")
        d + d
        synchronize()
        first = time.perf_counter() - start
    return {"autoload": autoload, "first op": first}


def answer(command: dict) -> dict:
    import torch

    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    try:
        match command["do"]:
            case "time":
                return {"seconds": time_row(command["suite"], command["row"])}
            case "misses":
                return {"seconds": time_misses()}
            case "compiler":
                return {"seconds": time_compiler(command["row"])}
            case "first call":
                return {"seconds": time_first_call(command["row"])}
            case "startup":
                return {"seconds": time_startup()}
            case unknown:
                raise ValueError(f"unknown command {unknown!r}")
    except NotYet as reason:
        return {"not yet": str(reason)}


if __name__ == "__main__":
    # Answers have a channel of their own: libraries print to stdout as they like.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), file=answers, flush=True)
