"""Forks, threads, and the end of a process."""

import threading

import pytest
import torch

FORK = """
import os, torch
{before}
child = os.fork()
if child == 0:
    try:
        {inside}
        os._exit(0)
    except RuntimeError as error:
        os.write(1, str(error).encode())
        os._exit(3)
    except BaseException as error:
        os.write(1, repr(error).encode())
        os._exit(4)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.parametrize(
    "use",
    [
        "torch.ones(1, device='neuron')",
        "torch.ones(1).to('neuron')",
        "torch.empty(1, device='neuron')",
        "x.clone()",
        "x.cpu()",
        "x.sum()",
        "x[0].item()",
        "x.fill_(1)",
        "x.copy_(torch.ones(1))",
        "torch.neuron.init()",
        "torch.neuron.synchronize()",
        "torch.neuron.memory_stats()",
        "torch.neuron.mem_get_info()",
        "torch.neuron.Event().record()",
    ],
)
def test_a_used_device_poisons_children(python, use):
    done = python(FORK.format(before="x = torch.ones(3).to('neuron')", inside=use))
    text = (
        "Cannot re-initialize NEURON in forked subprocess. To use NEURON with multiprocessing, you must use the 'spawn' "
        "start method"
    )
    assert done.stdout == f"{text}3\n", done.stdout + done.stderr


def test_a_poisoned_child_can_do_everything_else(python):
    inside = """
        assert torch.neuron._is_in_bad_fork() and torch.neuron.device_count() > 0
        del x  # must not touch the runtime
        torch.manual_seed(1); assert torch.ones(2).sum().item() == 2
        torch.neuron.empty_cache()
"""
    done = python(FORK.format(before="x = torch.ones(3).to('neuron')", inside=inside.strip()))
    assert done.stdout == "0\n", done.stdout + done.stderr


def test_an_unused_device_does_not_poison(python):
    before = "torch.neuron.is_available(); torch.neuron.device_count(); torch.manual_seed(1)"
    done = python(FORK.format(before=before, inside="assert torch.ones(3).to('neuron').cpu().tolist() == [1, 1, 1]"))
    assert done.stdout == "0\n", done.stdout + done.stderr


def test_fork_while_another_thread_works(python):
    before = """
import threading
x = torch.ones(1000).to("neuron")
stop = False
def work():
    while not stop:
        x.clone()
thread = threading.Thread(target=work); thread.start()
"""
    after = "\nstop = True; thread.join()"
    for _ in range(2):
        done = python(FORK.format(before=before, inside="assert torch.neuron._is_in_bad_fork(); del x") + after)
        assert done.stdout == "0\n", done.stdout + done.stderr


def test_dataloader_workers(python):
    code = """
import torch
x = torch.ones(2).to("neuron")
data = torch.arange(8.0).view(4, 2)
loader = torch.utils.data.DataLoader(data, batch_size=2, num_workers=1, pin_memory=True)
for batch in loader:
    assert batch.is_pinned()
    x += batch.to("neuron", non_blocking=True).sum(0)
print(x.cpu().tolist())
"""
    done = python(code)
    assert done.stdout.strip() == "[13.0, 17.0]", done.stdout + done.stderr


def test_spawned_process(python, tmp_path):
    script = tmp_path / "spawn.py"
    script.write_text(
        """
import torch
def work(rank, value):
    assert (torch.ones(3).to("neuron") * value).cpu().tolist() == [value] * 3
if __name__ == "__main__":
    torch.ones(1).to("neuron")
    torch.multiprocessing.spawn(work, (3.0,), nprocs=1)
    print("done")
"""
    )
    done = python(f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')")
    assert done.stdout.strip() == "done", done.stderr


@pytest.mark.parametrize("code", ["torch.ones(3).to('neuron')", "torch.ones(2).pin_memory()", "torch.neuron.Stream()"])
def test_clean_exit(python, code):
    program = f"""
import atexit, builtins, torch
builtins.keep = {code}
y = torch.ones(2).to("neuron")
atexit.register(lambda: print((y + 1).sum().item()))
"""
    done = python(program)
    assert (done.returncode, done.stdout.strip()) == (0, "4.0"), done.stderr


def test_exit_while_a_thread_works(python):
    code = """
import threading, torch
x = torch.ones(100_000).to("neuron")
def work():
    while True:
        (x + 1).cpu()
threading.Thread(target=work, daemon=True).start()
(x + 1).sum().item()
"""
    assert python(code).returncode == 0


def test_threads_work_on_their_own_tensors():
    failures = []

    def work(number: int) -> None:
        try:
            for i in range(30):
                x = torch.full((50 + i,), float(number)).to("neuron")
                y = (x + x).t() if False else x + x
                if not torch.equal(y.cpu(), torch.full((50 + i,), 2.0 * number)):
                    failures.append((number, i))
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_memory_freed_by_another_thread():
    before = torch.neuron.memory_allocated()
    kept = [torch.ones(1000).to("neuron") for _ in range(20)]
    thread = threading.Thread(target=kept.clear)
    thread.start()
    thread.join()
    assert torch.neuron.memory_allocated() == before


def test_backward_from_several_threads():
    w = torch.ones(8).to("neuron").requires_grad_()

    def work():
        (w * w).sum().backward()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert w.grad.cpu().tolist() == [8.0] * 8
