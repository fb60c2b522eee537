"""The allocator: statistics, limits, reuse."""

import gc

import pytest
import torch

MIB = 1 << 20


def nbytes() -> int:
    return torch.neuron.memory_allocated()


@pytest.fixture(autouse=True)
def quiet():
    gc.collect()
    torch.neuron.init()
    torch.neuron.reset_peak_memory_stats()


def test_allocated_follows_tensors():
    before = nbytes()
    x = torch.empty(MIB, dtype=torch.uint8, device="neuron")
    y = torch.empty(1000, dtype=torch.float64, device="neuron")
    assert nbytes() - before == MIB + 8000
    view = x[10:]
    del x
    assert nbytes() - before == MIB + 8000  # the view keeps the memory
    del view, y
    assert nbytes() == before
    assert torch.neuron.max_memory_allocated() == before + MIB + 8000


def test_peak_and_accumulated():
    x = torch.empty(4 * MIB, dtype=torch.uint8, device="neuron")
    peak = torch.neuron.max_memory_allocated()
    del x
    assert torch.neuron.max_memory_allocated() == peak
    torch.neuron.reset_peak_memory_stats()
    assert torch.neuron.max_memory_allocated() == nbytes() == peak - 4 * MIB
    torch.neuron.reset_accumulated_memory_stats()
    x = torch.empty(MIB, dtype=torch.uint8, device="neuron")
    del x
    stats = torch.neuron.memory_stats()
    assert stats["allocated_bytes.all.allocated"] == stats["allocated_bytes.all.freed"] == MIB
    assert stats["allocation.all.allocated"] == 1


def test_pools():
    before = torch.neuron.memory_stats()
    small = torch.empty(MIB - 1, dtype=torch.uint8, device="neuron")
    large = torch.empty(MIB, dtype=torch.uint8, device="neuron")
    after = torch.neuron.memory_stats()
    grown = {
        pool: after[f"allocated_bytes.{pool}.current"] - before[f"allocated_bytes.{pool}.current"]
        for pool in ("all", "small_pool", "large_pool")
    }
    assert grown == {"all": 2 * MIB - 1, "small_pool": MIB - 1, "large_pool": MIB}
    del small, large


def test_flat_keys():
    stats = torch.neuron.memory_stats()
    for key in (
        "allocated_bytes.all.current",
        "reserved_bytes.all.current",
        "active_bytes.all.peak",
        "reserved_bytes.all.peak",
        "num_alloc_retries",
        "num_ooms",
    ):
        assert isinstance(stats[key], int)
    assert stats == torch.accelerator.memory_stats()


def test_reserved_covers_allocated():
    x = torch.empty(3 * MIB, dtype=torch.uint8, device="neuron")
    assert torch.neuron.memory_reserved() >= nbytes() >= 3 * MIB
    assert torch.neuron.max_memory_reserved() >= torch.neuron.memory_reserved()
    del x


def test_empty_cache_gives_memory_back():
    x = torch.empty(64 * MIB, dtype=torch.uint8, device="neuron")
    del x
    torch.neuron.empty_cache()
    assert torch.neuron.memory_reserved() < 64 * MIB


def test_memory_info():
    free, total = torch.neuron.mem_get_info()
    assert 0 < free <= total == torch.neuron.get_device_properties().total_memory
    x = torch.empty(32 * MIB, dtype=torch.uint8, device="neuron")
    assert torch.neuron.mem_get_info()[0] <= free - 32 * MIB
    assert torch.accelerator.get_memory_info() == torch.neuron.mem_get_info()
    del x


def test_snapshot_lists_live_allocations():
    x = torch.empty(12345, dtype=torch.uint8, device="neuron")
    mine = [block for block in torch.neuron.memory_snapshot() if block["address"] == x.data_ptr()]
    assert mine == [{"device": 0, "address": x.data_ptr(), "size": 12345}]
    assert sum(block["size"] for block in torch.neuron.memory_snapshot()) == nbytes()


def test_summary_names_the_figures():
    x = torch.empty(3 * MIB, dtype=torch.uint8, device="neuron")
    text = torch.neuron.memory_summary()
    assert text.startswith("neuron:0 memory") and "Allocated memory" in text and "MiB" in text
    assert "Allocations" not in torch.neuron.memory_summary(abbreviated=True)
    del x


def test_alignment_and_distinctness():
    blocks = [torch.empty(n, dtype=torch.uint8, device="neuron") for n in (1, 63, 64, 65, 4096, 100_000, 3_000_000)]
    assert all(block.data_ptr() % 64 == 0 for block in blocks)
    ranges = sorted((block.data_ptr(), block.data_ptr() + block.numel()) for block in blocks)
    assert all(first[1] <= second[0] for first, second in zip(ranges, ranges[1:], strict=False))


def test_empty_tensors_take_no_memory():
    before = nbytes()
    x = torch.empty(0, device="neuron")
    assert nbytes() == before and x.data_ptr() == 0


def test_reuse_keeps_live_tensors_apart():
    kept = [torch.full((1000,), float(i)).to("neuron") for i in range(8)]
    for _ in range(50):
        torch.full((1000,), -1.0).to("neuron")
    assert all(torch.equal(x.cpu(), torch.full((1000,), float(i))) for i, x in enumerate(kept))


