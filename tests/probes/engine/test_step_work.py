"""FLOPs and bytes of a step in closed form are those that PyTorch counts, or those counted by hand."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from diag.kernels.paged_definition import count_of_lengths
from diag.model.hf_config import TransformerShape
from diag.probes.engine.config import EngineConfig
from diag.probes.engine.models import random_model
from diag.probes.engine.plan import Chunk, StepPlan
from diag.probes.engine.runner import TorchRunner
from diag.probes.engine.sequence import SamplingParams
from diag.probes.engine.step_work import visible_pairs, work
from diag.probes.engine.weights import n_weights, tensor_shapes
from tests.probes.engine.dense import SHAPE

LLAMA_70B = TransformerShape(8192, 80, 64, 8, 128, 28672, 128256, 131072)
BLOCKS = tuple(range(8))


def counted(plan: StepPlan, shape: TransformerShape) -> int:
    """By PyTorch, of whose attentions it counts the one in plain products, masked pairs included."""
    runner = TorchRunner(random_model(shape), EngineConfig(n_blocks=16, block_tokens=8))
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        runner.run(plan)
    return int(counter.get_total_flops())


def unseen_flops(spans: list[tuple[int, int]], shape: TransformerShape) -> int:
    """Of pairs behind a mask: n queries against all s + n keys, less those that they see."""
    pairs = sum(n * (start + n) for start, n in spans) - visible_pairs(spans)
    return 4 * shape.n_heads * shape.head_dim * shape.n_layers * pairs


@pytest.mark.parametrize("shape", [SHAPE, replace(SHAPE, n_kv_heads=4, head_dim=6, tie_word_embeddings=True)])
@pytest.mark.parametrize(
    "plan",
    [
        StepPlan(0, [Chunk(0, (1,) * 20, 0, BLOCKS, SamplingParams())]),
        StepPlan(0, [Chunk(0, (1,) * 20, 10, BLOCKS, None)]),
        StepPlan(
            0, [Chunk(0, (1,), 30, BLOCKS, SamplingParams()), Chunk(1, (1,), 30, (9, 8, 10, 11), SamplingParams())]
        ),
        StepPlan(0, [Chunk(0, (1,), 30, BLOCKS, SamplingParams(), drafts=(2, 3, 4))]),
        StepPlan(0, [Chunk(0, (1,), 7, BLOCKS, SamplingParams()), Chunk(1, (1,) * 9, 5, (9, 8), SamplingParams())]),
    ],
)
def test_flops_are_those_that_pytorch_counts(plan: StepPlan, shape: TransformerShape) -> None:
    spans = [(chunk.start, chunk.n_tokens) for chunk in plan.chunks]
    n_logits = sum(len(chunk.drafts) + 1 for chunk in plan.chunks if chunk.sampling)
    found = work(spans, n_logits, shape, 4)
    assert found.gemm_flops > 0
    assert found.flops + unseen_flops(spans, shape) == counted(plan, shape)


def test_weights_are_all_but_embedding_and_vectors() -> None:
    matrices = sum(sizes[0] * sizes[1] for _, sizes in tensor_shapes(SHAPE) if len(sizes) == 2)
    embedding = SHAPE.vocab_size * SHAPE.hidden_size
    assert work([(0, 1)], 1, SHAPE, 2).weight_bytes == 2 * (matrices - embedding)
    assert work([(0, 1)], 0, SHAPE, 2).weight_bytes == 2 * (matrices - 2 * embedding)


def test_a_70b_reads_its_cache_and_its_weights() -> None:
    assert n_weights(LLAMA_70B) == pytest.approx(70.6e9, rel=1e-3)
    decode = work([(2499, 1)] * 64, 64, LLAMA_70B, 2)
    assert decode.kv_read_bytes == 64 * 2500 * 327_680
    assert decode.kv_read_bytes / 2**30 == pytest.approx(48.8, abs=0.05)
    assert decode.kv_written_bytes == 64 * 327_680
    assert decode.weight_bytes == pytest.approx(139e9, rel=5e-3), "140 GB less the embedding"


def test_attention_of_decode_is_what_the_kernel_says_of_itself() -> None:
    lengths = [1, 33, 500]
    kernel = count_of_lengths(lengths, q_heads=4, kv_heads=2, head_dim=8, block_size=16, dtype="fp16")
    found = work([(length - 1, 1) for length in lengths], 3, SHAPE, 2)
    assert found.attention_flops == kernel.flops * SHAPE.n_layers
    queries_and_table = kernel.written_bytes + 4 * (len(lengths) + 1 + 3 + 32)
    assert found.kv_read_bytes == (kernel.read_bytes - queries_and_table) * SHAPE.n_layers


def test_chunks_of_a_prompt_add_up_to_it_but_read_weights_and_cache_again() -> None:
    bounds = (0, 100, 101, 300, 512)
    parts = [work([(start, end - start)], 0, SHAPE, 2) for start, end in pairwise(bounds)]
    whole = work([(0, 512)], 0, SHAPE, 2)
    assert sum(part.flops for part in parts) == whole.flops
    assert sum(part.kv_written_bytes for part in parts) == whole.kv_written_bytes
    assert sum(part.weight_bytes for part in parts) == 4 * whole.weight_bytes
    assert sum(part.kv_read_bytes for part in parts) == whole.kv_read_bytes * sum(bounds[1:]) // 512


def test_batches_make_decode_worth_its_weights() -> None:
    intensities = [work([(100, 1)] * n, n, LLAMA_70B, 2).intensity for n in (1, 8, 64, 512)]
    assert intensities == sorted(intensities)
    assert intensities[0] == pytest.approx(1, abs=0.05)
    assert work([(0, 2048)], 1, LLAMA_70B, 2).intensity > 1000


def test_nothing_is_no_work() -> None:
    nothing = work([], 0, SHAPE, 2)
    assert (nothing.flops, nothing.n_bytes) == (0, 0)
