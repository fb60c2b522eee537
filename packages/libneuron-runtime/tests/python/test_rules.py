"""The loader's rules: for each, programs that break it and the sentence that says so. The unbroken program is accepted.

A case is (rule, sample, section, record, changed fields, sentence): the sample's record is changed and nothing else.
"""

from dataclasses import dataclass

import pytest
from libneuron_runtime._schema import NONE, RULES, Section
from programs import SAMPLES, SLOTS, patched

from libneuron_runtime import GuardError, Model, NeffError, NeuronError, neff
from libneuron_runtime.program import (
    Combine,
    Dtype,
    ImmSource,
    Kind,
    Micro,
    Micros,
    Opcode,
    Program,
    TileMode,
    ValueOp,
)

VALUES, GUARDS, BUFFERS, IO = Section.VALUES, Section.GUARDS, Section.BUFFERS, Section.IO
INSTRUCTIONS, PATTERNS, MICRO = Section.INSTRUCTIONS, Section.PATTERNS, Section.MICRO
IDS = {name: rule for rule, (name, _) in RULES.items()}


@dataclass(frozen=True)
class Case:
    rule: str
    sample: str
    where: Section | str
    record: int
    fields: dict
    sentence: str
    slots: tuple[int, ...] | None = None  # default: the sample's


def case(rule, sample, where, record, sentence, slots=None, **fields):
    return Case(rule, sample, where, record, fields, sentence, slots)


