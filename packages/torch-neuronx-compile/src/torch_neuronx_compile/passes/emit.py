"""emit: kernels -> instructions on windows of buffers."""

from __future__ import annotations

from collections.abc import Sequence

from torch_neuronx_compile.dim import Dim, Size
from torch_neuronx_compile.passes.access import collapse, compose
from torch_neuronx_compile.passes.errors import CompileError
from torch_neuronx_compile.passes.fuse import Operand, leaves, operand_shapes, space
from torch_neuronx_compile.passes.group import Frame, Group
from torch_neuronx_compile.passes.micro import TRANSCENDENTAL, MicroProgram
from torch_neuronx_compile.passes.numbers import to_bytes
from torch_neuronx_compile.passes.placement import Place, Placement
from torch_neuronx_compile.passes.plan import FREE, Access, Node
from torch_neuronx_compile.passes.program import STORAGE, Buffer, Instruction, Window
from torch_neuronx_compile.passes.sizes import is_number, resolved, same

MAX_LOOPS = 8  # of one instruction
MODES = {"MAP": 0, "ROW": 1, "COLUMN": 2}
KINDS = {"F32": 0, "I32": 1, "I64": 2}
COMBINE = {"set": 0, "add": 1, "multiply": 2, "minimum": 3, "maximum": 4}
INDEX_MODES = {"error": 0, "clamp": 1, "skip": 1}


def window_key(buffer: Buffer, dtype: str, offset: Size, strides: Sequence[Size]) -> tuple:
    """What makes two windows the same one."""
    return (id(buffer), dtype, *(s.terms if isinstance(s, Dim) else s for s in (offset, *strides)))


