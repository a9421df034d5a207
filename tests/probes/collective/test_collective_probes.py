"""Every probe of several ranks, run once by four of them: right results, and calls as they are declared."""

from __future__ import annotations

import pytest

from diag.ingest.benchmark import load
from diag.model.benchmark import Benchmark
from diag.model.collective import Primitive, Signature
from diag.model.parallelism import Step, Transformer
from diag.model.parallelism import signatures as of_transformer
from diag.model.pipeline import bubble_share, sends_per_step
from diag.model.placement import Layout
from diag.probes.collective import data_parallel, launch, pipeline, sharded, two_phase
from diag.probes.collective.catalogue import ALL, PROBES
from diag.probes.collective.request import Request
from diag.probes.collective.sizes import Sizes

N_RANKS = 4


@pytest.fixture(scope="session")
def benchmark(tmp_path_factory: pytest.TempPathFactory) -> Benchmark:
    file = tmp_path_factory.mktemp("ranks") / "ranks.json"
    heard: list[str] = []
    assert launch.run(Request([ALL], "tiny"), N_RANKS, "cpu", file, heard.append) == []
    assert len(heard) == len(load(file).collectives) + len(load(file).measurements)
    return load(file)


def test_every_probe_and_variant_was_run(benchmark: Benchmark) -> None:
    ran = {(each.probe, each.variant) for each in benchmark.communications}
    assert ran == {(probe.name, each.name) for probe in PROBES.values() for each in probe.variants}
    sizes = [each.size_bytes for each in benchmark.collectives if each.op is Primitive.ALL_REDUCE]
    assert sizes == [1 << power for power in range(10, 21, 2)]


def test_every_collective_is_right_to_the_last_element(benchmark: Benchmark) -> None:
    assert {each.op for each in benchmark.collectives} == {Primitive(name) for name in PROBES if name in set(Primitive)}
    for each in benchmark.collectives:
        assert (each.n_wrong, each.n_ranks, each.n_hosts, each.backend) == (0, N_RANKS, 1, "gloo")
        assert 0 < each.p5_ns <= each.median_ns <= each.p95_ns
        assert each.repeats >= 5


def test_every_pattern_has_the_result_of_one_process(benchmark: Benchmark) -> None:
    for each in benchmark.measurements:
        assert each.max_rel_error is not None
        assert each.tolerance is not None
        assert each.max_rel_error <= each.tolerance < 1e-4


def test_what_is_counted_is_what_is_declared(benchmark: Benchmark) -> None:
    for each in benchmark.communications:
        assert each.n_ranks_otherwise == 0, each
        declared: dict[tuple[Primitive, float], float] = {}
        for one in each.signatures:
            declared[one.primitive, one.size_bytes] = declared.get((one.primitive, one.size_bytes), 0) + one.calls
        assert {(one.primitive, one.size_bytes): one.calls for one in each.counted} == declared


def test_gloo_is_said_to_do_an_all_reduce_where_it_has_no_reduce_scatter(benchmark: Benchmark) -> None:
    """True of PyTorch 2.6 to 2.13: if this fails, a newer one has it, and the documentation is to be changed."""
    emulated = {each.op for each in benchmark.collectives if "in the place of" in each.conditions}
    assert emulated == {Primitive.REDUCE_SCATTER}


@pytest.mark.parametrize(("variant", "n_micro"), [("one_batch", 1), ("micro_batches", 4)])
def test_the_bubble_is_that_of_the_formula(benchmark: Benchmark, variant: str, n_micro: int) -> None:
    """Sending and a busy machine make it larger; a stage that sleeps longer than it should fills a little of it."""
    (ran,) = [each for each in benchmark.measurements if (each.probe, each.variant) == ("pipeline", variant)]
    share = float(ran.conditions.partition("bubble ")[2].partition(" %")[0]) / 100
    expected = bubble_share(N_RANKS, n_micro)
    assert expected - 0.05 <= share <= expected + 0.2
    # A step is at least (m + p - 1) times the work on one micro-batch, forward and back.
    assert ran.p5_ns >= (n_micro + N_RANKS - 1) * 2 * 20e6 / n_micro


# ---- declared in closed form -----------------------------------------------------------------------------------------


def volume(signatures: list[Signature]) -> float:
    return sum(each.step_volume_bytes for each in signatures)


@pytest.mark.parametrize("n_ranks", [2, 3, 8, 512])
def test_two_halves_move_what_the_whole_does(n_ranks: int) -> None:
    assert volume(two_phase.signatures(1 << 20, n_ranks, "two_calls")) == volume(
        two_phase.signatures(1 << 20, n_ranks, "one_call")
    )


def test_sharding_moves_half_as_much_again_as_data_parallel() -> None:
    sizes = Sizes(layers=1000, width=64, batch=1)
    one = volume(data_parallel.signatures(sizes, 2, 8, "buckets"))
    assert volume(data_parallel.signatures(sizes, 2, 8, "after_backward")) == one
    assert volume(sharded.signatures(sizes, 8, "kept")) == one
    assert volume(sharded.signatures(sizes, 8, "gathered_twice")) == pytest.approx(1.5 * one, rel=1e-3)


def test_buckets_are_those_of_the_model_of_parallelism() -> None:
    sizes = Sizes(layers=8, width=64, batch=1)
    model = Transformer(hidden=64, layers=8, sequence=1, params=8 * 64**2, element_bytes=4)
    step = Step(bucket_bytes=2 * sizes.layer_bytes)
    expected = of_transformer(model, Layout(dp=4), step)
    found = data_parallel.signatures(sizes, 2, 4, "buckets")
    calls = [
        [(each.primitive, each.size_bytes, each.calls, each.is_critical) for each in of] for of in (found, expected)
    ]
    assert calls[0] == calls[1]


@pytest.mark.parametrize(("stages", "rank"), [(2, 0), (2, 1), (4, 1), (4, 2)])
def test_stages_send_what_the_model_of_pipelines_says(stages: int, rank: int) -> None:
    said = pipeline.signatures(rank, stages, 12, 4, 64)
    assert sum(each.calls for each in said) == sends_per_step(stages, 12)
    ends = [pipeline.signatures(each, stages, 12, 4, 64) for each in (0, stages - 1)]
    assert [[each.payload for each in of] for of in ends] == [["activations"], ["gradients of activations"]]
