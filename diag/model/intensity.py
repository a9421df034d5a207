"""Work and traffic of textbook kernels in closed form: what a measured point is held against.

The bytes are the least that must move: each input read once, each output written once.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Amount:
    """What one run of a kernel does."""

    flops: float
    n_bytes: float

    @property
    def flops_per_byte(self) -> float:
        return self.flops / self.n_bytes

    def flops_per_s(self, duration_ns: float) -> float:
        return self.flops / duration_ns * 1e9

    def bytes_per_s(self, duration_ns: float) -> float:
        return self.n_bytes / duration_ns * 1e9


def vector_add(elements: int, element_bytes: int = 4) -> Amount:
    """c = a + b: one addition, two reads and a write per element. Williams, Waterman, Patterson 2009.

    >>> vector_add(2**28).flops_per_byte == 1 / 12
    True
    """
    return Amount(elements, 3 * elements * element_bytes)


def gemm(m: int, n: int, k: int, element_bytes: int = 4) -> Amount:
    """C[m, n] = A[m, k] B[k, n]: k multiply-adds per element of C. NVIDIA, Matrix Multiplication Background.

    >>> gemm(4096, 4096, 4096).flops
    137438953472
    """
    return Amount(2 * m * n * k, element_bytes * (m * k + k * n + m * n))
