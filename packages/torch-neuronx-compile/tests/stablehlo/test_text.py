"""The text: jaxlib parses and verifies every operation of the table, and XLA computes what it says."""

from __future__ import annotations

import math

import pytest
import torch

import torch_neuronx_compile.stablehlo as hlo
from torch_neuronx_compile.dim import ShapeEnv
from torch_neuronx_compile.stablehlo import OPS, HloTypeError, Parameter, TensorType

from ..conformance import oracle
from ..conformance.philox import words

GENERATOR = torch.Generator().manual_seed(7)
F = torch.randn(3, 4, generator=GENERATOR)
G = torch.randn(3, 4, generator=GENERATOR)
I = torch.randint(-9, 9, (3, 4), generator=GENERATOR)  # noqa: E741
B = F > 0
PX, PY = Parameter(0, TensorType((3, 4), "f32")), Parameter(1, TensorType((3, 4), "f32"))
PI, PB = Parameter(2, TensorType((3, 4), "i64")), Parameter(3, TensorType((3, 4), "i1"))
INPUTS, PARAMETERS = [F, G, I, B], [PX, PY, PI, PB]


def run(*values: hlo.Value) -> list[torch.Tensor]:
    return oracle.run(hlo.print_module(values, PARAMETERS), INPUTS)


def number(value: float, dtype: str = "f32") -> hlo.Value:
    return hlo.constant(value, dtype)


INDEX = hlo.constant((2, 0, 2), "i64", (3,))
ROWS = {
    "offset_dims": (1,),
    "collapsed_slice_dims": (0,),
    "start_index_map": (0,),
    "index_vector_dim": 1,
    "slice_sizes": (1, 4),
}
UPDATE = {
    "update_window_dims": (1,),
    "inserted_window_dims": (0,),
    "scatter_dims_to_operand_dims": (0,),
    "index_vector_dim": 1,
}

# operation -> (value, expected). Element-wise operations are covered by the conformance tables; here are the others.
COMPUTED = {
    "constant": (hlo.constant((1, 2.5, -3, 0), "bf16", (2, 2)), torch.tensor([[1, 2.5], [-3, 0]], dtype=torch.bfloat16)),
    "iota": (hlo.iota((2, 3), "i32", 1), torch.arange(3, dtype=torch.int32).expand(2, 3)),
    "broadcast_in_dim": (hlo.broadcast_in_dim(PX, (2, 4, 3), (2, 1)), F.T.expand(2, 4, 3)),
    "reshape": (hlo.reshape(PX, (2, 6)), F.reshape(2, 6)),
    "transpose": (hlo.transpose(PX, (1, 0)), F.T),
    "reverse": (hlo.reverse(PX, (0, 1)), F.flip(0, 1)),
    "slice": (hlo.slice(PX, (0, 1), (3, 4), (2, 2)), F[::2, 1::2]),
    "concatenate": (hlo.concatenate([PX, PY], 1), torch.cat([F, G], 1)),
    "pad": (hlo.pad(PX, number(9), (1, 0), (0, 2), (0, 0)), torch.nn.functional.pad(F, (0, 2, 1, 0), value=9)),
    "dynamic_slice": (hlo.dynamic_slice(PX, [number(1, "i64"), number(9, "i64")], (2, 2)), F[1:3, 2:4]),
    "dynamic_update_slice": (
        hlo.dynamic_update_slice(PX, hlo.constant((1, 2), "f32", (1, 2)), [number(2, "i64"), number(1, "i64")]),
        torch.cat([F[:2], torch.cat([F[2, :1], torch.tensor([1.0, 2.0]), F[2, 3:]])[None]]),
    ),
    "reduce": (hlo.reduce(PI, "add", (0,)), I.sum(0)),
    "argmax": (hlo.reduce(PX, "argmax", (1,)), F.argmax(1)),
    "scan": (hlo.scan(PI, "add", 1), I.cumsum(1)),
    "scan_reverse": (hlo.scan(PI, "add", 0, reverse=True), I.flip(0).cumsum(0).flip(0)),
    "scan_maximum": (hlo.scan(PI, "maximum", 0), I.cummax(0).values),
    "dot_general": (hlo.dot_general(PI, PI, contracting=((1,), (1,))), I @ I.T),
    "gather": (hlo.gather(PX, INDEX, **ROWS), F[[2, 0, 2]]),
    "scatter": (hlo.scatter(PX, INDEX, PY, body="add", **UPDATE), F.index_add(0, torch.tensor([2, 0, 2]), G)),
    "scatter_maximum": (hlo.scatter(PX, INDEX, PY, body="maximum", **UPDATE),
                        F.index_reduce(0, torch.tensor([2, 0, 2]), G, "amax")),
    "select": (hlo.select(PB, PX, PY), torch.where(B, F, G)),
    "clamp": (hlo.clamp(number(-0.5), PX, number(0.5)), F.clamp(-0.5, 0.5)),
    "is_finite": (hlo.is_finite(PX), F.isfinite()),
    "compare": (hlo.compare(PI, hlo.broadcast_in_dim(number(0, "i64"), (3, 4), ()), "LT"), I < 0),
    "convert": (hlo.convert(PX, "bf16"), F.bfloat16()),
    "bitcast_convert": (hlo.bitcast_convert(PX, "i32"), F.view(torch.int32)),
}  # fmt: skip


