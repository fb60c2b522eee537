"""Philox4x32-10 in NumPy: the reference of the random operators' bits, written from the algorithm's definition."""

from __future__ import annotations

import numpy as np

SEED, OFFSET = 0x1234_5678_9ABC_DEF, 1000  # of every random conformance case; any numbers do

_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_LOW = np.uint64(0xFFFFFFFF)


def words(count: int, seed: int = SEED, offset: int = OFFSET) -> np.ndarray:
    """uint64[count, 4]: the four 32-bit words of each counter offset + i."""
    counter = np.arange(count, dtype=np.uint64) + np.uint64(offset)
    c = [counter & _LOW, counter >> np.uint64(32), np.zeros_like(counter), np.zeros_like(counter)]
    key = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        first, second = c[0] * np.uint64(_MULTIPLIERS[0]), c[2] * np.uint64(_MULTIPLIERS[1])
        c = [
            (second >> np.uint64(32)) ^ c[1] ^ np.uint64(key[0]),
            second & _LOW,
            (first >> np.uint64(32)) ^ c[3] ^ np.uint64(key[1]),
            first & _LOW,
        ]
        key = [(k + w) & 0xFFFFFFFF for k, w in zip(key, _WEYL, strict=True)]
    return np.stack(c, axis=1)
