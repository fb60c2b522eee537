"""The op compiler that torch-neuronx-core calls on a miss: a class of calls of one operator -> NEFF.

Light to import. What the store answers needs neither the lowerings nor the passes; they are imported when a program has to
be made.
"""

from __future__ import annotations

import struct
from typing import Any

import torch

from torch_neuronx._op_compiler import LaunchScalar, OpRequest, OpTraits, TensorSpec
from torch_neuronx_compile.cache import fingerprint, guards, store


class OpCompiler:
    """See docs/dev/interfaces.md, "Core -> op compiler". Any thread may call it.

    persistent_hits: programs that were found in a store on disk.
    persistent_misses: requests that no store on disk could answer, so that a program had to be made.
    """

    def __init__(self):
        self.persistent_hits = 0
        self.persistent_misses = 0

    def describe(self, op: str) -> OpTraits | None:
        """What a launch of the operator takes; None when no lowering exists."""
        shelf = store.operators()
        known = f"{op} {fingerprint.compiler()}"
        text = shelf.traits(known)
        if text is not None:
            random, sizing, *operands = map(int, text.split())
            return OpTraits(operands=tuple(operands), random=bool(random), sizing=bool(sizing))
        # An answer of None depends on every package that might add a row.
        unknown = f"{known} {fingerprint.plugins()}"
        if shelf.traits(unknown) is not None:
            return None
        from torch_neuronx_compile.eager import traits

        answer, ours = traits(op)
        if answer is None:
            shelf.put_traits(unknown, "none")
        elif ours:
            shelf.put_traits(known, " ".join(map(str, (int(answer.random), int(answer.sizing), *answer.operands))))
        return answer

    def compile(self, request: OpRequest) -> bytes | str:
        """NEFF for the request's class, or why the arguments are not supported. An internal error raises."""
        shelf = store.operators()
        key = fingerprint.key(signature(request))
        for text, program, reason in shelf.classes(key):
            if guards.holds(text, request.slots):
                if program is None:
                    return reason
                neff = shelf.program(program)
                if neff is not None:
                    self.persistent_hits += 1
                    return neff
        self.persistent_misses += 1
        from torch_neuronx_compile.eager import build

        return build(request, key, shelf)


def signature(request: OpRequest) -> str:
    """Everything that a program may depend on without a guard, as text."""
    parts = [request.op]
    for value in request.args:
        _describe(value, parts)
    parts.append("->")
    for spec in request.outputs:
        _tensor(spec, parts)
    return " ".join(parts)


def _describe(value: Any, parts: list[str]) -> None:
    if isinstance(value, TensorSpec):
        _tensor(value, parts)
    elif isinstance(value, LaunchScalar):
        parts.append(f"launch:{value.type.__name__}")
    elif isinstance(value, (list, tuple)):
        parts.append(f"[{len(value)}")
        for item in value:
            _describe(item, parts)
        parts.append("]")
    elif isinstance(value, float):
        parts.append(f"float:{struct.pack('>d', value).hex()}")
    elif isinstance(value, torch.device):
        parts.append(f"device:{value.type}")
    else:
        parts.append(f"{type(value).__name__}:{value!r}")


def _tensor(spec: TensorSpec, parts: list[str]) -> None:
    kind = "number" if spec.wrapped else "host" if spec.scalar is not None else "tensor"
    parts.append(f"{kind}:{spec.dtype}")
    if spec.scalar is not None:
        return
    sizes = "".join("01n"[min(size, 2)] for size in spec.shape)
    layout = "c" if is_contiguous(spec) else "".join("0" if stride == 0 else "s" for stride in spec.strides)
    parts.append(f"{sizes}:{layout}:{'' if spec.alias is None else spec.alias}")


def is_contiguous(spec: TensorSpec) -> bool:
    """Whether a tensor lies in row-major order, as torch defines it."""
    if 0 in spec.shape:
        return True
    expected = 1
    for size, stride in zip(reversed(spec.shape), reversed(spec.strides), strict=True):
        if size != 1:
            if stride != expected:
                return False
            expected *= size
    return True