@pytest.mark.parametrize("name", COMPUTED)
def test_operation_computes(name):
    value, expected = COMPUTED[name]
    (got,) = run(value)
    assert got.dtype == expected.dtype
    torch.testing.assert_close(got, expected.contiguous(), rtol=1e-6, atol=1e-6)


def test_random_bits_are_the_words_of_philox():
    seed, offset = 0xFEDC_BA98_7654_3210 - (1 << 64), (1 << 32) - 2  # a carry into the counter's second word
    values = [hlo.random_bits(number(seed, "i64"), number(offset, "i64"), (2, 3), word) for word in range(4)]
    expected = words(6, seed % (1 << 64), offset).astype("uint32").view("int32")
    for word, got in enumerate(run(*values)):
        assert got.flatten().tolist() == expected[:, word].tolist()


def elementwise(name: str) -> hlo.Value | None:
    """Any application of a one- or two-operand element-wise operation."""
    spec = OPS[name]
    if spec.attributes:
        return None
    operand = {"f": PX, "i": PI, "b": PB}[spec.accepts[0]]
    for operands in ((operand,), (operand, operand)):
        try:
            return hlo.make(name, operands)
        except HloTypeError:
            continue
    return None


def test_every_operation_of_the_table_is_verified():
    values = [v for v in map(elementwise, OPS) if v is not None] + [value for value, _ in COMPUTED.values()]
    values += [hlo.random_bits(number(0, "i64"), number(0, "i64"), (2,))]
    values += hlo.custom_call(
        hlo.NKI_TARGET, [PX, PY], [PX.type, PI.type], backend_config='{"a": "b\\c"}', aliases=[(0, 1)]
    )
    values += hlo.custom_call("single", [PX], [PX.type], aliases=[(0, 0)])
    text = hlo.print_module(values, PARAMETERS)
    oracle.verify(text)
    assert {o.name for o in hlo.topological(values)} == set(OPS)
    assert text.count("AwsNeuronCustomNativeKernel") == 1


@pytest.mark.parametrize("dtype", hlo.DTYPES)
def test_numbers_print_exactly(dtype):
    values: list = [0, 1] if dtype == "i1" else [0, 1, 7, 100]
    if dtype[0] == "i" and dtype != "i1":
        values += [-1, -(1 << (int(dtype[1:]) - 1)), (1 << (int(dtype[1:]) - 1)) - 1]
    if dtype in hlo.FLOATS:
        values += [-0.0, 0.1, -2.5, 1e-7, 6e4, math.inf, -math.inf, math.nan, 1e300, -1e300, 3.39e38, 65519.9, 65520.0]
    (got,) = oracle.run(hlo.print_module([hlo.constant(tuple(values), dtype, (len(values),))]), [])
    expected = torch.tensor(values, dtype=torch.float64 if dtype in hlo.FLOATS else torch.int64)
    expected = (expected.float() if dtype in ("bf16", "f16") else expected).to(got.dtype)
    assert torch.equal(got.nan_to_num(nan=123.0), expected.nan_to_num(nan=123.0))
    assert torch.equal(torch.signbit(got[expected == 0]), torch.signbit(expected[expected == 0]))


def test_representable_is_what_a_store_keeps():
    for dtype, torch_dtype in (("bf16", torch.bfloat16), ("f16", torch.float16), ("f32", torch.float32)):
        for value in (0.1, 1.0 + 2**-9, 65519.9, 65520.0, 3.4e38, 1e39, 1e-40, -0.0):
            expected = torch.tensor(value, dtype=torch.float64).float().to(torch_dtype).item()
            assert hlo.representable(value, dtype) == expected, (dtype, value)
    assert [hlo.representable(v, "i8") for v in (127, 128, -129, 300)] == [127, -128, 127, 44]
    assert hlo.representable(-1, "ui8") == 255 and hlo.representable(0.5, "i1") is True


def test_locations_are_comments():
    with hlo.location("aten::neg"):
        value = hlo.negate(PX)
    text = hlo.print_module([value])
    assert "stablehlo.negate %arg0 : tensor<3x4xf32>  // aten::neg" in text
    oracle.verify(text)


def test_symbolic_sizes_print_only_when_asked():
    env = ShapeEnv()
    x = Parameter(0, TensorType((env.symbol("n", 5), 3), "f32"))
    with pytest.raises(HloTypeError, match=r"tensor<\(n\)x3xf32> has symbolic sizes; freeze the module"):
        hlo.print_module([hlo.negate(x)])
    text = hlo.print_module([hlo.negate(x)], symbolic=True)
    assert "stablehlo.negate %arg0 : tensor<?x3xf32>  // tensor<(n)x3xf32>" in text
    with pytest.raises(HloTypeError, match="the constant n is symbolic"):
        hlo.print_module([hlo.constant(env.symbol("n", 2), "i64")])


def test_missing_inputs_are_named():
    with pytest.raises(HloTypeError, match=r"negate reads <parameter 0 \(tensor\)"):
        hlo.print_module([hlo.negate(PX)], [PY])
    with pytest.raises(HloTypeError, match="results that are parameters outside of the inputs"):
        hlo.print_module([PX], [PY])