# Rules of the load phase. The records of a sample are in the order in which programs.py makes them.
LOAD = [
    case("container", "add", "header", 0, "the first 8 bytes are not the magic", magic=(0, 0)),
    case("container", "add", "header", 0, "format version is 2, but this runtime reads version 1", version=2),
    case("container", "add", "header", 0, "total_bytes is 5, but the program has", total_bytes=5),
    case("sections", "add", "header", 0, "section_count is 1000, but there is room for", section_count=1000),
    case("sections", "add", "section", 0, "section 0: unknown kind 77", kind=77),
    case("sections", "add", "section", 0, "section 2: BUFFERS occurs twice", kind=Section.BUFFERS, record_bytes=16),
    case("sections", "add", "section", 0, "section 0: records of VALUES have 32 bytes, expected 24", record_bytes=32),
    case("sections", "add", "section", 0, "expected a multiple of 64 from", offset=63),
    case("sections", "add", "section", 0, "section 0: VALUES begins at byte 0", offset=0),
    case("sections", "add", "section", 0, "9999 records of VALUES reach past the end", count=9999),
    case("sections", "add", "section", 0, "1152921504606846976 records of VALUES reach past the end", count=1 << 60),
    case("sections", "add", "section", 0, "overlap", count=12),
    case("reserved", "add", "header", 0, "header: reserved is 1", reserved=1),
    case("reserved", "add", VALUES, 0, "value 0: a field that SLOT does not use is not 0", b=1),
    case("reserved", "add", VALUES, 2, "value 2: a field that CONST does not use is not 0", reserved=1),
    case("reserved", "add", GUARDS, 0, "guard 0: reserved is 3", reserved=3),
    case("reserved", "numbers", BUFFERS, 1, "buffer 1: index of a TEMP is 1", index=1),
    case("reserved", "add", IO, 0, "io 0: dims[2] is 0, expected NONE", dims=(2, 0)),
    case("reserved", "add", IO, 0, "io 0: reserved is not 0", reserved=(1, 1)),
    case("reserved", "add", INSTRUCTIONS, 0, "instruction 0: extents[7] is 1, expected NONE", extents=(7, 1)),
    case("reserved", "add", INSTRUCTIONS, 0, "instruction 0: reserved is not 0", reserved=(1, 9)),
    case("reserved", "add", PATTERNS, 1, "pattern 1: strides[2] is 0, expected NONE", strides=(2, 0)),
    case("values", "add", VALUES, 0, "value 0: unknown op 99", op=99),
    case("values", "add", VALUES, 0, "value 0: slot 2, but slot_count is 2", imm=2),
    case("values", "add", VALUES, 0, "value 0: slot -1, but slot_count is 2", imm=-1),
    case("values", "add", VALUES, 3, "value 3: operand a of MUL is 3, expected an earlier value", a=3),
    case("values", "add", VALUES, 3, "value 3: operand b of MUL is 900, expected an earlier value", b=900),
    case("values", "add", VALUES, 3, "value 3: ALIGN to 0, expected at least 1", op=ValueOp.ALIGN, b=0),
    case("values", "add", "header", 0, "header: scratch_bytes is 4294967295", scratch_bytes=NONE),
    case("guards", "add", GUARDS, 0, "guard 0: unknown op 4", op=4),
    case("guards", "add", GUARDS, 0, "guard 0: b is 4294967295, but there are", b=NONE),
    case("buffers", "add", BUFFERS, 0, "buffer 0: unknown kind 6", kind=6),
    case("buffers", "add", BUFFERS, 1, "buffer 1: INPUT 0 is taken by an earlier buffer", index=0),
    case("buffers", "add", BUFFERS, 1, "buffer 1: INPUT 2, but there are 2 of them", index=2),
    case("buffers", "add", BUFFERS, 1, "buffer 1: nbytes is 500, but there are", nbytes=500),
    case("buffers", "add", BUFFERS, 1, "buffer 1: the offset of an INPUT is value 2, expected a CONST 0", offset=2),
    case("io", "add", IO, 0, "io 0: buffer is 1, expected the buffer of INPUT 0", buffer=1),
    case("io", "add", IO, 2, "io 2: buffer is 9, expected the buffer of OUTPUT 0", buffer=9),
    case("io", "add", IO, 0, "io 0: unknown dtype 5", dtype=5),
    case("io", "add", IO, 0, "io 0: an input has alias 0", alias=0),
    case("io", "add", IO, 2, "io 2: alias is 2, but there are 2 inputs", alias=2),
    case("io", "add", IO, 0, "io 0: rank is 9, expected at most 8", rank=9),
    case("io", "add", IO, 0, "io 0: dims[1] is 200, expected a value", dims=(1, 200)),
    case("names", "add", IO, 0, "io 0: name is 70000, not a NUL-terminated text", name=70000),
    case("names", "add", IO, 0, "io 0: the name has 0 characters", name=0),
    case("names", "add", IO, 1, 'io 1: the name "x" is taken by an earlier INPUT', name=1),
    case("names", "add", INSTRUCTIONS, 0, "instruction 0: debug is 70000, not a NUL-terminated text", debug=70000),
    case("instruction", "add", INSTRUCTIONS, 0, "instruction 0: unknown opcode 50", opcode=50),
    case("instruction", "add", INSTRUCTIONS, 0, "instruction 0: NATIVE is host machine code", opcode=Opcode.NATIVE),
    case("instruction", "add", INSTRUCTIONS, 0, "instruction 0: unknown engine 5", engine=5),
    case("instruction", "add", INSTRUCTIONS, 0, "instruction 0: flags are 1", flags=1),
    case("instruction", "add", INSTRUCTIONS, 0, "instruction 0: rank is 9, expected at most 8", rank=9),
    case(
        "instruction",
        "add",
        INSTRUCTIONS,
        0,
        "instruction 0: extents[0] is 4294967295, expected a value",
        extents=(0, NONE),
    ),
    case(
        "ranges",
        "add",
        INSTRUCTIONS,
        0,
        "instruction 0: patterns 0 and 4 more, expected them to begin at 0 of 3",
        pattern_count=4,
    ),
    case("ranges", "add", INSTRUCTIONS, 0, "instruction 0: patterns 1 and 3 more", pattern_first=1),
    case(
        "ranges",
        "numbers",
        INSTRUCTIONS,
        1,
        "instruction 1: patterns 0 and 2 more, expected them to begin at 2 of 4",
        pattern_first=0,
    ),
    case("ranges", "add", INSTRUCTIONS, 0, "instruction 0: micro-operations 0 and 5 more", micro_count=5),
    case("ranges", "add", "section", 4, "the instructions own 0 patterns, but there are 3", count=0),
    case("params", "add", INSTRUCTIONS, 0, "params[0] (mode of TILE) is 3", params=(0, 3)),
    case("params", "add", INSTRUCTIONS, 0, "params[2] (unused of TILE) is 1", params=(2, 1)),
    case("params", "matmul", INSTRUCTIONS, 0, "params[1] (kind of MATMUL) is 65536", params=(1, 65536)),
    case("params", "gather", INSTRUCTIONS, 0, "params[2] (component_stride of GATHER) is 99", params=(2, 99)),
    case("params", "gather", INSTRUCTIONS, 0, "params[3] (mode of GATHER) is 2", params=(3, 2)),
    case("params", "scan", INSTRUCTIONS, 0, "params[0] (combine of SCAN) is 5", params=(0, 5)),
    case("pattern", "add", PATTERNS, 0, "pattern 0: buffer is 3, but there are 3", buffer=3),
    case("pattern", "add", PATTERNS, 0, "pattern 0: unknown dtype 0", dtype=0),
    case("pattern", "add", PATTERNS, 0, "pattern 0: offset is 77, but there are", offset=77),
    case("pattern", "add", PATTERNS, 0, "pattern 0: flags are 2, expected 0 or 1", flags=2),
    case("pattern", "add", PATTERNS, 0, "pattern 0: strides[1] is 4294967295, expected a value", strides=(1, NONE)),
    case("read_only", "add", PATTERNS, 2, "instruction 0: pattern 2 writes input 0, which no output aliases", buffer=0),
    case("read_only", "numbers", PATTERNS, 1, "instruction 0: pattern 1 writes a CONSTANT buffer", buffer=2),
    case("micro", "add", MICRO, 2, "instruction 0, micro 2: unknown op 200", op=200),
    case("micro", "add", MICRO, 2, "instruction 0, micro 2: kind 0 is not legal for AND", op=Micro.AND),
    case("micro", "add", MICRO, 2, "instruction 0, micro 2: kind 3 is not legal for ADD", kind=3),
    case("micro", "add", MICRO, 2, "a field that ADD does not use is not 0", imm=1),
    case("micro", "add", MICRO, 2, "a field that ADD does not use is not 0", c=1),
    case("micro", "add", MICRO, 2, "a field that ADD does not use is not 0", source=ImmSource.SCALAR),
    case("micro", "add", MICRO, 2, "`from` is 1 in ADD", **{"from": Kind.I32}),
    case("registers", "add", MICRO, 2, "ADD reads register 5 before it is written", b=5),
    case("registers", "add", MICRO, 2, "ADD reads register 60000 before it is written", a=60000),
    case("registers", "add", MICRO, 2, "ADD reads register 2 before it is written", a=2),
    case("registers", "add", MICRO, 2, "ADD writes register 0 again", dst=0),
    case("registers", "add", MICRO, 2, "ADD writes register 256, expected less than 256", dst=256),
    case("registers", "add", MICRO, 2, "ADD reads register 0 as I32, but it is F32", kind=Kind.I32),
    case("micro_pattern", "add", MICRO, 0, "LOAD of pattern 3, but the instruction has 3", a=3),
    case("micro_pattern", "add", MICRO, 3, "STORE of pattern 60000, but the instruction has 3", dst=60000),
    case("micro_pattern", "add", MICRO, 0, "LOAD as I32, but FP32 loads into F32", kind=Kind.I32),
    case("micro_pattern", "add", PATTERNS, 2, "STORE as F32, but INT32 loads into I32", dtype=Dtype.INT32),
    case("micro_pattern", "row", MICRO, 5, "second STORE of pattern 1", dst=1),
    case("micro_pattern", "add", MICRO, 3, "no STORE", op=Micro.NEG, dst=3, a=2),
    case("micro_number", "numbers", MICRO, 1, "RANDOM word 4, expected 0 to 3", a=4),
    case("micro_number", "numbers", MICRO, 1, "RANDOM takes its key from SCALAR only", source=ImmSource.LITERAL),
    case("micro_number", "numbers", MICRO, 1, "scalar 3, but scalar_count is 3", imm=2),
    case("micro_number", "numbers", MICRO, 1, "but scalar_count is 3", imm=(1 << 64) - 1),
    case("micro_number", "numbers", MICRO, 4, "IOTA along dimension 1 of 1", a=1),
    case("micro_number", "numbers", MICRO, 5, "value 100, but there are", imm=100),
    case("micro_number", "numbers", MICRO, 5, "unknown source 3", source=3),
    case("micro_number", "numbers", MICRO, 8, "scalar 3, but scalar_count is 3", imm=3),
    case("tile", "row", INSTRUCTIONS, 0, "REDUCE_SUM outside a TILE in ROW or COLUMN mode", params=(0, TileMode.MAP)),
    case("tile", "add", INSTRUCTIONS, 0, "reduced dimensions in MAP mode", params=(1, 1)),
    case("tile", "row", INSTRUCTIONS, 0, "ROW mode reduces 1 to rank dimensions", params=(1, 3)),
    case("tile", "row", INSTRUCTIONS, 0, "ROW mode reduces 1 to rank dimensions", params=(1, 0)),
    case("tile", "add", INSTRUCTIONS, 0, "COLUMN mode reduces 1 to rank - 1 dimensions", params=(0, TileMode.COLUMN)),
    case("tile", "add", MICRO, 0, "ACC outside a MATMUL", op=Micro.ACC),
    case("matmul", "matmul", INSTRUCTIONS, 0, "the rank of a MATMUL is batch + 3", params=(0, 1)),
    case("matmul", "matmul", INSTRUCTIONS, 0, "ACC of kind F32, but the product has another", params=(1, Kind.I64)),
    case("matmul", "matmul", PATTERNS, 0, "an operand's dtype does not fit the kind of the product", dtype=Dtype.INT32),
    case("matmul", "matmul", MICRO, 1, "STORE of pattern 1, which is an operand of the product", dst=1),
    case("dma", "add", INSTRUCTIONS, 0, "DMA has two patterns and no micro-operations", opcode=Opcode.DMA),
    case("gather", "gather", INSTRUCTIONS, 0, "batch is larger than the rank", params=(0, 3)),
    case("gather", "gather", INSTRUCTIONS, 0, "9 components, expected at most 8", params=(1, 9)),
    case("gather", "gather", PATTERNS, 1, "the indices are not integers", dtype=Dtype.FP64),
    case("gather", "gather", PATTERNS, 2, "patterns 0 and 2 have different dtypes", dtype=Dtype.INT32),
    case("gather", "gather", PATTERNS, 4, "patterns 3 and 4 do not name the buffer and dtype of pattern 0", buffer=0),
    case("scan", "scan", INSTRUCTIONS, 0, "SCAN cannot combine by SET", params=(0, Combine.SET)),
    case("scan", "scan", INSTRUCTIONS, 0, "reverse is neither 0 nor 1", params=(1, 2)),
    case("scan", "scan", PATTERNS, 1, "the dtypes load into different kinds", dtype=Dtype.INT64),
    case("tile_grain", "add", INSTRUCTIONS, 0, "a pattern lies outside SBUF and PSUM", opcode=Opcode.TENSOR_TENSOR),
]

