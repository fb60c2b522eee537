"""Streams and events."""

import threading

import pytest
import torch

several = pytest.mark.skipif(torch.neuron.device_count() < 2, reason="needs two visible cores")


def test_default_stream_is_current():
    assert torch.neuron.current_stream() == torch.neuron.default_stream()
    assert torch.neuron.current_stream().stream_id == 0
    assert torch.accelerator.current_stream() == torch.neuron.current_stream()


def test_stream_context():
    s = torch.neuron.Stream()
    assert isinstance(s, torch.Stream) and s.device == torch.device("neuron:0") and s.stream_id != 0
    with torch.neuron.stream(s):
        assert torch.neuron.current_stream() == s
        with torch.neuron.stream(None):
            assert torch.neuron.current_stream() == s
        x = torch.ones(3).to("neuron")
    assert torch.neuron.current_stream() == torch.neuron.default_stream()
    s.synchronize()
    assert s.query() and x.cpu().tolist() == [1, 1, 1]
    with s:
        assert torch.accelerator.current_stream() == s
    assert torch.neuron.current_stream().stream_id == 0


def test_stream_context_after_an_error():
    with pytest.raises(ZeroDivisionError), torch.neuron.stream(torch.neuron.Stream()):
        1 / 0  # noqa: B018
    assert torch.neuron.current_stream().stream_id == 0


def test_set_stream():
    s = torch.neuron.Stream()
    torch.neuron.set_stream(s)
    try:
        assert torch.neuron.current_stream() == s
        torch.neuron.set_stream(None)
        assert torch.neuron.current_stream() == s
    finally:
        torch.neuron.set_stream(torch.neuron.default_stream())


def test_streams_differ_and_priorities_are_accepted():
    a, b = torch.neuron.Stream(priority=-1), torch.neuron.Stream(device="neuron:0", priority=0)
    assert a != b and a.stream_id != b.stream_id
    assert torch.Stream("neuron").device == torch.device("neuron:0")


def test_current_stream_is_of_a_thread():
    seen = []
    with torch.neuron.stream(torch.neuron.Stream()):
        thread = threading.Thread(target=lambda: seen.append(torch.neuron.current_stream().stream_id))
        thread.start()
        thread.join()
    assert seen == [0]


def test_waits():
    a, b = torch.neuron.Stream(), torch.neuron.Stream()
    event = a.record_event()
    b.wait_event(event)
    b.wait_stream(a)
    torch.neuron.current_stream().wait_stream(b)
    assert event.query()


def test_event():
    start, end = torch.neuron.Event(enable_timing=True), torch.neuron.Event(enable_timing=True)
    assert isinstance(start, torch.Event) and isinstance(start, torch.neuron.Event)
    start.record()
    x = torch.ones(1000).to("neuron")
    end.record(torch.neuron.current_stream())
    end.synchronize()
    end.wait()
    assert end.query() and start.elapsed_time(end) > 0 and x.device.type == "neuron"
    assert not isinstance(torch.Event("cpu"), torch.neuron.Event)


def test_elapsed_time_orders_events():
    events = [torch.neuron.Event(enable_timing=True) for _ in range(3)]
    for event in events:
        event.record()
    first, second = events[0].elapsed_time(events[1]), events[1].elapsed_time(events[2])
    assert events[0].elapsed_time(events[2]) == pytest.approx(first + second)
    assert events[1].elapsed_time(events[0]) == -first


def test_events_that_cannot_be_timed():
    recorded, untimed = torch.neuron.Event(enable_timing=True), torch.neuron.Event()
    recorded.record()
    untimed.record()
    with pytest.raises((RuntimeError, ValueError)):
        recorded.elapsed_time(untimed)
    with pytest.raises((RuntimeError, ValueError)):
        recorded.elapsed_time(torch.neuron.Event(enable_timing=True))


def test_unrecorded_event_is_done():
    assert torch.neuron.Event().query()


@several
def test_streams_of_several_devices():
    s = torch.neuron.Stream(device=1)
    assert s.device == torch.device("neuron:1")
    with torch.neuron.stream(s):
        assert torch.neuron.current_device() == 1 and torch.neuron.current_stream(0).stream_id == 0
    assert torch.neuron.current_device() == 0 and torch.neuron.current_stream(1).stream_id == 0


@several
def test_event_of_another_device():
    event = torch.neuron.Event()
    event.record()
    with pytest.raises(RuntimeError, match="device"):
        event.record(torch.neuron.Stream(device=1))


def test_record_stream():
    s = torch.neuron.Stream()
    x = torch.ones(4).to("neuron")
    x.record_stream(s)
    with torch.neuron.stream(s):
        y = x.clone()
    del x
    assert y.cpu().tolist() == [1, 1, 1, 1]


def test_not_a_stream():
    with pytest.raises(RuntimeError, match="neuron"):
        torch._C._accelerator_setStream(torch.Stream(stream_id=99, device_index=0, device_type=20))
    with pytest.raises(RuntimeError, match="neuron"):
        torch._C._accelerator_setStream(torch.Stream(stream_id=-3, device_index=0, device_type=20))


def test_synchronize():
    torch.neuron.synchronize()
    torch.neuron.synchronize("neuron:0")
    torch.accelerator.synchronize()
