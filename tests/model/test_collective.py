"""What collectives move: against what ranks send when the algorithm is carried out on data."""

from __future__ import annotations

import numpy as np
import pytest

from diag.model.collective import (
    Primitive,
    Signature,
    algorithm_bytes_per_s,
    bus_bytes_per_s,
    bus_factor,
    latency_bound_below_bytes,
    time_ns,
    volume_bytes,
)

RANKS = (2, 3, 4, 7, 8, 16)


def ring_reduce_scatter(buffers: list[np.ndarray]) -> tuple[list[np.ndarray], int]:
    """Each rank's part of the sum, and the bytes that rank 0 sent. `buffers` is left as it was."""
    n = len(buffers)
    parts = [list(np.array_split(buffer.copy(), n)) for buffer in buffers]
    sent = 0
    for step in range(n - 1):
        messages = [parts[rank][(rank - step - 1) % n].copy() for rank in range(n)]
        sent += messages[0].nbytes
        for rank in range(n):
            parts[(rank + 1) % n][(rank - step - 1) % n] += messages[rank]
    return [parts[rank][rank] for rank in range(n)], sent


def ring_all_gather(parts: list[np.ndarray]) -> tuple[list[np.ndarray], int]:
    n = len(parts)
    known = [{rank: parts[rank]} for rank in range(n)]
    sent = 0
    for step in range(n - 1):
        messages = [((rank - step) % n, known[rank][(rank - step) % n]) for rank in range(n)]
        sent += messages[0][1].nbytes
        for rank, (index, part) in enumerate(messages):
            known[(rank + 1) % n][index] = part
    return [np.concatenate([each[index] for index in range(n)]) for each in known], sent


@pytest.mark.parametrize("n", RANKS)
def test_an_all_reduce_is_a_reduce_scatter_and_an_all_gather(n: int) -> None:
    rng = np.random.default_rng(n)
    buffers = [rng.integers(-100, 100, 5 * n).astype(np.int64) for _ in range(n)]
    parts, scattered = ring_reduce_scatter(buffers)
    results, gathered = ring_all_gather(parts)

    for result in results:
        np.testing.assert_array_equal(result, np.sum(buffers, axis=0))
    size_bytes = buffers[0].nbytes
    assert scattered == pytest.approx(volume_bytes(Primitive.REDUCE_SCATTER, size_bytes, n))
    assert gathered == pytest.approx(volume_bytes(Primitive.ALL_GATHER, size_bytes, n))
    assert scattered + gathered == pytest.approx(volume_bytes(Primitive.ALL_REDUCE, size_bytes, n))


@pytest.mark.parametrize("n", RANKS)
def test_in_an_all_to_all_a_rank_keeps_its_own_part(n: int) -> None:
    parts = np.array_split(np.arange(6 * n), n)
    sent = sum(part.nbytes for rank, part in enumerate(parts) if rank != 0)
    assert sent == pytest.approx(volume_bytes(Primitive.ALL_TO_ALL, sum(part.nbytes for part in parts), n))


@pytest.mark.parametrize("primitive", list(Primitive))
def test_a_rank_alone_moves_nothing(primitive: Primitive) -> None:
    assert volume_bytes(primitive, 1e9, 1) == 0


def test_the_worked_example() -> None:
    assert volume_bytes(Primitive.ALL_REDUCE, 2e9, 8) == 3.5e9
    assert time_ns(Primitive.ALL_REDUCE, 2e9, 8, 350e9) == 10e6
    assert time_ns(Primitive.ALL_REDUCE, 2e9, 8, 40e9) == 87.5e6


@pytest.mark.parametrize("primitive", list(Primitive))
def test_time_and_bandwidth_are_each_others_inverse(primitive: Primitive) -> None:
    took = time_ns(primitive, 3e8, 12, 100e9)
    assert bus_bytes_per_s(primitive, 3e8, 12, took) == pytest.approx(100e9)
    ratio = bus_bytes_per_s(primitive, 3e8, 12, took) / algorithm_bytes_per_s(3e8, took)
    assert ratio == pytest.approx(bus_factor(primitive, 12))


def test_where_latency_is_half_of_the_time() -> None:
    size = latency_bound_below_bytes(Primitive.ALL_GATHER, 16, 90e9, 25_000)
    assert time_ns(Primitive.ALL_GATHER, size, 16, 90e9, 25_000) == pytest.approx(50_000)


def test_a_signature_adds_up_its_calls() -> None:
    one = Signature("row linear", "tp", 8, Primitive.ALL_REDUCE, "partial sums", 1e6, 48, True, "")
    assert one.call_volume_bytes == 1.75e6
    assert one.step_volume_bytes == 84e6
    assert one.step_ns(350e9, 10_000) == pytest.approx(48 * (10_000 + 5_000))
    alone = Signature("row linear", "tp", 1, Primitive.ALL_REDUCE, "partial sums", 1e6, 48, True, "")
    assert alone.step_ns(350e9, 10_000) == 0
