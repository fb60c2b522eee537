"""Every operator of PyTorch's own operator database by the CPU fallback: the results and the gradients' existence are those of the CPU."""

import itertools

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_flatten, tree_map

pytestmark = [
    pytest.mark.usefixtures("no_compiler"),
    pytest.mark.filterwarnings("ignore"),  # of the operators: deprecations, resized outputs
]

SAMPLES = 2  # the first ones are the plain ones

# Values that no two runs share.
UNINITIALISED = {"empty", "empty_like", "new_empty", "new_empty_strided", "empty_strided", "empty_permuted"}

# name -> why it cannot run
UNSUPPORTED = {
    "to_sparse": "the device holds strided tensors only",
    "as_strided": "samples reach beyond the sample's own storage, which the copy to the device does not have",
    "as_strided_copy": "the same",
    "as_strided_scatter": "the same",
    "tensor_split": "its sections must be on the CPU, with every device; the samples' move along",
    "chalf": "the CPU cannot compare complex32 tensors",
}


def runnable(op):
    return not op.name.startswith("jiterator") and not op.name.startswith("sparse.")  # of CUDA, and of sparse tensors


OPS = [
    pytest.param(
        op, id=op.full_name, marks=[pytest.mark.xfail(reason=UNSUPPORTED[op.name])] if op.name == "to_sparse" else []
    )
    for op in op_db
    if runnable(op) and (op.name == "to_sparse" or op.name not in UNSUPPORTED)
]


def on_device(tree):
    def move(value):
        if isinstance(value, torch.Tensor):
            return value.detach().to("neuron").requires_grad_(value.requires_grad)
        if isinstance(value, torch.device) or value == "cpu":
            return torch.device("neuron")
        return value

    return tree_map(move, tree)


def is_random(call):
    results = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        results.append([t for t in tree_flatten(call())[0] if isinstance(t, torch.Tensor)])
    return not all(torch.equal(a, b) or bool((a != a).any()) for a, b in zip(*results, strict=True))


def compare(op, expected, got, random):
    expected, got = tree_flatten(expected)[0], tree_flatten(got)[0]
    assert len(expected) == len(got)
    for e, g in zip(expected, got, strict=True):
        if not isinstance(e, torch.Tensor):
            assert isinstance(g, torch.Tensor) or type(e) is type(g)
            continue
        assert g.requires_grad == e.requires_grad and (g.grad_fn is None) == (e.grad_fn is None)
        assert g.dtype == e.dtype and g.shape == e.shape and g.layout == e.layout
        if not random and op.name not in UNINITIALISED:
            torch.testing.assert_close(g.detach().cpu(), e.detach().cpu(), equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64], ids=str)
@pytest.mark.parametrize("op", OPS)
def test_operator(op, dtype):
    if dtype not in op.supported_dtypes("cpu"):
        pytest.skip("not an operator of this dtype on the CPU")
    gradients = dtype.is_floating_point and dtype in op.supported_backward_dtypes("cpu")
    torch.manual_seed(0)
    for sample in itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=gradients), SAMPLES):
        arguments, named = (sample.input, *sample.args), sample.kwargs
        moved, moved_named = on_device(arguments), on_device(named)
        random = is_random(lambda: op(*tree_map(clone, arguments), **tree_map(clone, named)))  # noqa: B023
        torch.manual_seed(0)
        expected = op(*tree_map(clone, arguments), **named)
        torch.manual_seed(0)
        compare(op, expected, op(*moved, **moved_named), random)


def clone(value):
    """A fresh leaf, so that an operator that writes its argument does not spoil the next run."""
    return value.detach().clone().requires_grad_(value.requires_grad) if isinstance(value, torch.Tensor) else value
