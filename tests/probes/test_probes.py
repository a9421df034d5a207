"""Every probe on a CPU: right results, the work that its code does, memory within what it says."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from diag.model.benchmark import Benchmark
from diag.probes import copy, decode_step, gemm, reduce, softmax, training_step, vector_add
from diag.probes.catalogue import PROBES
from diag.probes.probe import Probe
from diag.probes.tensors import n_sets
from tests.builders.benchmark import CPU, streaming
from tests.probes.conftest import CACHE_BYTES, tiny

COMPILED = "compiled"
"""Takes seconds to make, and has a test of its own."""


def every_variant() -> Iterator[tuple[str, str]]:
    for probe in PROBES.values():
        yield from ((probe.name, each.name) for each in probe.variants("cpu") if each.name != COMPILED)


@pytest.mark.parametrize(("name", "variant"), list(every_variant()))
def test_its_result_is_right_and_every_step_runs(name: str, variant: str) -> None:
    probe = PROBES[name]
    workload = probe.make(tiny(probe), variant)
    for step in workload.steps:
        step()
    if workload.check is None:
        assert name == "data_pipeline"
    else:
        checked = workload.check()
        assert checked.max_rel_error <= checked.tolerance
    workload.close()


@pytest.mark.parametrize("probe", list(PROBES.values()), ids=lambda probe: probe.name)
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_each_scale_has_the_same_sizes_and_needs_more_memory(probe: Probe, device: str) -> None:
    from diag.probes.probe import Setup

    shapes = probe.shapes[device]  # type: ignore[index]
    assert len({tuple(shape) for shape in shapes.values()}) == 1
    setups = [Setup("cpu", "fp32", shapes[scale], CACHE_BYTES) for scale in ("tiny", "small", "full")]
    needs = [probe.needs_bytes(setup) for setup in setups]
    assert 0 < needs[0] < needs[1] < needs[2]


def test_a_wrong_result_is_found() -> None:
    import torch

    from diag.probes.tensors import checked

    setup = tiny(vector_add.PROBE)
    right = torch.ones(8)
    assert checked(setup, right, right.double(), 1).max_rel_error == 0
    wrong = right.clone()
    wrong[3] = float("nan")
    found = checked(setup, wrong, right.double(), 1)
    assert found.max_rel_error > found.tolerance
    kept = streaming(0.9, max_abs_error=found.max_abs_error, max_rel_error=found.max_rel_error)
    assert Benchmark(CPU, measurements=[kept]).is_possible  # else a report would refuse the file that holds the fault


def test_counts_are_those_of_the_definition() -> None:
    assert vector_add.count(tiny(vector_add.PROBE, n=10)).n_bytes == 120
    assert reduce.count(tiny(reduce.PROBE, n=10)).flops == 9
    assert gemm.count(tiny(gemm.PROBE, M=2, N=3, K=4)).flops == 2 * 2 * 3 * 4
    assert gemm.count(tiny(gemm.PROBE, M=2, N=3, K=4)).n_bytes == 4 * (8 + 12 + 6)
    assert softmax.count(tiny(softmax.PROBE, rows=2, columns=8)).intensity == 5 / 8
    assert copy.count(tiny(copy.PROBE, n=10), "dram").n_bytes == 80
    assert copy.count(tiny(copy.PROBE, n=10), "host_to_device").n_bytes == 40


def test_the_decoder_reads_the_weights_that_the_count_says() -> None:
    from diag.probes.decoder import Decoder

    setup = tiny(decode_step.PROBE)
    model = Decoder(decode_step.sizes_of(setup), setup["batch"], setup["context"])
    every = sum(each.numel() for each in model.parameters())
    assert decode_step.weights(setup) == every - model.embedding.weight.numel()


def test_the_work_of_training_is_what_pytorch_counts() -> None:
    from torch.utils.flop_counter import FlopCounterMode

    setup = tiny(training_step.PROBE)
    workload = training_step.make(setup, "eager")
    with FlopCounterMode(display=False) as counter:
        workload.steps[0]()
    assert workload.count is not None
    assert counter.get_total_flops() == workload.count.flops


def test_the_decoder_puts_a_token_where_its_position_says() -> None:
    """Against complex rotation, of pairs (i, i + head / 2), and the cache written at the last place."""
    import torch

    from diag.probes.decoder import THETA, Attention, Sizes

    sizes = Sizes(layers=1, width=16, heads=4, kv_heads=1, inner=32, vocabulary=8)
    attention = Attention(sizes, batch=1, context=5)
    x = torch.randn(1, 4, 4)
    angles = 5 * THETA ** (-torch.arange(0, 4, 2) / 4)
    turned = torch.complex(x[..., :2], x[..., 2:]) * torch.polar(torch.ones(2), angles)
    torch.testing.assert_close(attention._rotated(x), torch.cat((turned.real, turned.imag), -1))
    before = attention.keys.clone()
    with torch.no_grad():
        attention(torch.randn(1, 16))
    changed = (attention.keys != before).flatten(0, 1).flatten(1).any(0).nonzero()
    assert changed.min() >= 5 * sizes.head


def test_new_results_do_not_take_the_memory_of_the_last() -> None:
    import torch

    from diag.probes.tensors import rotated

    places: list[int] = []

    def step(x: torch.Tensor) -> torch.Tensor:
        result = x + 1
        places.append(result.data_ptr())
        return result

    steps = rotated(tiny(vector_add.PROBE), [torch.ones(1 << 16)], step)
    for each in steps:
        each()
    assert len(set(places)) >= len(steps) - 1


def test_sets_of_buffers_are_past_the_cache() -> None:
    setup = tiny(vector_add.PROBE)
    set_bytes = vector_add.count(setup).n_bytes
    assert n_sets(setup, set_bytes) * set_bytes >= 4 * CACHE_BYTES
    assert n_sets(setup, 1 << 40) == 2
    assert len(vector_add.make(setup, "out").steps) == n_sets(setup, set_bytes)
