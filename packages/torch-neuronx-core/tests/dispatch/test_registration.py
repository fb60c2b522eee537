"""What is registered for the device, and that no registration costs a gradient."""

from torch._C import _dispatch_get_all_op_names, _dispatch_has_kernel_for_dispatch_key

# Operators with a CompositeImplicitAutograd kernel that the device answers all the same. Each was checked to keep its gradient:
ALLOWED = {
    "aten::_has_compatible_shallow_copy_type",  # compares two tensors' types
    # only called by silu's and mish's formulas where no graph is recorded; the CPU has kernels for them too
    "aten::silu_backward",
    "aten::mish_backward",
}


def names_with(key):
    return {
        n
        for n in _dispatch_get_all_op_names()
        if n.startswith("aten::") and _dispatch_has_kernel_for_dispatch_key(n, key)
    }


def test_composite_operators_are_left_to_torch():
    assert names_with("PrivateUse1") & names_with("CompositeImplicitAutograd") == ALLOWED


def test_every_operator_of_the_cpu_is_registered():
    missing = names_with("CPU") - names_with("CompositeImplicitAutograd") - names_with("PrivateUse1")
    assert missing == {"aten::_fused_sdp_choice"}  # would choose one of the CPU's kernels
