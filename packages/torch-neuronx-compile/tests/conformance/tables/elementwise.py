"""Element-wise operators: unary, binary, comparison, selection."""

from __future__ import annotations

import torch

from ..case import ALL_DTYPES, FLOATS, INTEGERS, SHAPES, Case, Number, Tensor, Tolerance, grid

F32, F64, BF16, F16 = torch.float32, torch.float64, torch.bfloat16, torch.float16
I64, I32, U8, BOOL = torch.int64, torch.int32, torch.uint8, torch.bool

POLYNOMIAL = Tolerance(ulp=6, reason="each side approximates the function, both within a few units in the last place")
SEVERAL_STEPS = Tolerance(ulp=8, reason="a formula of several rounded steps on each side")
SINC = Tolerance(ulp=8, absolute=1e-4, reason="the argument pi * x is rounded to f32 before the sine, here up to 3e4")
NEAR_ZERO = Tolerance(ulp=8, absolute=1e-6, reason="cancellation near a zero of the function")
SQRT = Tolerance(
    ulp=1, reason="torch's square root comes from MKL and is not always the nearest number; the device's is"
)
XLA_RECIPROCAL = Tolerance(xla=1, reason="XLA turns a division by one number into a multiplication")
XLA_HYPERBOLIC = Tolerance(ulp=4, xla=8, reason="XLA adds log(1/2) to the argument of exp")
XLA_GAMMA = Tolerance(ulp=8, absolute=3e-6, reason="cancellation near the zeros at 1 and 2")
FMA = Tolerance(
    ulp=1, absolute=4e-6, reason="torch fuses the multiplication and the addition, which saves one rounding"
)
TAIL = Tolerance(
    ulp=1, absolute=0.01, reason="torch rounds the product to bf16 in the scalar loop at the end of a vector loop"
)
LIKE = (F32, BF16, F16, F64, I64, BOOL)


POLYNOMIALS = ("exp", "expm1", "log", "log1p", "tanh", "sigmoid", "erf", "erfc", "asin", "acos", "atan", "asinh", "acosh",
               "atanh", "exp2", "log2", "log10")  # fmt: skip


def _unary() -> list[Case]:
    cases: list[Case] = []
    for name in POLYNOMIALS:
        cases += grid(f"aten::{name}", LIKE, SHAPES, tolerance=POLYNOMIAL)
    for name in ("sin", "cos", "tan"):
        cases += grid(f"aten::{name}", LIKE, SHAPES, tolerance=NEAR_ZERO)
    for name in ("sinh", "cosh"):
        cases += grid(f"aten::{name}", LIKE, SHAPES, tolerance=XLA_HYPERBOLIC)
    cases += grid("aten::sqrt", LIKE, SHAPES, tolerance=SQRT)
    cases += grid("aten::reciprocal", LIKE, SHAPES)
    cases += grid("aten::rsqrt", LIKE, SHAPES, tolerance=SEVERAL_STEPS)
    for name in ("lgamma", "digamma"):
        cases += grid(f"aten::{name}", (F32, BF16, F16), SHAPES, data={"low": 0.1, "high": 6.0}, tolerance=XLA_GAMMA)
    cases += grid("aten::sinc", LIKE, SHAPES, tolerance=SINC)
    cases += grid("aten::conj_physical", (F32, I64), SHAPES)
    cases += grid("aten::erfinv", (F32, BF16), SHAPES, data={"low": -0.99, "high": 0.99}, tolerance=NEAR_ZERO)
    for name in ("floor", "ceil", "round", "trunc"):
        cases += grid(f"aten::{name}", (*FLOATS, I64, U8), SHAPES, data={"scale": 3.0})
    cases += grid("aten::frac", FLOATS, SHAPES, data={"low": -5.0, "high": 5.0})
    cases += grid("aten::abs", (*FLOATS, *INTEGERS), SHAPES)
    cases += grid("aten::neg", (*FLOATS, *INTEGERS), SHAPES)
    cases += grid("aten::sign", ALL_DTYPES, SHAPES)
    cases += grid("aten::sgn", ALL_DTYPES, SHAPES)
    cases += grid("aten::positive", (F32, I64), SHAPES)
    for name in ("detach", "alias", "lift", "lift_fresh", "lift_fresh_copy", "detach_copy", "alias_copy", "real"):
        cases += grid(f"aten::{name}", (F32,), ((3, 5),))
    cases += grid("aten::bitwise_not", (*INTEGERS, BOOL), SHAPES)
    for name in ("logical_not", "isnan", "isfinite", "isinf", "isposinf", "isneginf", "signbit"):
        cases += grid(f"aten::{name}", ALL_DTYPES, SHAPES)
    for arguments in ((None, None, None), (1.5, 2.0, -3.0)):
        cases += grid("aten::nan_to_num", (*FLOATS, I64), SHAPES, *arguments)
    for decimals in (2, -1, 0):
        cases += grid("aten::round.decimals", (F32, BF16), SHAPES, decimals=decimals, data={"scale": 20.0},
                      tolerance=Tolerance(ulp=1, reason="torch multiplies by the inverse scale"))  # fmt: skip
    cases += grid("aten::logit", (F32, BF16), SHAPES, None, data={"low": 0.01, "high": 0.99}, tolerance=NEAR_ZERO)
    cases += grid("aten::logit", (F32,), SHAPES, 0.1, data={"low": -1.0, "high": 2.0}, tolerance=NEAR_ZERO)
    return cases


