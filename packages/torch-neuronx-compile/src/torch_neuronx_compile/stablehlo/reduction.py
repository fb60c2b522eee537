"""Reductions, scans and contractions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch_neuronx_compile.stablehlo.ops import OpSpec, check_count, define, kind, kinds_in_words, make, refuse
from torch_neuronx_compile.stablehlo.value import TensorType, Value

Attributes = Mapping[str, Any]
Types = tuple[TensorType, ...]

# Name of the body -> accepted element types. The initial value of each is its neutral element.
REDUCE_BODIES = {"add": "fi", "multiply": "fi", "maximum": "fib", "minimum": "fib", "and": "ib", "or": "ib",
                 "argmax": "fi", "argmin": "fi"}  # fmt: skip
SCAN_BODIES = {"add": "fi", "multiply": "fi", "maximum": "fi", "minimum": "fi"}


def _check_body(spec: OpSpec, operands: tuple[Value, ...], bodies: Mapping[str, str], body: str) -> None:
    check_count(spec, operands, 1)
    if body not in bodies:
        raise refuse(spec, operands, f"a body among {', '.join(bodies)}, not {body!r}")
    if kind(operands[0].dtype) not in bodies[body]:
        raise refuse(spec, operands, f"{kinds_in_words(bodies[body])} elements for the body {body}")


def _reduce(spec: OpSpec, operands: tuple[Value, ...], attributes: Attributes) -> Types:
    body, dimensions = attributes["body"], attributes["dimensions"]
    _check_body(spec, operands, REDUCE_BODIES, body)
    x = operands[0]
    if list(dimensions) != sorted(set(dimensions)) or not all(0 <= d < x.rank for d in dimensions):
        raise refuse(spec, operands, f"ascending distinct dimensions of the operand, not {dimensions}")
    indexing = body in ("argmax", "argmin")
    if indexing and len(dimensions) != 1:
        raise refuse(spec, operands, f"one dimension for the body {body}, not {dimensions}")
    return (TensorType((s for d, s in enumerate(x.shape) if d not in dimensions), "i64" if indexing else x.dtype),)


def _scan(spec: OpSpec, operands: tuple[Value, ...], attributes: Attributes) -> Types:
    _check_body(spec, operands, SCAN_BODIES, attributes["body"])
    if not 0 <= attributes["dimension"] < operands[0].rank:
        raise refuse(spec, operands, f"a dimension of the operand, not {attributes['dimension']}")
    return (operands[0].type,)


def _dot_general(spec: OpSpec, operands: tuple[Value, ...], attributes: Attributes) -> Types:
    check_count(spec, operands, 2)
    x, y = operands
    xb, yb, xc, yc = (attributes[n] for n in ("lhs_batch", "rhs_batch", "lhs_contracting", "rhs_contracting"))
    fits = (
        x.dtype == y.dtype and kind(x.dtype) != "b" and kind(attributes["dtype"]) == kind(x.dtype)
        and len(xb) == len(yb) and len(xc) == len(yc)
        and all(len(set(ds)) == len(ds) and all(0 <= d < v.rank for d in ds) for v, ds in ((x, xb + xc), (y, yb + yc)))
        and all(x.shape[a] == y.shape[b] for a, b in zip(xb + xc, yb + yc, strict=True))
    )  # fmt: skip
    if not fits:
        raise refuse(
            spec, operands, f"two tensors of one float or integer element type whose batch dimensions {xb}, {yb} "
            f"and contracting dimensions {xc}, {yc} agree, and a result of that kind, not {attributes['dtype']}"
        )  # fmt: skip
    batch = [x.shape[d] for d in xb]
    left = [s for d, s in enumerate(x.shape) if d not in xb and d not in xc]
    right = [s for d, s in enumerate(y.shape) if d not in yb and d not in yc]
    return (TensorType((*batch, *left, *right), attributes["dtype"]),)


define("reduce", "stablehlo.reduce", _reduce, attributes=("body", "dimensions"), style="reduce")
define("scan", "stablehlo.reduce_window", _scan, attributes=("body", "dimension", "reverse"), style="scan")
define("dot_general", "stablehlo.dot_general", _dot_general, "fi",
       ("lhs_batch", "rhs_batch", "lhs_contracting", "rhs_contracting", "dtype"), "dot_general")  # fmt: skip


def reduce(x: Value, body: str, dimensions: Sequence[int]) -> Value:
    """Combine the elements along the dimensions, which disappear.

    body: add, multiply, maximum, minimum, and, or; an empty reduction gives its neutral element. "argmax" and "argmin"
    (one dimension) give the i64 index of the first largest or smallest element; a NaN beats every number.
    """
    return make("reduce", (x,), {"body": body, "dimensions": tuple(dimensions)})


def scan(x: Value, body: str, dimension: int, *, reverse: bool = False) -> Value:
    """Inclusive scan along a dimension: add, multiply, maximum or minimum of all elements up to each one."""
    return make("scan", (x,), {"body": body, "dimension": dimension, "reverse": reverse})


def dot_general(x: Value, y: Value, *, batch: tuple[Sequence[int], Sequence[int]] = ((), ()),
                contracting: tuple[Sequence[int], Sequence[int]], dtype: str | None = None) -> Value:  # fmt: skip
    """Sum of products over the contracting dimensions; result: batch, then left, then right dimensions.

    The products are accumulated in f32 (floats) or exactly; `dtype` is the result's element type (default: the operands').
    """
    return make("dot_general", (x, y), {
        "lhs_batch": tuple(batch[0]), "rhs_batch": tuple(batch[1]),
        "lhs_contracting": tuple(contracting[0]), "rhs_contracting": tuple(contracting[1]), "dtype": dtype or x.dtype,
    })  # fmt: skip
