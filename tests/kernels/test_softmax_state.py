"""Online softmax states: parts merge to the whole, in any order, the empty part without a trace."""

# ruff: noqa: E741, N803 - m, l and u are the letters of the papers, and constants of a kernel are parameters

from __future__ import annotations

from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from hypothesis import given, settings
from hypothesis import strategies as st

from diag.kernels.softmax_state import SoftmaxState, merge_states, weighted_mean

COLUMNS = 4

scores = st.lists(st.one_of(st.floats(-300, 300), st.just(-torch.inf)), max_size=6)
parts = st.tuples(scores, scores, scores)


@triton.jit  # type: ignore[untyped-decorator]
def merge_kernel(m: Any, l: Any, u: Any, mean: Any, ROWS: tl.constexpr, COLUMNS: tl.constexpr) -> None:
    """States 1 and 2 lie behind each other; the merged one replaces the first."""
    rows = tl.arange(0, ROWS)
    cells = rows[:, None] * COLUMNS + tl.arange(0, COLUMNS)
    m_0, l_0, u_0 = merge_states(
        tl.load(m + rows), tl.load(l + rows), tl.load(u + cells),
        tl.load(m + ROWS + rows), tl.load(l + ROWS + rows), tl.load(u + ROWS * COLUMNS + cells),
    )  # fmt: skip
    tl.store(m + rows, m_0)
    tl.store(l + rows, l_0)
    tl.store(u + cells, u_0)
    tl.store(mean + cells, weighted_mean(l_0, u_0))


def states(*parts: list[float], seed: int = 3) -> list[SoftmaxState]:
    """One row of scores each, in FP64, with values of their own."""
    generator = torch.Generator().manual_seed(seed)
    drawn = [(part, torch.randn(len(part), COLUMNS, generator=generator, dtype=torch.float64)) for part in parts]
    return [SoftmaxState.of(torch.tensor([part], dtype=torch.float64), values) for part, values in drawn]


def assert_same(one: SoftmaxState, other: SoftmaxState) -> None:
    for name in ("m", "l", "u", "mean", "log_sum_exp"):
        torch.testing.assert_close(getattr(one, name), getattr(other, name), rtol=1e-12, atol=1e-12, msg=name)


@given(parts)
def test_merging_is_commutative_and_associative(drawn: tuple[list[float], ...]) -> None:
    a, b, c = states(*drawn)
    assert_same(a.merge(b), b.merge(a))
    assert_same(a.merge(b).merge(c), a.merge(b.merge(c)))


@given(scores, scores)
def test_the_parts_of_a_row_merge_to_the_whole(first: list[float], second: list[float]) -> None:
    values = torch.randn(len(first + second), COLUMNS, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    row = torch.tensor([first + second], dtype=torch.float64)
    cut = len(first)
    merged = SoftmaxState.of(row[:, :cut], values[:cut]).merge(SoftmaxState.of(row[:, cut:], values[cut:]))
    assert_same(merged, SoftmaxState.of(row, values))


@given(scores)
def test_the_empty_state_merges_as_nothing(drawn: list[float]) -> None:
    state, empty = states(drawn, [])
    assert_same(state.merge(empty), state)
    assert_same(empty.merge(state), state)


def test_a_state_says_softmax() -> None:
    row = torch.tensor([[0.5, -1.0, 3.0]], dtype=torch.float64)
    values = torch.eye(3, dtype=torch.float64)
    state = SoftmaxState.of(row, values)
    natural = row * torch.log(torch.tensor(2.0, dtype=torch.float64))
    torch.testing.assert_close(state.mean, natural.softmax(dim=1))
    torch.testing.assert_close(state.log_sum_exp, natural.logsumexp(dim=1))


def test_without_the_rescale_of_u_the_merge_would_be_wrong() -> None:
    a, b = states([0.0], [10.0])
    assert not torch.allclose(a.u + b.u, a.merge(b).u)


def kernel_merge(a: SoftmaxState, b: SoftmaxState, device: str) -> tuple[SoftmaxState, Any]:
    m, l, u = (torch.stack([getattr(a, name), getattr(b, name)]).float().to(device) for name in "mlu")
    mean = torch.empty_like(u[0])
    merge_kernel[(1,)](m, l, u, mean, ROWS=m.shape[1], COLUMNS=COLUMNS)
    return SoftmaxState(m[0].cpu().double(), l[0].cpu().double(), u[0].cpu().double()), mean.cpu().double()


@settings(deadline=None, max_examples=25)
@given(scores, scores)
def test_the_kernel_merges_as_pytorch_does(first: list[float], second: list[float]) -> None:
    a, b = states(first, second)
    wanted = a.merge(b)
    got, mean = kernel_merge(a, b, "cuda" if torch.cuda.is_available() else "cpu")
    for name in "mlu":
        # 2^x of a difference of up to 600 in FP32: relative errors of 600 roundoffs
        torch.testing.assert_close(getattr(got, name), getattr(wanted, name), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(mean, wanted.mean, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("special", [torch.nan, torch.inf])
def test_what_is_not_finite_is_not_lost(special: float, device: str) -> None:
    a, b = states([0.0, special], [1.0])
    for state in (a.merge(b), b.merge(a)):
        assert state.l.isnan().all()
    got, mean = kernel_merge(a, b, device)
    assert got.l.isnan().all()
    assert mean.isnan().all()
