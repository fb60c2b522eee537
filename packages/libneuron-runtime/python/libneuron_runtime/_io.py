"""Signatures of models."""

from typing import NamedTuple


class Counts(NamedTuple):
    """What a bind and a launch must give."""

    inputs: int
    outputs: int
    slots: int
    scalars: int


class Io(NamedTuple):
    """One input or output of a bound program."""

    usage: str  # "input" or "output"
    dtype: int  # program.Dtype
    dims: tuple[int, ...]
    nbytes: int  # size that the buffer must have at least
    alias: int | None  # outputs: the input whose memory it may share