def test_out_of_memory():
    before = torch.neuron.memory_stats()["num_ooms"]
    with pytest.raises(torch.OutOfMemoryError) as raised:
        torch.empty(1 << 50, dtype=torch.uint8, device="neuron")
    message = str(raised.value)
    assert message.startswith("NEURON out of memory. Tried to allocate 1048576.00 GiB. Core 0 has a total capacity of")
    assert "is free" in message and "NEURON_SIM_HBM_BYTES" in message
    assert torch.neuron.memory_stats()["num_ooms"] == before + 1
    assert torch.ones(3).to("neuron").cpu().tolist() == [1, 1, 1]  # the device is still usable


def test_limit_by_environment(python):
    code = """
import torch
assert torch.neuron.mem_get_info()[1] == 64 << 20
kept = []
try:
    while True:
        kept.append(torch.empty(4 << 20, dtype=torch.uint8, device="neuron"))
except torch.OutOfMemoryError as error:
    print(len(kept), torch.neuron.memory_stats()["num_alloc_retries"] > 0, "64.00 MiB" in str(error))
kept.clear()
print(torch.empty(40 << 20, dtype=torch.uint8, device="neuron").numel() == 40 << 20)
"""
    done = python(code, NEURON_SIM_HBM_BYTES=str(64 * MIB))
    assert done.returncode == 0, done.stderr
    count, retried, named, again = done.stdout.split()
    assert 8 <= int(count) <= 16 and (retried, named, again) == ("True", "True", "True")


def test_freed_small_tensors_make_room_for_a_large_one(python):
    code = """
import torch
free = torch.neuron.mem_get_info()[0]
small = [torch.empty(4096, dtype=torch.uint8, device="neuron") for _ in range(12 << 8)]
assert torch.neuron.mem_get_info()[0] == free - (12 << 20)
small.clear()
assert torch.neuron.mem_get_info()[0] == free and torch.neuron.memory_allocated() == 0
assert torch.neuron.memory_snapshot() == []
print(torch.empty(14 << 20, dtype=torch.uint8, device="neuron").numel() == 14 << 20)
"""
    done = python(code, NEURON_SIM_HBM_BYTES=str(16 * MIB))
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["True"]


def test_reused_small_tensors_keep_their_sizes_apart():
    sizes = (1, 63, 64, 65, 4095, 4096, 4097)
    for size in sizes:  # leaves one freed block a size
        torch.empty(size, dtype=torch.uint8, device="neuron")
    tensors = [torch.full((size,), i, dtype=torch.uint8).to("neuron") for _ in range(2) for i, size in enumerate(sizes)]
    ranges = sorted((tensor.data_ptr(), tensor.data_ptr() + tensor.numel()) for tensor in tensors)
    assert all(first[1] <= second[0] for first, second in zip(ranges, ranges[1:], strict=False))
    for i, tensor in enumerate(tensors):
        assert tensor.cpu().eq(i % len(sizes)).all()


def test_empty_cache_gives_small_blocks_back(python):
    code = """
import torch
small = [torch.empty(64, dtype=torch.uint8, device="neuron") for _ in range(1 << 18)]
used = torch.neuron.memory_reserved()
small.clear()
torch.neuron.empty_cache()
print(used >= 16 << 20, torch.neuron.memory_reserved() <= 2 << 20)
"""
    done = python(code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["True", "True"]


def test_negative_size():
    with pytest.raises(RuntimeError, match="negative dimension -1"):
        torch.empty(-1, device="neuron")


def test_pinned_memory():
    x = torch.arange(10.0).pin_memory()
    assert x.is_pinned() and x[3:].is_pinned() and not torch.arange(10.0).is_pinned()
    assert x.device.type == "cpu" and x.to("neuron", non_blocking=True).cpu().tolist() == list(range(10))
    assert torch.empty(3, pin_memory=True).is_pinned()
    assert torch.empty(0).pin_memory().numel() == 0
    address = x.data_ptr()
    del x
    assert address != 0


def test_device_tensors_are_not_pinned():
    x = torch.empty(2, device="neuron")
    assert not x.is_pinned()
    with pytest.raises(RuntimeError, match="pin"):
        x.pin_memory()
    with pytest.raises(RuntimeError, match="Only dense CPU tensors can be pinned"):
        torch.empty(2, device="neuron", pin_memory=True)


def test_profiler_sees_memory():
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        x = torch.empty(MIB, dtype=torch.uint8, device="neuron")
    assert any(event.self_device_memory_usage == MIB for event in profiler.key_averages())
    del x


def test_a_tensor_whose_storage_was_freed_is_an_error():
    x = torch.ones(3).to("neuron")
    x.untyped_storage().resize_(0)
    for use in (lambda: x + 1, lambda: x.fill_(1), lambda: x.cpu()):
        with pytest.raises(RuntimeError, match="has no memory"):
            use()
    x.untyped_storage().resize_(12)
    assert x.fill_(2).tolist() == [2, 2, 2]