class _Emitter:
    def __init__(self, placement: Placement):
        self.placement = placement
        self.fusion = placement.fusion
        self.places = placement.places
        self.instructions: list[Instruction] = []
        self.constants: dict[Node, Place] = {}

    # ---- where things are -------------------------------------------------------------------------------------------

    def resolve(self, access: Access, shape: Sequence[Size]) -> tuple[Buffer, Size, tuple[Size, ...]]:
        """Buffer, offset and strides of an access from a space of sizes `shape`."""
        node = access.node
        if node.op == "dense":
            place = self.constants.get(node)
            if place is None:
                data = to_bytes(node.attributes["value"], node.dtype)
                place = self.constants[node] = Place(Buffer("CONSTANT", 0, len(data), data), 0, node.strides)
        else:
            place = self.places[node]
        if node.op == "input" or place.strides is node.strides:
            return place.buffer, place.offset + access.offset, access.strides
        found = compose(node.shape, place.offset, place.strides, shape, access.offset, access.strides)
        assert found is not None, "a node was placed where a reader cannot find it"
        return place.buffer, found[0], found[1]

    def add(self, opcode: str, engine: str, extents: list[Size], windows: list[Window], micro: list, params: list, where: str,
            writes: set[int]) -> None:  # fmt: skip
        if len(extents) > MAX_LOOPS:
            raise CompileError(
                where, f"needs {len(extents)} nested loops, of which an instruction has at most {MAX_LOOPS}"
            )
        self.instructions.append(Instruction(opcode, engine, extents, windows, micro, params, where, frozenset(writes)))

    # ---- copies -----------------------------------------------------------------------------------------------------

    def copy(self, access: Access, shape: Sequence[Size], target: Place, where: str) -> None:
        """Write what an access from a space of sizes `shape` reads to a window of that space."""
        if any(is_number(size, 0) for size in shape):
            return
        dtype = access.dtype
        if access.node.op in FREE:
            loops, (steps, strides) = collapse(shape, (access.strides, target.strides))
            program = MicroProgram()
            register = self.free(program, access, steps)
            program.store(0, register, STORAGE[dtype][1])
            windows = [Window(target.buffer, dtype, target.offset, strides)]
            self.add("TILE", "VECTOR", loops, windows, program.micro, [0, 0], where, {0})
            return
        buffer, offset, source = self.resolve(access, shape)
        loops, (read, written) = collapse(shape, (source, target.strides))
        windows = [Window(buffer, dtype, offset, read), Window(target.buffer, dtype, target.offset, written)]
        self.add("DMA", "DMA", loops, windows, [], [], where, {1})

    def free(self, program: MicroProgram, access: Access, steps: Sequence[Size]) -> int:
        """Register of an access to something that has no memory; steps: its strides per loop."""
        node = access.node
        if node.op == "splat":
            return program.number(node.attributes["value"], access.dtype)
        if node.op == "scalar":
            return program.scalar(node.attributes["number"], access.dtype)
        register = None
        for loop, step in enumerate(steps):
            if is_number(step, 0):
                continue
            term = program.emit("IOTA", "I64", loop)
            if not is_number(step, 1):
                term = program.emit("MUL", "I64", term, program.number(step, "i64"))
            register = term if register is None else program.emit("ADD", "I64", register, term)
        if register is None:
            register = program.number(access.offset, "i64")
        elif not is_number(access.offset, 0):
            register = program.emit("ADD", "I64", register, program.number(access.offset, "i64"))
        return program.convert(register, "i64", access.dtype)

    # ---- TILE and MATMUL --------------------------------------------------------------------------------------------

    def kernel(self, group: Group) -> None:
        if group.kind == "MATMUL":
            _Matmul(self, group).emit()
        elif group.kind == "TILE":
            self.tile(group)
        else:
            (node,) = group.frames
            getattr(self, group.kind)(node)

    def tile(self, group: Group) -> None:
        members = group.members
        if len(members) == 1 and members[0].op == "copy":
            (operand,) = self.fusion.operands[members[0]]
            if isinstance(operand, Access):
                self.copy(operand, members[0].shape, self.places[members[0]], members[0].location)
                return
        body = Body(self, group)
        windows = body.windows()
        kept, summed = group.loops
        extents, strides = collapse([group.factors[i] for i in kept], [[w[i] for i in kept] for w in windows])
        reduced = 0
        if group.mode != "MAP":
            inner, more = collapse([group.factors[i] for i in summed], [[w[i] for i in summed] for w in windows])
            if not inner:  # only dimensions of size 1 are reduced
                inner, more = [1], [[0] for _ in windows]
            if group.mode == "COLUMN" and not extents:
                extents, strides = [1], [[0] for _ in windows]
            reduced = len(inner)
            extents = extents + inner
            strides = [a + b for a, b in zip(strides, more, strict=True)]
        body.write(strides, last_loop=len(extents) - 1)
        transcendental = any(m.op in TRANSCENDENTAL for m in body.program.micro)
        self.add("TILE", "SCALAR" if transcendental else "VECTOR", extents, body.patterns, body.program.micro,
                 [MODES[group.mode], reduced], body.where, body.stored)  # fmt: skip

    # ---- instructions that move memory ------------------------------------------------------------------------------

    def concatenate(self, node: Node) -> None:
        place = self.places[node]
        dimension = node.attributes["dimension"]
        start: Size = 0
        for access, shape in zip(node.operands, operand_shapes(node), strict=True):
            offset = place.offset + start * place.strides[dimension]
            if not self.lies_at(access, shape, place.buffer, offset, place.strides):
                self.copy(access, shape, Place(place.buffer, offset, place.strides), node.location)
            start = start + shape[dimension]

    def lies_at(
        self, access: Access, shape: tuple[Size, ...], buffer: Buffer, offset: Size, strides: tuple[Size, ...]
    ) -> bool:
        """Whether an operand was computed straight into this window. A node that is joined twice lies in one part only."""
        if access.node not in self.places:
            return False
        where, start, steps = self.resolve(access, shape)
        in_step = all(is_number(n, 1) or same(a, b) for n, a, b in zip(shape, steps, strides, strict=True))
        return where is buffer and same(start, offset) and in_step

    def pad(self, node: Node) -> None:
        place = self.places[node]
        x, value = node.operands
        filler = Access(value.node, value.offset, (0,) * len(node.shape), value.dtype)
        self.copy(filler, node.shape, place, node.location)
        offset, strides = place.offset, []
        low, interior = node.attributes["low"], node.attributes["interior"]
        for first, gap, stride in zip(low, interior, place.strides, strict=True):
            offset = offset + first * stride
            strides.append(stride * (gap + 1))
        self.copy(x, node.attributes["shape"], Place(place.buffer, offset, tuple(strides)), node.location)

    def scan(self, node: Node) -> None:
        place = self.places[node]
        buffer, offset, source = self.resolve(node.operands[0], node.shape)
        along = node.attributes["dimension"]
        others = [d for d in range(len(node.shape)) if d != along]
        extents, (read, written) = collapse(
            [node.shape[d] for d in others], [[s[d] for d in others] for s in (source, place.strides)]
        )
        windows = [Window(buffer, node.operands[0].dtype, offset, [*read, source[along]]),
                   Window(place.buffer, node.dtype, place.offset, [*written, place.strides[along]])]  # fmt: skip
        params = [COMBINE[node.attributes["body"]], int(node.attributes["reverse"])]
        self.add("SCAN", "VECTOR", [*extents, node.shape[along]], windows, [], params, node.location, {1})

    def gather(self, node: Node) -> None:
        a, place = node.attributes, self.places[node]
        x, indices = node.operands
        sizes, slices = a["sizes"], a["slice_sizes"]
        buffer, offset, strides = self.resolve(x, sizes)
        window = [d for d in range(len(sizes)) if d not in a["collapsed_slice_dims"]]
        batch = [d for d in range(len(node.shape)) if d not in a["offset_dims"]]
        loops = _IndexLoops(a["index_shape"], a["index_vector_dim"])
        loops.set_index(self, indices)
        loops.add_window(
            [slices[d] for d in window], [strides[d] for d in window], [place.strides[d] for d in a["offset_dims"]]
        )
        loops.batch_strides = [place.strides[d] for d in batch]
        table = [(strides[d], sizes[d] - slices[d]) for d in a["start_index_map"]]
        self.indexed("GATHER", node, loops, (buffer, offset, x.dtype), (place.buffer, place.offset, node.dtype), table,
                     [INDEX_MODES[a["out_of_range"]]], 2)  # fmt: skip

    def scatter(self, node: Node) -> None:
        a, place = node.attributes, self.places[node]
        x, indices, updates = node.operands
        mine = self.places.get(x.node)
        output = self.fusion.plan.outputs[place.buffer.index] if place.buffer.kind == "OUTPUT" else None
        in_place = mine is not None and (
            mine.buffer is place.buffer
            or (output is not None and output.alias is not None and x.node is self.fusion.plan.inputs[output.alias])
        )
        if not in_place:
            self.copy(x, node.shape, place, node.location)
        shape = a["update_shape"]
        buffer, offset, strides = self.resolve(updates, shape)
        window = [d for d in range(len(node.shape)) if d not in a["inserted_window_dims"]]
        batch = [d for d in range(len(shape)) if d not in a["update_window_dims"]]
        loops = _IndexLoops(a["index_shape"], a["index_vector_dim"])
        loops.set_index(self, indices)
        extents = [shape[d] for d in a["update_window_dims"]]
        loops.add_window(extents, [place.strides[d] for d in window], [strides[d] for d in a["update_window_dims"]])
        loops.batch_strides = [strides[d] for d in batch]
        taken: dict[int, Size] = dict(zip(window, extents, strict=True))
        table = [(place.strides[d], node.shape[d] - taken.get(d, 1)) for d in a["scatter_dims_to_operand_dims"]]
        self.indexed("SCATTER", node, loops, (place.buffer, place.offset, node.dtype), (buffer, offset, updates.dtype), table,
                     [INDEX_MODES[a["out_of_range"]], COMBINE[a["body"]]], 0)  # fmt: skip

    def indexed(self, opcode: str, node: Node, loops: _IndexLoops, operand: tuple, other: tuple, table: list, params: list,
                written: int) -> None:  # fmt: skip
        batch, (index, along) = collapse(loops.batch, (loops.index_strides, loops.batch_strides))
        inner, (moved, rest) = collapse(loops.window, (loops.operand_strides, loops.other_strides))
        none = [0] * len(batch)
        buffer, offset, dtype = operand
        windows = [
            Window(buffer, dtype, offset, none + moved),
            Window(loops.index_buffer, loops.index_dtype, loops.index_offset, index + [0] * len(inner)),
            Window(other[0], other[2], other[1], along + rest),
            Window(buffer, dtype, 0, [resolved(stride) for stride, _ in table]),
            Window(buffer, dtype, 0, [resolved(largest) for _, largest in table]),
        ]
        params = [len(batch), len(table), loops.component_stride, *params]
        self.add(opcode, "GPSIMD", batch + inner, windows, [], params, node.location, {written})


