"""Random operators with a program: numbers of the device generator, in program order."""

import pytest
import torch

import torch_neuronx


def state(generator=None):
    data = (generator.get_state() if generator else torch.neuron.get_rng_state()).numpy().view("uint64")
    return int(data[0]), int(data[1])


def draw(count, generator=None):
    return torch.empty(count, dtype=torch.int32, device="neuron").random_(generator=generator).tolist()


def test_numbers_follow_from_seed_and_offset(compiler):
    torch.neuron.manual_seed(5)
    first, second = draw(10), draw(6)
    assert state() == (5, 16)
    torch.neuron.manual_seed(5)
    assert draw(16) == first + second
    assert torch_neuronx.get_fallback_ops() == []
    assert len(compiler.requests) == 1


def test_philox_vector(compiler):
    """Random123's first known answer: key 0, counter 0."""
    torch.neuron.manual_seed(0)
    assert draw(1)[0] & 0xFFFFFFFF == 0x6627E8D5


def test_own_generator(compiler):
    torch.neuron.manual_seed(1)
    generator = torch.Generator("neuron").manual_seed(9)
    first = draw(8, generator)
    assert (state(generator), state()) == ((9, 8), (1, 0))
    assert draw(8, generator.manual_seed(9)) == first
    with pytest.raises(RuntimeError, match="generator"):
        draw(8, torch.Generator())


def test_empty_results_draw_nothing(compiler):
    torch.neuron.manual_seed(3)
    draw(0)
    assert state() == (3, 0)