# Rules of the bind phase.
BIND = [
    case("slots", "add", "header", 0, "2 slots are given, expected 3", slot_count=3),
    case(
        "arithmetic",
        "add",
        VALUES,
        3,
        "value 3: FLOORDIV of 5 and 0 overflows or divides by 0",
        slots=(5, 0),
        op=ValueOp.FLOORDIV,
    ),
    case("memory", "row", VALUES, 6, "nbytes is -45, expected 0 to 70368744177664", imm=-45),
    case("memory", "numbers", BUFFERS, 1, "buffer 1: 64 bytes from byte 128", offset=5),
    case("memory", "numbers", BUFFERS, 2, "an end within 16 bytes", nbytes=3),
    case("memory", "tile_grain", BUFFERS, 0, "SBUF of 8 bytes, expected a multiple of 128", nbytes=1),
    case("extents", "tile_grain", VALUES, 0, "extent 0 is -1, expected at least 0", imm=-1),
    case(
        "window",
        "row",
        PATTERNS,
        0,
        "pattern 0 reaches elements 9 to 53 of buffer 0, which has 180 bytes of 4 each",
        offset=1,
    ),
    case("window", "row", PATTERNS, 0, "reaches elements 0 to 728", strides=(0, 6)),
    case("window", "gather", PATTERNS, 4, "pattern 0 reaches elements 0 to 27 of buffer 1", strides=(0, 5)),
    case("window", "gather", PATTERNS, 1, "pattern 1 reaches elements 0 to 6 of buffer 0", strides=(0, 2)),
    case(
        "written_once",
        "add",
        PATTERNS,
        2,
        "pattern 2 is written with stride 0 along dimension 1 of 3 elements",
        strides=(1, 6),
    ),
    case("phases", "row", PATTERNS, 1, "is per row, but pattern 1 moves along a reduced dimension", strides=(1, 2)),
    case(
        "phases",
        "row",
        PATTERNS,
        2,
        "is per element, but pattern 2 does not move along a reduced dimension",
        strides=(1, 3),
    ),
    case(
        "matmul_strides",
        "matmul",
        PATTERNS,
        0,
        "the stride of pattern 0 along dimension 1 is 1, expected 0",
        strides=(1, 1),
    ),
    case(
        "matmul_strides",
        "matmul",
        PATTERNS,
        2,
        "the stride of pattern 2 along dimension 2 is 1, expected 0",
        strides=(2, 1),
    ),
    case(
        "gather_strides",
        "gather",
        PATTERNS,
        0,
        "the stride of pattern 0 along dimension 0 is 1, expected 0",
        strides=(0, 1),
    ),
    case(
        "gather_strides",
        "scatter",
        PATTERNS,
        1,
        "the stride of pattern 1 along dimension 1 is 1, expected 0",
        strides=(1, 1),
    ),
    case(
        "partition",
        "tile_grain",
        PATTERNS,
        0,
        "has partition stride 8 of 4 bytes each, expected a partition of 64 bytes",
        strides=(0, 1),
    ),
]


