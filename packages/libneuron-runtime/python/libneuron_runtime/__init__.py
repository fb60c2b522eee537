"""The Neuron runtime: NEFF files, programs, and a simulated NeuronCore that executes them.

`Model(neff)` loads a NEFF, `Model.bind(slots)` fills in its slots, `Executable.run(inputs, outputs)` runs it on host buffers.
`libneuron_runtime.program` writes and reads programs, `libneuron_runtime.neff` the files around them.
"""

from libneuron_runtime._errors import GuardError, NeffError, NeuronError

__all__ = ["Executable", "GuardError", "Model", "NeffError", "NeuronError", "get_threads", "set_threads"]

_BINDING = ("Executable", "Model", "get_threads", "set_threads")


def __getattr__(name: str):
    # The shared library loads on first use, so that build tools which only look for the package's directory stay light.
    if name in _BINDING:
        from libneuron_runtime import _rt

        return getattr(_rt, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