BROADCASTS = (((3, 5), (5,)), ((3, 1), (1, 5)), ((), (4,)), ((2, 3), ()), ((0, 3), (1, 3)), ((2, 3, 4), (2, 3, 4)))


def _binary() -> list[Case]:
    cases: list[Case] = []
    for name in ("add", "sub"):
        kinds = LIKE if name == "add" else LIKE[:-1]
        cases += grid(f"aten::{name}.Tensor", (*kinds, I32, U8), BROADCASTS)
        cases += grid(f"aten::{name}.Tensor", (F32,), BROADCASTS, alpha=0.37, tolerance=FMA)
        cases += grid(
            f"aten::{name}.Tensor",
            (BF16,),
            BROADCASTS,
            alpha=0.37,
            data={"scale": 1.0, "special": False},
            tolerance=TAIL,
        )
        cases += grid(f"aten::{name}.Tensor", (I64,), BROADCASTS, alpha=3)
        cases += grid(f"aten::{name}.Scalar", (F32, BF16, F16), SHAPES, 2.7)
        cases += grid(f"aten::{name}.Scalar", (F64,), SHAPES, 2.75)
        cases += grid(f"aten::{name}.Scalar", (F32, I64, I32), SHAPES, 3, 2)
    cases += grid("aten::rsub.Tensor", (F32, I64), BROADCASTS, alpha=2)
    cases += grid("aten::rsub.Scalar", (F32, BF16, I64), SHAPES, 3)
    cases += grid("aten::mul.Tensor", (*LIKE, I32, U8), BROADCASTS)
    cases += grid("aten::mul.Scalar", (F32, BF16, F16, F64, I64), SHAPES, 3)
    cases += grid("aten::mul.Scalar", (F32, BF16, I64), SHAPES, 0.1)
    cases += grid("aten::div.Tensor", LIKE, BROADCASTS)
    cases += grid("aten::div.Scalar", (F32, BF16, F16, I64), SHAPES, 3.7, tolerance=XLA_RECIPROCAL)
    # Mixed dtypes, and numbers in place of the second tensor.
    for a, b in ((F32, BF16), (BF16, F16), (I64, F32), (I32, I64), (BOOL, I64), (U8, torch.int8), (F64, F32)):
        for shapes in (((3, 5), (3, 5)), ((3, 5), ()), ((), (3, 5))):
            cases.append(Case("aten::mul.Tensor", (Tensor(a, shapes[0]), Tensor(b, shapes[1]))))
    for dtype in (F32, BF16, F16, F64, I64, I32, U8, BOOL):
        for number in (2.5, 3, True):
            cases.append(Case("aten::add.Tensor", (Tensor(dtype, (3, 5)), Number(number))))
            cases.append(Case("aten::mul.Tensor", (Tensor(dtype, (3, 5)), Number(number))))
    for mode in ("floor", "trunc", None):
        cases += grid("aten::div.Tensor_mode", (F32, F64, BF16), BROADCASTS, rounding_mode=mode)
        cases += grid("aten::div.Scalar_mode", (F32, BF16), SHAPES, 0.7, rounding_mode=mode, tolerance=XLA_RECIPROCAL)
        for dtype in INTEGERS:
            pair = (Tensor(dtype, (40,)), Tensor(dtype, (40,), low=1, high=5))
            cases.append(Case("aten::div.Tensor_mode", pair, {"rounding_mode": mode}))
    for name in ("remainder", "fmod"):
        cases += grid(f"aten::{name}.Tensor", (F32, F64, BF16), BROADCASTS)
        cases += grid(f"aten::{name}.Scalar", (F32, I64, BF16), SHAPES, -3)
        for dtype in INTEGERS:
            cases.append(Case(f"aten::{name}.Tensor", (Tensor(dtype, (40,)), Tensor(dtype, (40,), low=1, high=5))))
    cases.append(Case("aten::remainder.Scalar_Tensor", (7.5, Tensor(F32, (9,), low=-3.0, high=3.0))))
    cases += grid("aten::floor_divide", (F32,), BROADCASTS)
    cases += grid("aten::floor_divide.Scalar", (F32, I64), SHAPES, 3)
    for dtype in (F32, BF16, F16):
        cases.append(Case("aten::pow.Tensor_Tensor", (Tensor(dtype, (4, 9), low=0.1, high=3.0), Tensor(dtype, (9,))),
                          tolerance=SEVERAL_STEPS))  # fmt: skip
    cases.append(Case("aten::pow.Tensor_Tensor", (Tensor(I64, (4, 9)), Tensor(I64, (9,), low=0, high=5))))
    cases.append(Case("aten::pow.Tensor_Tensor", (Tensor(F32, (11,), special=True), Tensor(F32, (11,), values=(2.0, -1.0, 3.0, 0.5,
                 -2.0, 0.0, float("nan"), 1.0, 2.0, 2.0, 0.5))), tolerance=SEVERAL_STEPS))  # fmt: skip
    for base in (2.0, 0.5, 10000):
        cases += grid("aten::pow.Scalar", (), (), tolerance=SEVERAL_STEPS)
        cases.append(Case("aten::pow.Scalar", (base, Tensor(F32, (3, 5))), tolerance=SEVERAL_STEPS))
    for exponent in (0, 1, 2, 3, 0.5, -0.5, -1, -2, 4, 1.5, 2.0):
        cases += grid("aten::pow.Tensor_Scalar", (F32, BF16, F16), SHAPES, exponent, tolerance=SEVERAL_STEPS)
        if exponent == int(exponent) >= 0:
            cases += grid("aten::pow.Tensor_Scalar", (I64, U8), SHAPES, exponent)
    cases += grid("aten::atan2", (F32, BF16), BROADCASTS, tolerance=POLYNOMIAL)
    for name in ("maximum", "minimum"):
        cases += grid(f"aten::{name}", ALL_DTYPES, BROADCASTS)
    for name in ("fmax", "fmin"):
        cases += grid(f"aten::{name}", (F32, BF16, I64), BROADCASTS)
    for name in ("and", "or", "xor"):
        cases += grid(f"aten::bitwise_{name}.Tensor", (*INTEGERS, BOOL), BROADCASTS)
        cases += grid(f"aten::bitwise_{name}.Scalar", (I64, I32), SHAPES, 6)
        cases += grid(f"aten::logical_{name}", ALL_DTYPES, BROADCASTS)
    for name in ("left", "right"):
        for dtype in INTEGERS:
            shift = Tensor(dtype, (40,), low=0, high=70 if dtype is I64 else 10)
            cases.append(Case(f"aten::bitwise_{name}_shift.Tensor", (Tensor(dtype, (40,)), shift)))
        cases += grid(f"aten::bitwise_{name}_shift.Tensor_Scalar", (I64, U8), SHAPES, 2)
    for name in ("lshift", "rshift"):
        cases.append(Case(f"aten::__{name}__.Tensor", (Tensor(I64, (9,)), Tensor(I64, (9,), low=0, high=9))))
        cases += grid(f"aten::__{name}__.Scalar", (I32,), SHAPES, 1)
    cases += grid("aten::copysign.Tensor", FLOATS, BROADCASTS)
    cases += grid("aten::copysign.Scalar", (F32, BF16), SHAPES, -1.0)
    cases += grid("aten::xlogy.Tensor", (F32, BF16), BROADCASTS, tolerance=POLYNOMIAL)
    cases += grid("aten::xlogy.Scalar_Other", (F32,), SHAPES, 2.5, tolerance=POLYNOMIAL)
    cases.append(Case("aten::xlogy.Scalar_Self", (2.5, Tensor(F32, (3, 5), special=True)), tolerance=POLYNOMIAL))
    cases += grid("aten::logaddexp", (F32, BF16), BROADCASTS, tolerance=NEAR_ZERO)
    cases += grid("aten::logaddexp2", (F32, BF16), BROADCASTS, tolerance=NEAR_ZERO)
    cases += grid("aten::hypot", (F32, BF16), BROADCASTS, tolerance=SEVERAL_STEPS)
    cases += grid("aten::heaviside", (F32, BF16), BROADCASTS)
    return cases


CASES = [*_unary(), *_binary()]
