"""What `emit` makes and `write` writes: instructions on windows of buffers, with sizes that may be symbolic."""

from __future__ import annotations

from torch_neuronx_compile.dim import Dim, Size

# Element type -> (name in the format, kind of register, bytes)
STORAGE = {
    "f32": ("FP32", "F32", 4), "bf16": ("BF16", "F32", 2), "f16": ("FP16", "F32", 2), "f64": ("FP64", "F32", 8),
    "i1": ("BOOL", "I32", 1), "ui8": ("UINT8", "I32", 1), "i8": ("INT8", "I32", 1), "i16": ("INT16", "I32", 2),
    "i32": ("INT32", "I32", 4), "i64": ("INT64", "I64", 8),
}  # fmt: skip


class Buffer:
    """kind: INPUT, OUTPUT, TEMP or CONSTANT. index: position among inputs or outputs. data: bytes of a constant.
    offset (bytes): where `memory` puts it, TEMP only."""

    __slots__ = ("kind", "index", "nbytes", "offset", "data")

    def __init__(self, kind: str, index: int, nbytes: Size, data: bytes = b""):
        self.kind = kind
        self.index = index
        self.nbytes = nbytes
        self.offset: Size = 0
        self.data = data

    def __repr__(self) -> str:
        return f"{self.kind.lower()}{self.index}"


class Window:
    """A pattern of an instruction: strides (elements) per loop."""

    __slots__ = ("buffer", "dtype", "offset", "strides")

    def __init__(self, buffer: Buffer, dtype: str, offset: Size, strides: list[Size]):
        self.buffer = buffer
        self.dtype = dtype
        self.offset = offset
        self.strides = strides

    def __repr__(self) -> str:
        return f"{self.buffer}:{self.dtype}[{self.offset} + {self.strides}]"


class Micro:
    """A micro-operation; `imm` is a number, or a symbolic size when `source` is VALUE."""

    __slots__ = ("op", "kind", "dst", "a", "b", "c", "source", "start", "imm")

    def __init__(self, op: str, kind: str, dst: int, a: int = 0, b: int = 0, c: int = 0, source: str = "LITERAL",
                 start: str = "F32", imm: int | float | Dim = 0):  # fmt: skip
        self.op = op
        self.kind = kind
        self.dst = dst
        self.a = a
        self.b = b
        self.c = c
        self.source = source
        self.start = start  # CONVERT: kind of the operand
        self.imm = imm

    def __repr__(self) -> str:
        return f"r{self.dst} = {self.op}.{self.kind} {self.a} {self.b} {self.c} {self.source} {self.imm}"


class Instruction:
    """reads and writes: positions of the patterns that are read and written."""

    __slots__ = ("opcode", "engine", "extents", "windows", "micro", "params", "debug", "writes")

    def __init__(self, opcode: str, engine: str, extents: list[Size], windows: list[Window], micro: list[Micro],
                 params: list[int | Size], debug: str, writes: frozenset[int]):  # fmt: skip
        self.opcode = opcode
        self.engine = engine
        self.extents = extents
        self.windows = windows
        self.micro = micro
        self.params = params
        self.debug = debug
        self.writes = writes

    def __repr__(self) -> str:
        lines = [f"{self.opcode} {self.extents} params={self.params} {self.debug}"]
        lines += [f"  {'w' if i in self.writes else 'r'}{i} {window}" for i, window in enumerate(self.windows)]
        lines += [f"  {micro}" for micro in self.micro]
        return "\n".join(lines)


class Io:
    """Signature of an input or output."""

    __slots__ = ("buffer", "name", "dtype", "shape", "alias")

    def __init__(self, buffer: Buffer, name: str, dtype: str, shape: tuple[Size, ...], alias: int | None = None):
        self.buffer = buffer
        self.name = name
        self.dtype = dtype
        self.shape = shape
        self.alias = alias
