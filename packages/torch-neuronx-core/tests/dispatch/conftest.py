"""A small op compiler: element-wise programs written by hand, so that core is tested without torch-neuronx-compile."""

import pytest
import torch

import torch_neuronx
from libneuron_runtime import neff
from libneuron_runtime.program import DTYPE_BYTES, DTYPE_KIND, Dtype, GuardOp, Kind, Micro, Micros, Opcode, Program
from torch_neuronx import _op_compiler
from torch_neuronx._op_compiler import LaunchScalar, OpRequest, OpTraits, TensorSpec

DTYPES = {
    torch.float32: Dtype.FP32,
    torch.bfloat16: Dtype.BF16,
    torch.float16: Dtype.FP16,
    torch.float64: Dtype.FP64,
    torch.uint8: Dtype.UINT8,
    torch.int32: Dtype.INT32,
    torch.int64: Dtype.INT64,
    torch.bool: Dtype.BOOL,
}


class Writer:
    """One TILE for each output that begin() names, over its sizes."""

    def __init__(self, request: OpRequest):
        self.program = Program()
        self.slots = iter(range(len(request.slots)))
        tensors = [a for a in flat(request.args) if isinstance(a, TensorSpec) and a.buffer is not None]
        sizes = [self._dims(t) for t in tensors]
        outputs = [self._dims(t) for t in request.outputs]
        self.program.scalar_count = sum(
            isinstance(a, LaunchScalar) or isinstance(a, TensorSpec) and a.scalar is not None
            for a in flat(request.args)
        )
        self.inputs = {t.buffer: (t, self._buffer(t, s, None), *s) for t, s in zip(tensors, sizes, strict=True)}
        self.outputs: list[tuple] = []
        for tensor, dims in zip(request.outputs, outputs, strict=True):
            self.outputs.append((tensor, self._buffer(tensor, dims, tensor), *dims))
        self.name = request.op
        self._start(0)

    def _start(self, output: int) -> None:
        tensor, _, sizes, _ = self.outputs[output]
        self.micros, self.patterns = Micros(), []
        self.extents, self.shape = sizes or [self.program.const(1)], tensor.shape
        self.kind = DTYPE_KIND[DTYPES[tensor.dtype]]

    def begin(self, output: int) -> None:
        """End an instruction and begin the next one, over the sizes of `output`."""
        self.program.instruction(Opcode.TILE, self.extents, self.patterns, self.micros, debug=self.name)
        self._start(output)

    def _dims(self, tensor: TensorSpec) -> tuple[list[int], list[int]]:
        numbers = [self.program.slot(next(self.slots)) for _ in range(2 * len(tensor.shape))]
        return numbers[: len(tensor.shape)], numbers[len(tensor.shape) :]

    def _buffer(self, tensor: TensorSpec, dims: tuple[list[int], list[int]], output: TensorSpec | None) -> int:
        p, dtype = self.program, DTYPES[tensor.dtype]
        span = p.const(1)
        for size, stride in zip(*dims, strict=True):
            span = p.add(span, p.mul(p.sub(size, p.const(1)), stride))
        nbytes = p.mul(span, p.const(DTYPE_BYTES[dtype]))
        if output is None:
            return p.input(f"x{tensor.buffer}", dtype, dims[0], nbytes)
        return p.output(f"y{len(self.outputs)}", dtype, dims[0], nbytes, alias=output.alias)

    def _pattern(self, tensor: TensorSpec, buffer: int, strides: list[int]) -> int:
        missing = len(self.shape) - len(tensor.shape)
        zero = self.program.const(0)
        aligned = [zero] * missing + [
            zero if size == 1 and self.shape[missing + d] != 1 else strides[d] for d, size in enumerate(tensor.shape)
        ]
        self.patterns.append(self.program.pattern(buffer, DTYPES[tensor.dtype], aligned or [zero]))
        return len(self.patterns) - 1

    def read(self, argument) -> int:
        """Register that holds an argument's element, in the kind of the first output."""
        if isinstance(argument, LaunchScalar):
            return self._scalar(argument.scalar, argument.type is float)
        if isinstance(argument, TensorSpec) and argument.scalar is not None:
            return self._scalar(argument.scalar, argument.dtype.is_floating_point)
        if isinstance(argument, int | float):
            return self.micros.constant(self.kind, argument)
        tensor, buffer, _, strides = self.inputs[argument.buffer]
        kind = DTYPE_KIND[DTYPES[tensor.dtype]]
        register = self.micros.load(self._pattern(tensor, buffer, strides), kind)
        return register if kind == self.kind else self.micros.convert(self.kind, register)

    def _scalar(self, scalar: int, floating: bool) -> int:
        kind = Kind.F32 if floating else Kind.I64
        register = self.micros.scalar(kind, scalar)
        return register if kind == self.kind else self.micros.convert(self.kind, register)

    def op(self, name: str, *registers: int) -> int:
        return self.micros.op(Micro[name], self.kind, *registers)

    def write(self, output: int, register: int) -> None:
        tensor, buffer, _, strides = self.outputs[output]
        self.micros.store(self._pattern(tensor, buffer, strides), register)

    def finish(self) -> bytes:
        self.program.instruction(Opcode.TILE, self.extents, self.patterns, self.micros, debug=self.name)
        return neff.pack(self.program.to_bytes(), name=self.name.replace(":", "_"))