def breaks(case: Case) -> bytes:
    return patched(SAMPLES[case.sample]().to_bytes(), case.where, case.record, **case.fields)


def names(case: Case) -> str:
    return f"{case.rule}-{case.sample}-{'-'.join(case.fields)}"


@pytest.mark.parametrize("case", LOAD, ids=names)
def test_load_refuses(case: Case) -> None:
    with pytest.raises(NeffError) as caught:
        neff.pack(breaks(case), name="broken")
    assert case.sentence in str(caught.value)
    assert f"(rule {IDS[case.rule]})" in str(caught.value)


@pytest.mark.parametrize("case", BIND, ids=names)
def test_bind_refuses(case: Case) -> None:
    slots = list(case.slots) if case.slots is not None else SLOTS.get(case.sample, [])
    data = neff.pack(breaks(case), name="broken")
    with pytest.raises(NeuronError) as caught:  # a program without slots is bound when it is loaded
        Model(data).bind(slots)
    assert case.sentence in str(caught.value)
    assert f"(rule {IDS[case.rule]})" in str(caught.value)
    assert caught.value.name == "NRT_INVALID"


@pytest.mark.parametrize("name", SAMPLES)
def test_unbroken_samples_are_accepted(name: str) -> None:
    Model(neff.pack(SAMPLES[name]().to_bytes(), name=name)).bind(SLOTS.get(name, []))


