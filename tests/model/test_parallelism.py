"""Placement of groups, and what each way of spreading a model makes ranks send."""

from __future__ import annotations

import pytest

from diag.model.collective import Primitive, Signature
from diag.model.context_parallel import ring_step, tokens_to_hide
from diag.model.experts import capacity, load
from diag.model.parallelism import Step, Transformer, ZeroStage, signatures
from diag.model.pipeline import bubble_share, micro_batches_for
from diag.model.placement import Layout, Placement, network_bytes, placements, step_ns

MODEL = Transformer(hidden=8192, layers=80, sequence=4096, params=70e9)


def total(found: tuple[Signature, ...], group: str) -> float:
    return sum(each.step_volume_bytes for each in found if each.group == group)


def of(layout: Layout, domain: int, axis: str) -> Placement:
    (found,) = (each for each in placements(layout, domain) if each.axis == axis)
    return found


@pytest.mark.parametrize(
    ("layout", "domain", "axis", "expected"),
    [
        (Layout(tp=8, dp=16, pp=4), 8, "tp", (1, 8)),
        (Layout(tp=8, dp=16, pp=4), 8, "dp", (16, 1)),
        (Layout(tp=8, dp=16, pp=4), 8, "pp", (4, 1)),
        (Layout(tp=8, dp=16, pp=4), 72, "dp", (3, 2)),  # ranks 128, 136, …: 2 of them in domain 1, 9 in 2, 5 in 3
        (Layout(tp=2, dp=8), 8, "dp", (2, 4)),
        (Layout(tp=2, cp=2, dp=4), 8, "cp", (1, 2)),
        (Layout(tp=2, cp=2, dp=4), 8, "dp", (2, 4)),  # gradients are summed over cp x dp
        (Layout(tp=2, dp=8, ep=4), 8, "ep", (1, 4)),
        (Layout(tp=3, dp=2), 4, "tp", (2, 1)),  # ranks 3, 4, 5 lie across
    ],
)
def test_where_groups_lie(layout: Layout, domain: int, axis: str, expected: tuple[int, int]) -> None:
    found = of(layout, domain, axis)
    assert (found.n_domains, found.domain_ranks) == expected


def test_every_rank_is_in_one_group_of_each_axis() -> None:
    """The groups that strides say, against coordinates counted out."""
    layout = Layout(tp=2, cp=3, dp=4, pp=2)
    ranks = [(pp, dp, cp, tp) for pp in range(2) for dp in range(4) for cp in range(3) for tp in range(2)]
    for axis, at in (("tp", 3), ("cp", 2), ("pp", 0)):
        group = [rank for rank, where in enumerate(ranks) if all(where[i] == 0 for i in range(4) if i != at)]
        assert group == [i * layout.stride(axis) for i in range(layout.size(axis))]  # type: ignore[arg-type]
    together = [rank for rank, (pp, _, _, tp) in enumerate(ranks) if pp == tp == 0]
    assert together == [i * layout.stride("dp") for i in range(layout.size("dp"))]


def test_experts_must_fit_into_data_and_context() -> None:
    assert Layout(dp=8, ep=4).fault is None
    assert "does not divide" in str(Layout(dp=6, ep=4).fault)
    assert Layout(dp=1 << 21).fault is not None
    assert Layout(tp=0).fault is not None


def test_sequence_parallel_moves_what_tensor_parallel_does() -> None:
    plain = signatures(MODEL, Layout(tp=8), Step(micro_batches=4))
    scattered = signatures(MODEL, Layout(tp=8), Step(micro_batches=4, is_sequence_parallel=True))
    assert total(scattered, "tp") == pytest.approx(total(plain, "tp"))
    assert {each.primitive for each in plain} == {Primitive.ALL_REDUCE}
    assert {each.primitive for each in scattered} == {Primitive.ALL_GATHER, Primitive.REDUCE_SCATTER}
    assert all(each.is_critical for each in (*plain, *scattered)), "nothing to do meanwhile"


def test_a_layer_sums_activations_four_times() -> None:
    found = signatures(MODEL, Layout(tp=8), Step())
    assert sum(each.calls for each in found) == 4 * 80
    assert {each.size_bytes for each in found} == {4096 * 8192 * 2}
    assert all(each.is_critical for each in found)


@pytest.mark.parametrize(("zero", "factor"), [(0, 2), (1, 2), (2, 2), (3, 3)])
def test_zero_sends_as_much_as_ddp_up_to_stage_three(zero: ZeroStage, factor: int) -> None:
    """2Ψ(N - 1)/N, and 3Ψ(N - 1)/N with one micro-batch (Rajbhandari et al. 2020, section 7)."""
    found = signatures(MODEL, Layout(dp=16), Step(zero=zero))
    assert total(found, "dp") == pytest.approx(factor * 15 / 16 * 70e9 * 2)


def test_of_the_gradients_only_the_last_bucket_has_nothing_beside_it() -> None:
    found = signatures(MODEL, Layout(dp=16), Step())
    critical = [each for each in found if each.is_critical]
    assert [each.calls for each in critical] == [1]
    assert sum(each.calls * each.size_bytes for each in found) == pytest.approx(140e9)
    assert max(each.size_bytes for each in found) <= 25 << 20


