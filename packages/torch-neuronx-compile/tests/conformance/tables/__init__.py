"""The conformance tables, one module a family; `ALL` holds every case."""

from . import creation, elementwise, matmul, reduction, selection

ALL = [*elementwise.CASES, *selection.CASES, *creation.CASES, *reduction.CASES, *matmul.CASES]