def flat(arguments):
    for argument in arguments:
        if isinstance(argument, list):
            yield from flat(argument)
        else:
            yield argument


def add(w: Writer, self, other, alpha) -> None:
    w.write(0, w.op("ADD", w.read(self), w.op("MUL", w.read(other), w.read(alpha))))


def mul(w: Writer, self, other) -> None:
    w.write(0, w.op("MUL", w.read(self), w.read(other)))


def relu(w: Writer, self) -> None:
    w.write(0, w.op("MAX", w.read(self), w.micros.constant(w.kind, 0)))


def fill(w: Writer, self, value) -> None:
    w.write(0, w.read(value))


def copy(w: Writer, self, source, non_blocking) -> None:
    w.write(0, w.read(source))


def log_sigmoid_forward(w: Writer, self) -> None:
    x = w.read(self)
    buffer = w.op("EXP", w.op("NEG", w.op("ABS", x)))
    w.write(0, w.op("SUB", w.op("MIN", x, w.micros.constant(w.kind, 0)), w.op("LOG1P", buffer)))
    w.write(1, buffer)


def unscale(w: Writer, self, found_inf, inv_scale) -> None:
    for number, tensor in enumerate(self):
        w.write(number, w.op("MUL", w.read(tensor), w.read(inv_scale)))
        w.begin(number + 1)
    w.write(len(self), w.read(found_inf))


def random(w: Writer, self, generator) -> None:
    w.program.scalar_count += 2
    w.write(0, w.micros.random(0, w.program.scalar_count - 2))


# Operator name without overload and trailing "_" -> (writer, operand arguments, random)
ROWS = {
    "add": (add, (2,), False),
    "mul": (mul, (), False),
    "relu": (relu, (), False),
    "fill": (fill, (1,), False),
    "copy": (copy, (), False),
    "log_sigmoid_forward": (log_sigmoid_forward, (), False),
    "_amp_foreach_non_finite_check_and_unscale": (unscale, (), False),
    "random": (random, (), True),
}


class ElementwiseCompiler:
    """Keeps the requests; `refuse`, `error` and `guard` change its answers."""

    def __init__(self):
        self.requests: list[OpRequest] = []
        self.described: list[str] = []
        self.refuse = lambda request: False
        self.error: BaseException | None = None
        self.guard = False  # programs hold only for the exact sizes of their request

    def describe(self, op: str) -> OpTraits | None:
        self.described.append(op)
        row = ROWS.get(op.removeprefix("aten::").partition(".")[0].removesuffix("_"))
        return row and OpTraits(row[1], row[2])

    def compile(self, request: OpRequest) -> bytes | str:
        self.requests.append(request)
        if self.error is not None:
            raise self.error
        tensors = [a for a in flat(request.args) if isinstance(a, TensorSpec)] + list(request.outputs)
        if self.refuse(request) or any(t.dtype not in DTYPES for t in tensors):
            return "the test's compiler does not take them"
        writer = Writer(request)
        if self.guard:
            for slot, hint in enumerate(request.slots):
                writer.program.guard(GuardOp.EQ, writer.program.slot(slot), writer.program.const(hint))
        ROWS[request.op.removeprefix("aten::").partition(".")[0].removesuffix("_")][0](writer, *request.args)
        return writer.finish()


class NoCompiler:
    """Every operator falls back."""

    def describe(self, op):
        return None

    def compile(self, request):
        raise AssertionError("compile() must not be called for an operator without traits")


@pytest.fixture
def compiler():
    """The hand-written op compiler in place of the installed one, with empty caches and counters."""
    installed = ElementwiseCompiler()
    _op_compiler.install(installed)
    torch_neuronx.clear_op_tracking()
    yield installed
    _op_compiler.install(None)


@pytest.fixture
def no_compiler():
    """An op compiler without any lowering."""
    _op_compiler.install(NoCompiler())
    torch_neuronx.clear_op_tracking()
    yield
    _op_compiler.install(None)