class _IndexLoops:
    """Loops of a GATHER or SCATTER: the indices' dimensions, then the window's."""

    def __init__(self, index_shape: tuple[Size, ...], vector: int):
        self.index_shape = index_shape
        self.vector = vector
        self.batch = [size for d, size in enumerate(index_shape) if d != vector]

    def set_index(self, emitter: _Emitter, indices: Access) -> None:
        self.index_dtype = indices.dtype
        self.index_buffer, self.index_offset, strides = emitter.resolve(indices, self.index_shape)
        self.index_strides = [stride for d, stride in enumerate(strides) if d != self.vector]
        self.component_stride: Size = strides[self.vector] if self.vector < len(strides) else 0

    def add_window(self, extents: list[Size], operand_strides: list[Size], other_strides: list[Size]) -> None:
        self.window = extents
        self.operand_strides = operand_strides
        self.other_strides = other_strides


class Body:
    """The micro-program of a TILE, or of a MATMUL's epilogue."""

    def __init__(self, emitter: _Emitter, group: Group, first_pattern: int = 0):
        self.emitter = emitter
        self.group = group
        self.program = MicroProgram(excess_precision=emitter.fusion.plan.excess_precision)
        self.patterns: list[Window] = []
        self.stored: set[int] = set()
        self.first = first_pattern
        self.where = ""
        self._numbers: dict[int, int] = {}  # id of an access or a stored node -> position in windows()
        self._windows: list[list[Size]] = []
        self._memory: list[tuple[Buffer, Size]] = []
        self._registers: dict[Node, int] = {}
        self._patterns: dict[tuple, int] = {}
        self._collect()

    def _collect(self) -> None:
        group, fusion = self.group, self.emitter.fusion
        names = []
        for node in group.members:
            if node.location and node.location not in names:
                names.append(node.location)
            frame = group.space_frame(node)
            if node.op != "dot_general":
                shape = space(node)
                for operand in fusion.operands[node]:
                    for access in leaves(operand):
                        op = access.node.op
                        if access.node in group.frames or op in ("splat", "scalar"):
                            continue
                        if op == "iota":
                            self._add(access, None, 0, access.strides, frame)
                        else:
                            self._add(access, *self.emitter.resolve(access, shape), frame)
            if node in fusion.stored:
                place = self.emitter.places[node]
                self._add(node, place.buffer, place.offset, place.strides, group.frames[node])
        self.where = "; ".join(names)

    def _add(
        self, key: Access | Node, buffer: Buffer | None, offset: Size, strides: Sequence[Size], frame: Frame
    ) -> None:
        self._numbers[id(key)] = len(self._windows)
        self._windows.append(self.group.window(strides, frame))
        self._memory.append((buffer, offset))

    def windows(self) -> list[list[Size]]:
        """Strides per factor of everything that the body reads and writes (and of its iotas)."""
        return self._windows

    def pattern(self, buffer: Buffer, dtype: str, offset: Size, strides: list[Size]) -> int:
        key = window_key(buffer, dtype, offset, strides)
        number = self._patterns.get(key)
        if number is None:
            number = self._patterns[key] = self.first + len(self.patterns)
            self.patterns.append(Window(buffer, dtype, offset, strides))
        return number

    def write(self, strides: list[list[Size]], *, accumulated: int | None = None, last_loop: int = 0) -> None:
        """Make the micro-program; strides: windows() after loops were merged. accumulated: register of the MATMUL's element."""
        self._strides = strides
        fusion = self.emitter.fusion
        for node in self.group.members:
            if node.op == "dot_general":
                assert accumulated is not None
                self._registers[node] = accumulated
            else:
                self._registers[node] = self.compute(node, fusion.operands[node])
        for node in self.group.members:
            if node in fusion.stored:
                number = self._numbers[id(node)]
                buffer, offset = self._memory[number]
                # A pattern of its own: the same window may be read, by the same instruction, as an input.
                pattern = self.first + len(self.patterns)
                self.patterns.append(Window(buffer, node.dtype, offset, strides[number]))
                self.stored.add(pattern)
                kind = STORAGE[node.dtype][1]
                register = self._registers[node]
                if self.group.repeats_along_rows(node):
                    # A register that is the same for a whole row is stored once a row; this one is wanted at every element.
                    always = self.program.emit(
                        "GE", "I64", self.program.emit("IOTA", "I64", last_loop), self.program.number(0, "i64")
                    )
                    register = self.program.emit("SELECT", kind, always, register, register)
                self.program.store(pattern, register, kind)

    def compute(self, node: Node, operands: Sequence[Operand]) -> int:
        registers, dtypes = [], []
        for operand in operands:
            registers.append(self.value(operand))
            dtypes.append(operand.dtype if isinstance(operand, Access) else operand.node.dtype)
        return self.program.apply(node, registers, dtypes)

    def value(self, operand: Operand) -> int:
        if not isinstance(operand, Access):
            return self.compute(operand.node, operand.operands)
        node = operand.node
        register = self._registers.get(node)
        if register is not None:
            return register
        if node.op in FREE:
            number = self._numbers.get(id(operand))
            return self.emitter.free(self.program, operand, () if number is None else self._strides[number])
        number = self._numbers[id(operand)]
        buffer, offset = self._memory[number]
        pattern = self.pattern(buffer, operand.dtype, offset, self._strides[number])
        return self.program.emit("LOAD", STORAGE[operand.dtype][1], pattern)


