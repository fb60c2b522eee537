"""Numbers and `out` arguments at the edges: what the device gives is what the CPU gives, or the CPU's error."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest
import torch

import torch_neuronx

Call = Callable[[Callable[[torch.Tensor], torch.Tensor]], object]  # takes what puts a tensor on the device under test


def small(dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.arange(1, 13).reshape(3, 4).to(dtype)


def written(call: Callable[[torch.Tensor, torch.Tensor], object], x: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    call(x, out)
    return out


CALLS: dict[str, Call] = {
    "complex factor": lambda on: on(small()) * 1j,
    "complex alpha": lambda on: torch.add(on(small()), on(small(torch.complex64)), alpha=2j),
    "complex exponent": lambda on: torch.pow(1j, on(small())),
    "complex in eq": lambda on: on(small()).eq(1j),
    "complex in where": lambda on: torch.where(on(small()) > 3, on(small()), 1j),
    "number of a complex tensor": lambda on: torch.float_power(on(small(torch.complex64)), 2),
    "complex where none is defined": lambda on: on(small()) < 1j,
    "complex into an integer": lambda on: on(small(torch.int32)).fill_(1j),
    "bound too large for int8": lambda on: on(small(torch.int8)).clamp_max(1000),
    "bound too small for int8": lambda on: on(small(torch.int8)).clamp_min(-1000),
    "bound too large for uint8": lambda on: on(small(torch.uint8)).clamp_max(256),
    "bound too large for float": lambda on: on(small()).clamp_max(1e39),
    "infinite bound": lambda on: on(small()).clamp_max(float("inf")),
    "exponent too large for int8": lambda on: on(small(torch.int8)) ** 1000,
    "negative in uint8": lambda on: on(small(torch.uint8)).fill_(-1),
    "comparison out of range": lambda on: on(small(torch.int8)) < 300,
    "logit of integers in place": lambda on: on(small(torch.int64)).logit_(),
    "logit with crossed bounds": lambda on: torch.logit(on(torch.tensor([0.1, 0.5, 0.9])), 0.6),
    "logit with bounds": lambda on: torch.logit(on(torch.tensor([-0.1, 0.0, 0.5, 1.0, 2.0, torch.nan])), 0.1),
    "range into a view": lambda on: written(lambda x, out: torch.arange(1, 13, out=out[:, ::2]), on(small()), on(torch.zeros(3, 8))),
    "range into a matrix": lambda on: torch.arange(1, 13, out=on(torch.zeros(3, 4))),
    "linspace into a matrix": lambda on: torch.linspace(0, 1, 12, out=on(torch.zeros(3, 4))),
    "linspace into another size": lambda on: torch.linspace(0, 1, 5, out=on(torch.zeros(0))),
    "addmm of NaN by 0": lambda on: torch.addmm(on(torch.ones(3, 3)), on(torch.full((3, 2), torch.nan)), on(torch.ones(2, 3)), alpha=0),
    "sum into int": lambda on: written(lambda x, out: torch.sum(x, 0, out=out), on(small() / 3), on(torch.empty(4, dtype=torch.int32))),
    "prod into int": lambda on: written(lambda x, out: torch.prod(x, 0, out=out), on(small() / 3), on(torch.empty(4, dtype=torch.int64))),
    "cumsum into int": lambda on: written(
        lambda x, out: torch.cumsum(x, 0, out=out), on(small() / 3), on(torch.empty(3, 4, dtype=torch.int64))
    ),
    "sum of a given dtype": lambda on: written(
        lambda x, out: torch.sum(x, 0, dtype=torch.float32, out=out), on(small() / 3), on(torch.empty(4))
    ),
    "expanded out": lambda on: written(
        lambda x, out: torch.index_select(x, 0, on(torch.tensor([0, 2])), out=out), on(small()), on(torch.zeros(2, 1)).expand(2, 4)
    ),
}  # fmt: skip


def outcome(call: Call, on: Callable[[torch.Tensor], torch.Tensor]) -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about what runs on the CPU
        try:
            return call(on).cpu()
        except (RuntimeError, NotImplementedError) as error:
            return type(error), str(error)


@pytest.mark.parametrize("name", CALLS)
def test_as_on_the_cpu(name: str):
    expected = outcome(CALLS[name], lambda tensor: tensor.clone())
    got = outcome(CALLS[name], lambda tensor: tensor.to("neuron"))
    if isinstance(expected, tuple):
        assert got == expected
    else:
        torch.testing.assert_close(got, expected, equal_nan=True)


def test_an_argument_that_is_also_the_result_is_read_before_it_is_resized():
    x = small().to("neuron")
    assert torch.sum(x, 0, out=x) is x
    assert x.tolist() == small().sum(0).tolist()


RANGES = [(5,), (7,), (0, 5), (1, 5), (3, 5), (3, 9), (0, 5, 2), (1, 5, 2), (0, 5, 3), (9, 0, -2), (0, 0.5, 0.5), (-1, 0.5, 0.5),
          (0.0, 1.0, 0.25), (0.0, 1.0, 0.5), (2, 2)]  # fmt: skip


def test_the_sizes_of_a_range_follow_its_numbers():
    """They are given at launch, so that ranges share programs; the size of the result is still each call's own."""
    for numbers in RANGES * 2:
        torch.testing.assert_close(torch.arange(*numbers, device="neuron").cpu(), torch.arange(*numbers))
    out = torch.empty(0, device="neuron")
    for numbers in RANGES:
        torch.testing.assert_close(
            torch.arange(*numbers, out=out.resize_(0)).cpu(), torch.arange(*numbers, dtype=torch.float32)
        )


def test_ranges_of_other_sizes_need_no_new_program():
    def ranges(sizes: range) -> int:
        """Programs there are once these ranges are made."""
        for size in sizes:
            for numbers in ((size,), (3, size), (0, size, 3)):
                torch.arange(*numbers, device="neuron")
        stats = torch_neuronx._C._get_compilation_cache_stats()
        return stats["total_compilations"] + stats["persistent_hits"]

    assert ranges(range(11, 14)) == ranges(range(20, 60))