def test_every_rule_has_a_case() -> None:
    # Rules whose cases need more than one changed record stand below.
    elsewhere = {"guard", "signature", "budget"}
    assert set(IDS) == {case.rule for case in LOAD + BIND} | elsewhere


def test_guard() -> None:
    model = Model(neff.pack(SAMPLES["add"]().to_bytes(), name="add"))
    model.bind([1000, 1])
    with pytest.raises(GuardError, match=r"guard 0 does not hold: 1001 LE 1000 \(rule B3\)") as caught:
        model.bind([1001, 1])
    assert caught.value.guard == 0


def _signature(dims: list[int]) -> bytes:
    p = Program()
    zero, one = p.const(0), p.const(1)
    p.input("x", Dtype.FP32, [p.const(size) for size in dims], nbytes=zero)
    y = p.output("y", Dtype.FP32, [one])
    m = Micros()
    m.store(0, m.constant(Kind.F32, 1.0))
    p.instruction(Opcode.TILE, [one], [p.pattern(y, Dtype.FP32, [one])], m)
    return neff.pack(p.to_bytes(), name="signature")


@pytest.mark.parametrize("dims", [[-1], [1 << 32, 1 << 32], [0, -3]])
def test_signature_refuses(dims: list[int]) -> None:
    with pytest.raises(NeuronError, match=r"io 0: its sizes are negative or their product overflows \(rule B5\)"):
        Model(_signature(dims))


