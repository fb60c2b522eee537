"""The generator: seeds, states, sharing."""

import copy
import pickle

import pytest
import torch


def words(state: torch.Tensor) -> list[int]:
    return state.view(torch.int64).tolist()


def test_state_is_seed_and_offset():
    g = torch.Generator("neuron").manual_seed(7)
    assert g.device == torch.device("neuron:0")
    state = g.get_state()
    assert (state.device.type, state.dtype, state.shape) == ("cpu", torch.uint8, (16,))
    assert words(state) == [7, 0] and g.initial_seed() == 7 and g.get_offset() == 0
    g.set_offset(40)
    assert words(g.get_state()) == [7, 40]
    assert words(g.manual_seed(8).get_state()) == [8, 0]


def test_large_and_negative_seeds():
    assert torch.Generator("neuron").manual_seed(2**64 - 1).initial_seed() == 2**64 - 1
    assert torch.Generator("neuron").manual_seed(-1).initial_seed() == 2**64 - 1


def test_set_state():
    a, b = torch.Generator("neuron").manual_seed(1), torch.Generator("neuron").manual_seed(2)
    a.set_offset(5)
    b.set_state(a.get_state())
    assert words(b.get_state()) == [1, 5]
    a.set_offset(6)
    assert words(b.get_state()) == [1, 5]  # copies


@pytest.mark.parametrize(
    "bad", [torch.zeros(8, dtype=torch.uint8), torch.zeros(16), torch.zeros(32, dtype=torch.uint8)[::2], torch.empty(0)]
)
def test_bad_state(bad):
    g = torch.Generator("neuron").manual_seed(3)
    with pytest.raises((RuntimeError, TypeError), match="state|type|dtype|Byte"):
        g.set_state(bad)
    assert words(g.get_state()) == [3, 0]


def test_clone_is_independent():
    a = torch.Generator("neuron").manual_seed(4)
    b = a.clone_state()
    b.set_offset(9)
    assert (b.device.type, words(a.get_state()), words(b.get_state())) == ("neuron", [4, 0], [4, 9])


def test_graphsafe_state_is_shared():
    a, b = torch.Generator("neuron").manual_seed(4), torch.Generator("neuron").manual_seed(5)
    b.graphsafe_set_state(a.graphsafe_get_state())
    assert b.initial_seed() == 4
    a.set_offset(12)
    assert b.get_offset() == 12
    with pytest.raises((RuntimeError, TypeError), match="generator|neuron"):
        a.graphsafe_set_state(torch.Generator())


def test_seed_takes_entropy():
    g = torch.Generator("neuron")
    assert len({g.seed() for _ in range(4)}) > 1 and g.get_offset() == 0


def test_pickle_and_deepcopy():
    g = torch.Generator("neuron").manual_seed(11)
    g.set_offset(3)
    for other in (pickle.loads(pickle.dumps(g)), copy.deepcopy(g)):
        assert other.device == g.device and words(other.get_state()) == [11, 3]


def test_philox_reserves_in_order():
    from torch_neuronx import _C

    torch.neuron.manual_seed(21)
    assert _C.philox(0, 10) == (21, 0)
    assert _C.philox(0, 0) == (21, 10)
    assert _C.philox(0, 5) == (21, 10)
    assert words(torch.neuron.get_rng_state()) == [21, 15]


def test_torch_manual_seed_reaches_every_device():
    torch.manual_seed(31)
    assert [words(state)[0] for state in torch.neuron.get_rng_state_all()] == [31] * torch.neuron.device_count()
    assert torch.neuron.initial_seed() == 31
    torch.neuron.manual_seed_all(32)
    assert [g.initial_seed() for g in torch.neuron.default_generators] == [32] * torch.neuron.device_count()
    torch.neuron.seed_all()
    assert len({words(state)[0] for state in torch.neuron.get_rng_state_all()}) == 1
    torch.neuron.seed()


def test_rng_state_functions():
    torch.neuron.manual_seed(1)
    states = torch.neuron.get_rng_state_all()
    torch.neuron.manual_seed_all(2)
    torch.neuron.set_rng_state_all(states)
    assert torch.neuron.initial_seed() == 1
    torch.neuron.set_rng_state(torch.Generator("neuron").manual_seed(9).get_state(), "neuron:0")
    assert torch.neuron.initial_seed() == 9


def test_same_seed_same_numbers():
    torch.manual_seed(5)
    a = torch.rand(100, device="neuron").cpu()
    torch.manual_seed(5)
    b = torch.rand(100, device="neuron").cpu()
    c = torch.rand(100, device="neuron").cpu()
    assert torch.equal(a, b) and not torch.equal(b, c)
    assert ((0 <= a) & (a < 1)).all()


def test_given_generator_is_used_and_the_default_left_alone():
    g = torch.Generator("neuron").manual_seed(5)
    before = words(torch.neuron.get_rng_state())
    a = torch.rand(10, device="neuron", generator=g).cpu()
    b = torch.rand(10, device="neuron", generator=g).cpu()
    assert not torch.equal(a, b) and words(torch.neuron.get_rng_state()) == before
    assert torch.equal(torch.rand(10, device="neuron", generator=g.manual_seed(5)).cpu(), a)


def test_cpu_generator_is_left_alone():
    torch.manual_seed(5)
    cpu = torch.get_rng_state()
    torch.rand(10, device="neuron")
    torch.randn(10, device="neuron")
    torch.nn.functional.dropout(torch.ones(10).to("neuron"))
    assert torch.equal(torch.get_rng_state(), cpu)


def test_fork_rng():
    torch.manual_seed(6)
    with torch.random.fork_rng(devices=[0], device_type="neuron"):
        a = torch.rand(4, device="neuron").cpu()
    assert torch.equal(torch.rand(4, device="neuron").cpu(), a)


def test_checkpoint_replays_random_numbers():
    from torch.utils.checkpoint import checkpoint

    x = torch.ones(64).to("neuron").requires_grad_()
    y = checkpoint(lambda t: torch.nn.functional.dropout(t, 0.5) * t, x, use_reentrant=False)
    y.sum().backward()
    assert torch.equal(x.grad.cpu(), 2 * y.detach().cpu())  # the same mask in the recomputation


def test_generator_of_another_device():
    with pytest.raises(RuntimeError, match="generator"):
        torch.rand(2, device="neuron", generator=torch.Generator())
    with pytest.raises(RuntimeError, match="generator"):
        torch.rand(2, generator=torch.Generator("neuron"))


def test_threads_draw_distinct_numbers():
    import threading

    from torch_neuronx import _C

    torch.neuron.manual_seed(1)
    seen, lock = [], threading.Lock()

    def draw():
        mine = [_C.philox(0, 3)[1] for _ in range(200)]
        with lock:
            seen.extend(mine)

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == list(range(0, 3 * 800, 3))
