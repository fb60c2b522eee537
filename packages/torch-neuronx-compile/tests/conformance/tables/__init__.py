"""The conformance tables, one module a family; `ALL` holds every case."""

from . import elementwise

ALL = [*elementwise.CASES]
