"""What rows refuse, and the registry."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest
import torch
import torch._inductor.inductor_prims  # defines prims::fma, which Dynamo writes
import torch._prims  # defines the other operators of `prims`

from torch_neuronx_compile.lowering import ROWS, Unsupported, functional, lookup, lowers
from torch_neuronx_compile.lowering.promotion import hlo_dtype, result_type
from torch_neuronx_compile.lowering.registry import schema
from torch_neuronx_compile.stablehlo import HloTypeError, Parameter, TensorType


def tensor(*shape: int, dtype: str = "f32", number: int = 0) -> Parameter:
    return Parameter(number, TensorType(shape, dtype))


def lower(op: str, *args):
    found = functional(op)
    return found.row.lower(found.arguments(args))


X, INDEX, MASK = tensor(3, 4), tensor(3, dtype="i64", number=1), tensor(3, 4, dtype="i1", number=2)


@pytest.mark.parametrize(
    "op, args, message",
    [
        ("aten::index.Tensor", (X, [MASK]), "a mask of i1, whose result's size depends on its values; torch.where"),
        ("aten::index_put", (X, [MASK], tensor(5, number=3), False), "a mask of i1"),
        ("aten::scatter_reduce.two", (X, 0, tensor(3, 4, dtype="i64"), X, "mean", True), 'reduce="mean", include_self=True; sum'),
        ("aten::scatter_reduce.two", (X, 0, tensor(3, 4, dtype="i64"), X, "sum", False), "include_self=False"),
        ("aten::view.dtype", (X, torch.int64), "aten::view of f32 as i64; element types of equal width work"),
        ("aten::div.Tensor_mode", (MASK, MASK, "floor"), "convert them to integers first"),
        ("aten::uniform", (INDEX, 0.0, 1.0, None), "uniform_ on i64; floating types work"),
        ("aten::add.Tensor", (X, 1j, 1), "a scalar of type complex; bool, int and float work"),
        ("aten::clamp_max", (tensor(3, dtype="i8"), 1000), "the number 1000 does not fit torch.int8; use a wider dtype"),
        ("aten::pow.Scalar", (1e39, X), "the number 1e[+]39 does not fit torch.float32"),
        ("aten::sum.dim_IntList", (X, [0], False, torch.complex64), "dtype torch.complex64 has no element type on this device"),
    ],
)  # fmt: skip
def test_unsupported_calls_say_what_works(op, args, message):
    with pytest.raises(Unsupported, match=message):
        lower(op, *args)


@pytest.mark.parametrize(
    "op, args, error, message",
    [
        ("aten::add.Tensor", (X, tensor(5), 1), ValueError, r"shapes \(3, 4\), \(5,\) do not broadcast together"),
        ("aten::pow.Tensor_Scalar", (INDEX, -1), ValueError, "Integers to negative integer powers are not allowed"),
        ("aten::amax", (tensor(0, 3), [0], False), IndexError, "over an empty dimension has no identity"),
        ("aten::mean.dim", (INDEX, [0], False, None), ValueError, "the input dtype must be a floating point"),
        ("aten::var.correction", (INDEX, [0], 1, False), ValueError, "only support floating point"),
        ("aten::linalg_vector_norm", (INDEX, 2, None, False, None), ValueError, "Expected a floating point"),
        ("aten::permute", (X, [0, 5]), IndexError, r"expected to be in range of \[-2, 1\], but got 5"),
        ("aten::select.int", (X, 0, 3), IndexError, r"select\(\): index 3 out of range for tensor of size \[3, 4\] at dimension 0"),
        ("aten::mm", (X, X), HloTypeError, "contracting dimensions"),
        ("aten::neg", (MASK,), HloTypeError, r"stablehlo\.negate: got tensor<3x4xi1>"),
        ("aten::view", (X, [5]), HloTypeError, r"as many elements as tensor<5xf32>"),
        ("aten::cat", ([X, tensor(2, 5)], 0), HloTypeError, "equal but for dimension 0"),
        ("aten::gather", (X, 0, X), HloTypeError, "integer indices"),
    ],
)  # fmt: skip
def test_wrong_calls_are_errors(op, args, error, message):
    with pytest.raises(error, match=message):
        lower(op, *args)


def test_operations_carry_the_operator():
    (value,) = lower("aten::gelu", X, "none")
    assert value.operation.location == "aten::gelu"


def test_a_second_row_is_refused():
    with pytest.raises(
        ValueError,
        match=r"lowers\('aten::neg'\): the operator already has a row \(torch_neuronx_compile.lowering.unary\)",
    ):
        lowers("aten::neg")(lambda x: x)
    with pytest.raises(ValueError, match='write the operator as "namespace::name"'):
        lowers("neg")(lambda x: x)


def test_every_row_is_an_operator_of_torch_and_names_its_arguments():
    for name, row in ROWS.items():
        found = schema(name)
        assert found is not None, name
        assert set(row.operands) <= {a.name for a in found.arguments}, name
        assert not any(a.alias_info is not None and a.alias_info.is_write for a in found.arguments), (
            f"{name} is not functional"
        )


@pytest.mark.parametrize(
    "called, row, operands, mutated, out, returned, padding",
    [
        ("aten::add.Tensor", "aten::add.Tensor", (2,), (), 0, 1, 0),
        ("aten::add_.Tensor", "aten::add.Tensor", (2,), (0,), 0, 0, 0),
        ("aten::add.out", "aten::add.Tensor", (2,), (), 1, 0, 0),
        ("aten::mean.out", "aten::mean.dim", (), (), 1, 0, 0),
        ("aten::where.self_out", "aten::where.self", (), (), 1, 0, 0),
        ("aten::arange.start_out", "aten::arange.start_step", (0, 1, 2), (), 1, 0, 4),
        ("aten::zero_", "aten::zero", (), (0,), 0, 0, 0),
        ("aten::normal_", "aten::normal_functional", (1, 2), (0,), 0, 0, 0),
        ("aten::bernoulli_.float", "aten::bernoulli.p", (1,), (0,), 0, 0, 0),
        ("aten::_index_put_impl_", "aten::_index_put_impl", (), (0,), 0, 0, 0),
        ("aten::_softmax_backward_data.out", "aten::_softmax_backward_data", (), (), 1, 0, 0),
        ("aten::native_batch_norm", "aten::native_batch_norm", (), (3, 4), 0, 3, 0),
        ("aten::_native_batch_norm_legit", "aten::_native_batch_norm_legit_functional", (), (3, 4), 0, 3, 0),
        ("aten::_fused_adamw_", "aten::_fused_adamw", (6,), (0, 1, 2, 3, 4), 0, 0, 0),
        ("aten::_foreach_addcdiv_.ScalarList", "aten::_foreach_addcdiv.ScalarList", (3,), (0,), 0, 0, 0),
        ("aten::max.dim_max", "aten::max.dim", (), (), 2, 0, 0),
    ],
)  # fmt: skip
def test_called_forms_find_their_row(called, row, operands, mutated, out, returned, padding):
    found = functional(called)
    assert found is not None and found.row is lookup(row)
    assert (found.operands, found.mutated, found.out, found.returned, found.padding) == (
        operands,
        mutated,
        out,
        returned,
        padding,
    )
    args = tuple(range(12))
    assert found.arguments(args) == args + (None,) * padding


@pytest.mark.parametrize("called", ["aten::sum.IntList_out", "aten::prod.int_out", "aten::mean.out"])
def test_an_out_form_computes_in_the_dtype_of_its_result(called: str):
    found = functional(called)
    assert found.arguments((X, [0], False, None), torch.float16) == (X, [0], False, torch.float16)
    assert found.arguments((X, [0], False, torch.float64), torch.float16) == (X, [0], False, torch.float64)


def test_operators_without_a_row():
    assert functional("aten::convolution") is None
    assert functional("aten::no_such_operator") is None


@pytest.mark.parametrize(
    "left", [torch.bool, torch.uint8, torch.int64, torch.bfloat16, torch.float16, torch.float32, torch.float64]
)
@pytest.mark.parametrize(
    "right", [torch.bool, torch.uint8, torch.int64, torch.bfloat16, torch.float16, torch.float32, torch.float64]
)
def test_promotion_is_torchs(left, right):
    for a, b in (((2,), (2,)), ((2,), ()), ((), ())):
        expected = torch.result_type(torch.empty(a, dtype=left), torch.empty(b, dtype=right))
        assert result_type(tensor(*a, dtype=hlo_dtype(left)), tensor(*b, dtype=hlo_dtype(right))) == hlo_dtype(expected)
    for number in (True, 2, 2.5):
        wrapped = Parameter(
            0, TensorType((), {bool: "i1", int: "i64", float: "f64"}[type(number)]), "scalar", wrapped=True
        )
        for shape in ((2,), ()):
            expected = hlo_dtype(torch.result_type(torch.empty(shape, dtype=left), number))
            assert result_type(tensor(*shape, dtype=hlo_dtype(left)), number) == expected
            assert result_type(wrapped, tensor(*shape, dtype=hlo_dtype(left))) == expected


PLUGIN = """
import torch, warnings
from importlib.metadata import EntryPoint
from torch_neuronx_compile.lowering import registry

torch.library.define("mylib::twice", "(Tensor x) -> Tensor")
good = EntryPoint("good", "plugin_rows", registry.ENTRY_POINTS)
bad = EntryPoint("bad", "plugin_that_is_not_there", registry.ENTRY_POINTS)
registry.entry_points = lambda group: [bad, good]
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    row = registry.lookup("mylib::twice")
print(row, [str(w.message) for w in caught])
"""


def test_other_packages_add_rows_by_entry_point(tmp_path):
    (tmp_path / "plugin_rows.py").write_text(
        textwrap.dedent("""
        import torch_neuronx_compile.stablehlo as hlo
        from torch_neuronx_compile.lowering import lowers

        @lowers("mylib::twice")
        def twice(x):
            return hlo.add(x, x)
    """)
    )
    (tmp_path / "main.py").write_text(PLUGIN)
    result = subprocess.run([sys.executable, str(tmp_path / "main.py")], capture_output=True, text=True, check=True)
    assert "<lowering row mylib::twice>" in result.stdout
    assert "lowerings 'bad' (plugin_that_is_not_there) could not be loaded: ModuleNotFoundError" in result.stdout
