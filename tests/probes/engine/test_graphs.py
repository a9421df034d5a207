"""Steps of decode through a bucket's tensors give what dense attention gives; on a GPU they are replays of graphs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
import torch

from diag.probes.engine.batch import Batch
from diag.probes.engine.config import EngineConfig
from diag.probes.engine.decoder import Decoder, feed_forward, project, rotation
from diag.probes.engine.graphs import DecodeGraphs
from diag.probes.engine.models import Model, random_model
from diag.probes.engine.plan import Chunk, Emission, StepPlan
from diag.probes.engine.runner import TorchRunner, default_attention
from diag.probes.engine.sequence import SamplingParams
from tests.probes.engine import dense

GPU = torch.cuda.is_available()
SHAPE = replace(dense.SHAPE, head_dim=16, n_layers=1, n_heads=2, n_kv_heads=1)  # Triton's interpreter takes its time
MODEL = random_model(SHAPE, seed=5, device="cuda" if GPU else "cpu")
CONFIG = EngineConfig(block_tokens=16, n_blocks=6, max_context=32, graph_buckets=(2, 4))
TEXTS = ((3, 1, 4, 1, 5), tuple(range(21)), (9, 9, 8))
BLOCKS = ((4,), (0, 3), (5,))


def run(runner: TorchRunner, spans: Mapping[int, tuple[int, int]], padded_rows: int | None = None) -> list[Emission]:
    """Tokens `start` to before `end` of some of the texts."""
    chunks = [
        Chunk(text, TEXTS[text][start:end], start, BLOCKS[text], SamplingParams(), n_best=MODEL.shape.vocab_size)
        for text, (start, end) in spans.items()
    ]
    return list(runner.run(StepPlan(0, chunks, padded_rows=padded_rows)).emissions)


def is_dense(emission: Emission, end: int) -> bool:
    text = TEXTS[emission.sequence_id][:end]
    expected = dense.log_probabilities(MODEL.weights, MODEL.shape, text)[-1].tolist()
    return dict(emission.best) == pytest.approx(dict(enumerate(expected)), abs=1e-4)


@pytest.fixture
def replays(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Rows of each step that went through a bucket."""
    rows: list[int] = []
    through = DecodeGraphs.logits

    def counted(self: DecodeGraphs, batch: Batch) -> torch.Tensor:
        rows.append(batch.n_rows)
        return through(self, batch)

    monkeypatch.setattr(DecodeGraphs, "logits", counted)
    return rows


def test_steps_in_buckets_are_steps(replays: list[int]) -> None:
    """A bucket that held longer tables and more rows keeps nothing of them."""
    runner = TorchRunner(MODEL, CONFIG, attention="triton")
    run(runner, {0: (0, 3), 1: (0, 19), 2: (0, 1)})
    steps = [({0: (3, 4), 1: (19, 20), 2: (1, 2)}, 4), ({2: (2, 3), 0: (4, 5)}, 4), ({1: (20, 21)}, 2)]
    for spans, padded_rows in steps:
        for emission in run(runner, spans, padded_rows):
            assert is_dense(emission, spans[emission.sequence_id][1])
    assert replays == [4, 4, 2]


def test_drafts_go_through_a_bucket_as_rows_of_their_own(replays: list[int]) -> None:
    runner = TorchRunner(MODEL, CONFIG, attention="triton")
    run(runner, {1: (0, 18)})
    (emission,) = run(runner, {1: (18, 21)}, 4)
    assert is_dense(emission, 21)
    assert replays == [4]


def test_a_step_that_fits_no_bucket_is_computed_without(replays: list[int]) -> None:
    runner = TorchRunner(MODEL, replace(CONFIG, max_context=16), attention="triton")
    run(runner, {0: (0, 3), 1: (0, 19)})
    (longer_than_tables,) = run(runner, {1: (19, 20)}, 2)
    assert is_dense(longer_than_tables, 20)
    (of_three_rows,) = run(runner, {0: (3, 4)}, 3)
    assert is_dense(of_three_rows, 4)
    assert replays == []


def test_graphs_need_the_kernels_for_decode() -> None:
    assert TorchRunner(MODEL, CONFIG, attention="torch").graphs is None
    assert TorchRunner(MODEL, replace(CONFIG, graph_buckets=()), attention="triton").graphs is None


def test_attention_is_that_of_the_device() -> None:
    assert default_attention(MODEL) == ("triton" if GPU else "torch")
    on_gpu = Model("", MODEL.shape, MODEL.weights, "cuda")
    assert default_attention(on_gpu) == "triton"
    assert default_attention(replace(on_gpu, shape=replace(MODEL.shape, head_dim=8))) == "torch"


def test_torch_compile_takes_pieces_whole_and_once_for_all_layers() -> None:
    """Beyond eight compilations of a piece PyTorch gives up on it, and says so in a warning only."""
    compilations: list[int] = []

    def backend(graph: Any, inputs: Any) -> Any:
        compilations.append(len(inputs))
        return graph.forward

    pieces = [torch.compile(each, backend=backend, fullgraph=True) for each in (project, feed_forward)]
    model = random_model(replace(MODEL.shape, n_layers=10, hidden_size=16, intermediate_size=16), device=MODEL.device)
    frequencies = Decoder(model.shape, model.weights).frequencies
    for n_rows in (3, 5):
        x = torch.randn(n_rows, model.shape.hidden_size, device=model.device)
        turn = rotation(torch.arange(n_rows, device=model.device), frequencies, x.dtype)
        for layer in model.weights.layers:
            for one, other in zip(
                pieces[0](x, layer, model.shape, turn), project(x, layer, model.shape, turn), strict=True
            ):
                assert one.equal(other)
            assert pieces[1](x, layer, 1e-6).equal(feed_forward(x, layer, 1e-6))
    assert len(compilations) <= 2 * 2
