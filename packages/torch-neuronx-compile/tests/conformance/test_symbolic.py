"""Every row takes symbolic sizes: eager programs are compiled for a class of shapes, not for one."""

from __future__ import annotations

import pytest

from torch_neuronx_compile.dim import ShapeEnv, hint
from torch_neuronx_compile.stablehlo import topological, verify

from .lowered import lower
from .test_rows import BY_ROW

# Rows that need a number where a size stands, with the reason. All other rows must not pin a size to its value.
PINNED = {
    "aten::diagonal": "the length of a diagonal is a minimum of two differences",
    "aten::diagonal_copy": "as diagonal",
    "aten::diagonal_scatter": "as diagonal",
    "aten::split.Tensor": "the number of results depends on the size",
    "aten::split_copy.Tensor": "as split",
    "aten::unbind.int": "the number of results is the size",
    "aten::unbind_copy.int": "as unbind",
    **dict.fromkeys(
        ("aten::view", "aten::view_copy", "aten::_unsafe_view", "aten::reshape", "aten::_reshape_copy", "aten::_reshape_alias",
         "aten::_reshape_alias_copy", "aten::native_group_norm", "aten::native_group_norm_backward", "aten::slice_scatter",
         "aten::as_strided_scatter", "prims::broadcast_in_dim"), "the call names sizes as numbers"),
    **dict.fromkeys(
        ("aten::max_pool2d_with_indices", "aten::avg_pool2d", "aten::avg_pool2d_backward"),
        "with ceil_mode the last window exists only for some sizes"),
    **dict.fromkeys(
        ("aten::_adaptive_avg_pool2d", "aten::_adaptive_avg_pool2d_backward"), "the output must divide the input"),
}  # fmt: skip


@pytest.mark.parametrize("row", sorted(BY_ROW))
def test_row_lowers_symbolic_sizes(row: str):
    for case in BY_ROW[row]:
        args, kwargs = case.make()
        expected = case.expected(args, kwargs)
        env = ShapeEnv()
        lowered = lower(case, args, kwargs, expected, env=env)
        shapes = [tuple(map(hint, value.shape)) for value in lowered.results]
        assert shapes == [tuple(e.shape) for e in expected], case.id
        for operation in topological(lowered.results):
            verify(operation)
        pinned = [g for g in env.guards if g.op == "EQ" and (isinstance(g.left, int) or isinstance(g.right, int))]
        assert row in PINNED or not pinned, f"{case.id}: sizes pinned by {pinned}"
