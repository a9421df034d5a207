"""The state of an online softmax, and how two of them become one.

Attention weights values v by the softmax of scores s. Over any set of scores, three numbers a row say all there is:

    m = max s        l = Σ 2^(s − m)        u = Σ 2^(s − m) v

The softmax-weighted mean is u / l, and m + log2 l is the logarithm of Σ 2^s. The states of two disjoint sets merge into
the state of their union: with m = max(m₁, m₂), every term of set i has to shrink by 2^(mᵢ − m), which can be taken out
of its sum:

    l = 2^(m₁ − m) l₁ + 2^(m₂ − m) l₂        u = 2^(m₁ − m) u₁ + 2^(m₂ − m) u₂

This is an identity, not an approximation: whichever way a row is cut, and in whichever order the parts merge, the same
sums come out, but for rounding. So a kernel may walk over a row tile by tile and never hold it (Milakov and Gimelshein
2018, arXiv:1805.02867), and several blocks may share a row. Forgetting to rescale u as well as l is the classic bug.

The empty set is (−inf, 0, 0) and merges as nothing: −inf − (−inf) is NaN, so a maximum of −inf is replaced by 0 before
it is subtracted. A NaN among the scores reaches l and u, even where the maximum drops it. Scores are in units of log 2,
s = q·k · scale · log2 e, as GPUs have an instruction for 2^x and none for e^x.
"""

# ruff: noqa: E741 - m, l and u are the letters of the papers

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl

LOG2_E: tl.constexpr = tl.constexpr(1.4426950408889634)
LN_2: tl.constexpr = tl.constexpr(0.6931471805599453)


@triton.jit
def finite_shift(m):
    """What to subtract from scores whose maximum is `m`: 0 where there are none yet."""
    return tl.where(m == -float("inf"), 0.0, m)


@triton.jit
def rescale(m_before, m_after):
    """By how much sums shrink when their maximum rises: a factor of 0 to 1."""
    return tl.exp2(m_before - finite_shift(m_after))


@triton.jit
def merge_states(m_1, l_1, u_1, m_2, l_2, u_2):
    """The state of two disjoint sets: m and l are [rows], u is [rows, columns]."""
    m = tl.maximum(m_1, m_2)
    shrink_1 = rescale(m_1, m)
    shrink_2 = rescale(m_2, m)
    return m, shrink_1 * l_1 + shrink_2 * l_2, shrink_1[:, None] * u_1 + shrink_2[:, None] * u_2


@triton.jit
def weighted_mean(l, u):
    """u / l, and 0 for rows of which nothing was visible. [rows], [rows, columns] → [rows, columns]."""
    return u / tl.where(l == 0.0, 1.0, l)[:, None]


@dataclass(frozen=True)
class SoftmaxState:
    """The same with PyTorch alone, to test against and to learn from. m and l are [rows], u is [rows, columns]."""

    m: Any
    l: Any
    u: Any

    @staticmethod
    def of(scores: Any, values: Any) -> SoftmaxState:
        """Of scores [rows, n] in units of log 2 and values [n, columns]; n may be 0."""
        lowest = scores.new_full((scores.shape[0], 1), -torch.inf)
        m = torch.cat([lowest, scores], dim=1).amax(dim=1)
        weights = torch.exp2(scores - _finite_shift(m)[:, None])
        return SoftmaxState(m, weights.sum(dim=1), weights @ values)

    def merge(self, other: SoftmaxState) -> SoftmaxState:
        m = torch.maximum(self.m, other.m)
        mine = torch.exp2(self.m - _finite_shift(m))
        its = torch.exp2(other.m - _finite_shift(m))
        return SoftmaxState(m, mine * self.l + its * other.l, mine[:, None] * self.u + its[:, None] * other.u)

    @property
    def mean(self) -> Any:
        """[rows, columns], 0 for rows of nothing."""
        return self.u / torch.where(self.l == 0.0, 1.0, self.l)[:, None]

    @property
    def log_sum_exp(self) -> Any:
        """Natural logarithm, [rows]; −inf for rows of nothing."""
        return (self.m + self.l.log2()) * LN_2.value


def _finite_shift(m: Any) -> Any:
    return torch.where(m == -torch.inf, 0.0, m)