@pytest.mark.parametrize("dims", [[], [0, 5], [1 << 31, 1 << 31]])
def test_signature_accepts(dims: list[int]) -> None:
    assert Model(_signature(dims)).bind().io[0].dims == tuple(dims)


@pytest.mark.parametrize(
    ("extent", "repeats", "accepted"), [(1 << 20, 1 << 19, True), (1 << 20, 1 << 20, True), (1 << 21, 1 << 20, False)]
)
def test_budget(extent: int, repeats: int, accepted: bool) -> None:
    p = Program()
    zero, one = p.const(0), p.const(1)
    x, y = p.input("x", Dtype.FP32, [one]), p.output("y", Dtype.FP32, [one])
    m = Micros()
    m.store(1, m.op(Micro.REDUCE_MAX, Kind.F32, m.load(0, Kind.F32)))
    patterns = [p.pattern(x, Dtype.FP32, [zero, zero, zero]), p.pattern(y, Dtype.FP32, [one, zero, zero])]
    p.instruction(Opcode.TILE, [one, p.const(extent), p.const(repeats)], patterns, m, mode=TileMode.ROW, reduced=2)
    data = neff.pack(p.to_bytes(), name="budget")
    if accepted:
        Model(data)
    else:
        with pytest.raises(
            NeuronError, match=r"visit more than 1099511627776 elements.*NEURON_RT_MAX_ELEMENTS.*\(rule B13\)"
        ):
            Model(data)


@pytest.mark.parametrize(("elements", "accepted"), [(16384, True), (16385, False)])
def test_free_size(elements: int, accepted: bool) -> None:
    p = Program()
    partition, one = p.const(65536), p.const(1)  # elements; 256 KiB
    sbuf = p.sbuf(p.const(128 * 4 * 65536))
    m = Micros()
    m.store(1, m.op(Micro.ABS, Kind.F32, m.load(0, Kind.F32)))
    patterns = [p.pattern(sbuf, Dtype.FP32, [partition, one], offset=p.const(20000 * n)) for n in (0, 1)]
    p.instruction(Opcode.TENSOR_TENSOR, [p.const(128), p.const(elements)], patterns, m)
    data = neff.pack(p.to_bytes(), name="free")
    if accepted:
        Model(data)
    else:
        with pytest.raises(NeffError, match=r"pattern 0 has more than 65536 bytes a partition \(rule B12\)"):
            Model(data)


def test_two_outputs_cannot_alias_one_input() -> None:
    p = SAMPLES["alias"]()
    p.output("again", Dtype.INT64, [p.slot(0)], alias=0)
    with pytest.raises(NeffError, match="io 2: input 0 is aliased by an earlier output"):
        neff.pack(p.to_bytes(), name="twice")


def test_two_state_buffers_are_refused() -> None:
    p = SAMPLES["tile_grain"]()
    p.sbuf(p.const(128))
    with pytest.raises(NeffError, match="2 buffers are SBUF, expected at most one"):
        neff.pack(p.to_bytes(), name="two")


@pytest.mark.parametrize("name", ["a b", "a/b", "ä", "x" * 256])
def test_names_of_inputs_are_restricted(name: str) -> None:
    p = Program()
    p.input(name, Dtype.FP32, [])
    with pytest.raises(NeffError, match=r"expected 1 to 255 printable ones without '/' \(rule L8\)"):
        neff.pack(p.to_bytes(), name="named")


def test_a_load_after_the_store_of_its_pattern_is_refused() -> None:
    p = Program()
    one = p.const(1)
    y = p.output("y", Dtype.FP32, [one])
    m = Micros()
    m.store(0, m.constant(Kind.F32, 2.0))
    m.load(0, Kind.F32)
    p.instruction(Opcode.TILE, [one], [p.pattern(y, Dtype.FP32, [one])], m)
    with pytest.raises(NeffError, match=r"micro 2: LOAD of pattern 0 after its STORE"):
        neff.pack(p.to_bytes(), name="late")


def test_cases_change_what_they_name() -> None:
    # A case whose change is what the sample has anyway would prove nothing.
    for item in LOAD + BIND:
        assert breaks(item) != SAMPLES[item.sample]().to_bytes(), item
