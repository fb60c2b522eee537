"""The conformance tables, one module a family; `ALL` holds every case."""

from . import (
    activation,
    creation,
    elementwise,
    indexing,
    lists,
    loss,
    matmul,
    movement,
    norm,
    random,
    reduction,
    selection,
    spatial,
)

ALL = [*elementwise.CASES, *selection.CASES, *creation.CASES, *reduction.CASES, *matmul.CASES,
       *movement.CASES, *indexing.CASES, *norm.CASES, *activation.CASES, *loss.CASES,
       *random.CASES, *lists.CASES, *spatial.CASES]  # fmt: skip
