"""Errors of the runtime."""


class NeuronError(RuntimeError):
    """A call of the runtime failed.

    status: NRT_STATUS number; name: its name, e.g. "NRT_INVALID".
    """

    def __init__(self, status: int, name: str, message: str) -> None:
        super().__init__(f"{message} [{name}]")
        self.status = status
        self.name = name


class NeffError(NeuronError):
    """Bytes that are no NEFF or program this runtime can load."""


class GuardError(NeuronError):
    """A bind's slots break a guard of the program; `guard` is its number."""

    def __init__(self, status: int, name: str, message: str, guard: int) -> None:
        super().__init__(status, name, message)
        self.guard = guard