def test_fsdp_gathers_again_for_every_micro_batch() -> None:
    once, often = (signatures(MODEL, Layout(dp=16), Step(n, zero=3)) for n in (1, 4))
    assert total(often, "dp") == pytest.approx(4 * total(once, "dp"))


def test_a_stage_has_its_part_of_the_layers_and_parameters() -> None:
    whole = signatures(MODEL, Layout(tp=8, dp=2), Step(8))
    part = signatures(MODEL, Layout(tp=8, dp=2, pp=4), Step(8))
    for group in ("tp", "dp"):
        assert total(part, group) == pytest.approx(total(whole, group) / 4)
    assert total(part, "pp") == 2 * 8 * 4096 * 8192 * 2


def test_context_parallel_sends_keys_and_values_once_around() -> None:
    found = signatures(MODEL, Layout(cp=4), Step())
    forward = next(each for each in found if each.name.endswith("forward"))
    assert forward.step_volume_bytes == 3 * 80 * 2 * (4096 / 4) * 8192 * 2
    assert total(found, "cp") == 3 * forward.step_volume_bytes


def test_experts_dispatch_and_combine_in_both_directions() -> None:
    moe = Transformer(hidden=4096, layers=32, sequence=4096, params=1e9, moe_layers=32, top_k=2)
    found = signatures(moe, Layout(dp=8, ep=8), Step())
    assert total(found, "ep") == pytest.approx(4 * 32 * 7 / 8 * 4096 * 4096 * 2 * 2)


def test_groups_of_one_say_nothing() -> None:
    assert signatures(MODEL, Layout(), Step()) == ()


def test_over_the_network_each_byte_goes_once_per_domain() -> None:
    gradients = Signature("g", "dp", 16, Primitive.ALL_REDUCE, "gradients", 16e9, 1, False, "")
    placement = of(Layout(dp=16), 8, "dp")
    assert network_bytes(gradients, placement) == 2 * 1 / 2 * 16e9 / 8
    assert network_bytes(gradients, of(Layout(dp=16), 16, "dp")) == 0
    inside_ns, across_ns = 2 * 7 / 8 * 16e9 / 400, 2e9 / 50
    assert step_ns(gradients, placement, 400e9, 50e9) == pytest.approx(inside_ns + across_ns)


# ---- bubbles, experts, rings ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("p", "m"), [(1, 4), (2, 2), (4, 8), (8, 3)])
def test_the_bubble_is_what_a_schedule_leaves_idle(p: int, m: int) -> None:
    """Micro-batch j is on stage i in slot i + j: of p·(m + p - 1) places p·m are taken."""
    taken = {(i, i + j) for i in range(p) for j in range(m)}
    slots = 1 + max(slot for _, slot in taken)
    assert bubble_share(p, m) == pytest.approx(1 - len(taken) / (p * slots))


@pytest.mark.parametrize(("p", "m", "v"), [(2, 4, 2), (4, 8, 3), (4, 12, 2), (3, 3, 5)])
def test_the_bubble_with_chunks_is_what_the_interleaved_order_leaves_idle(p: int, m: int, v: int) -> None:
    """Stages go in turns of p micro-batches through their chunks (Narayanan et al. 2021), carried out slot by slot."""
    order = [(turn + j, chunk) for turn in range(0, m, p) for chunk in range(v) for j in range(p)]
    ends: dict[tuple[int, int, int], int] = {}  # stage, micro-batch, chunk
    free = [0] * p
    for batch, chunk in order:
        for stage in range(p):
            before = (stage - 1, batch, chunk) if stage else (p - 1, batch, chunk - 1)
            free[stage] = ends[stage, batch, chunk] = 1 + max(free[stage], ends.get(before, 0))
    assert bubble_share(p, m, v) == pytest.approx(1 - p * m * v / (p * max(free)))


@pytest.mark.parametrize("share", [0.05, 0.2, 0.37])
def test_the_fewest_micro_batches_are_enough_and_no_fewer(share: float) -> None:
    m = micro_batches_for(8, share)
    assert bubble_share(8, m) <= share + 1e-12 < bubble_share(8, m - 1)


@pytest.mark.parametrize("share", [0.05, 0.2, 0.37])
def test_with_chunks_they_are_a_multiple_of_the_stages(share: float) -> None:
    m = micro_batches_for(8, share, chunks=2)
    assert m % 8 == 0
    assert bubble_share(8, m, 2) <= share + 1e-12 < bubble_share(8, m - 8, 2)


def test_tokens_over_the_capacity_are_dropped() -> None:
    assert capacity(100, 10, factor=1.1) == 11  # and not 12 for the rounding of 1.1
    found = load([20, 5, 0], capacity(25, 3, factor=1.0))
    assert (found.assigned, found.dropped, found.padded) == (25, 11, 4 + 9)
    assert found.dropped_share == 11 / 25
    assert load([0, 0], 4).dropped_share == 0


def test_a_ring_is_hidden_from_the_block_on_where_both_take_equally_long() -> None:
    tokens = tokens_to_hide(50e9, 400e12, 2)
    for factor, is_hidden in ((1.01, True), (0.99, False)):
        one = ring_step(8, round(tokens * 8 * factor), 8192, 2)
        assert (one.flops / 400e12 >= one.moved_bytes / 50e9) is is_hidden