class _Matmul:
    """A dot_general and its epilogue. Loops: batch, M, N, K."""

    def __init__(self, emitter: _Emitter, group: Group):
        self.emitter = emitter
        self.group = group
        (self.dot,) = [node for node in group.frames if node.op == "dot_general"]

    def emit(self) -> None:
        dot, emitter, a = self.dot, self.emitter, self.dot.attributes
        lhs, rhs = dot.operands
        left_buffer, left_offset, left = emitter.resolve(lhs, a["lhs_shape"])
        right_buffer, right_offset, right = emitter.resolve(rhs, a["rhs_shape"])
        xb, yb, xc, yc = a["lhs_batch"], a["rhs_batch"], a["lhs_contracting"], a["rhs_contracting"]
        xm = [d for d in range(len(left)) if d not in xb and d not in xc]
        yn = [d for d in range(len(right)) if d not in yb and d not in yc]
        body = Body(emitter, self.group, first_pattern=2)
        frame, factors = self.group.frames[dot], self.group.factors
        none = (0,) * (len(dot.shape) - len(xb))
        outer = [
            self.group.window([*(left[d] for d in xb), *(left[d] for d in xm), *none[len(xm) :]], frame),
            self.group.window([*(right[d] for d in yb), *none[len(yn) :], *(right[d] for d in yn)], frame),
            *body.windows(),
        ]
        first, last = len(xb), len(xb) + len(xm)
        parts = [[i for run in frame[a:b] for i in run] for a, b in ((0, first), (first, last), (last, len(frame)))]
        (batch, batch_strides), (rows, row_strides), (columns, column_strides) = (
            ([factors[i] for i in part], [[w[i] for i in part] for w in outer]) for part in parts
        )
        rows, row_strides = collapse(rows, row_strides)
        columns, column_strides = collapse(columns, column_strides)
        depth, depth_strides = collapse(
            [a["lhs_shape"][d] for d in xc], [[left[d] for d in xc], [right[d] for d in yc]]
        )
        # What cannot be one loop of rows or columns becomes a batch that one side does not move along.
        sizes = [*batch, *rows[:-1], *columns[:-1]]
        strides = [[*b, *r[:-1], *c[:-1]] for b, r, c in zip(batch_strides, row_strides, column_strides, strict=True)]
        loops, strides = collapse(sizes, strides)
        if len(depth) > 1:
            raise CompileError(dot.location, f"{len(depth)} contracting dimensions were not merged")
        tail = [rows[-1] if rows else 1, columns[-1] if columns else 1, depth[0] if depth else 1]
        zeros = [[0]] * (len(outer) - 2)
        depth_strides = [*(d if d else [0] for d in depth_strides), *zeros]
        strides = [
            [*s, r[-1] if r else 0, c[-1] if c else 0, k[0]]
            for s, r, c, k in zip(strides, row_strides, column_strides, depth_strides, strict=True)
        ]
        kind = "F32" if STORAGE[lhs.dtype][1] == "F32" else "I64"
        accumulated = body.program.emit("ACC", kind)
        accumulated = (
            body.program.round(accumulated, dot.dtype)
            if kind == "F32"
            else body.program.convert(accumulated, "i64", dot.dtype)
        )
        body.write(strides[2:], accumulated=accumulated)
        windows = [
            Window(left_buffer, lhs.dtype, left_offset, strides[0]),
            Window(right_buffer, rhs.dtype, right_offset, strides[1]),
            *body.patterns,
        ]
        emitter.add(
            "MATMUL",
            "PE",
            [*loops, *tail],
            windows,
            body.program.micro,
            [len(loops), KINDS[kind]],
            body.where,
            body.stored,
        )


def emit(placement: Placement) -> list[Instruction]:
    """The instructions of a program, in order."""
    self = _Emitter(placement)
    for group in placement.fusion.kernels:
        self.kernel(group)
    for node, k in placement.late:
        output = placement.fusion.plan.outputs[k]
        self.copy(output.access, output.shape, Place(placement.outputs[k], 0, output.strides), node.location)
    return self.instructions
