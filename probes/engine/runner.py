"""Runs the steps that the scheduler plans: blocks are moved, the model computes all rows, tokens are chosen."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from time import perf_counter_ns

import torch
from torch import Tensor

from diag.errors import InputError
from diag.kernels.attention_definition import HEAD_DIMS
from diag.model.kv_cache import blocks_for
from diag.probes import machine
from diag.probes.engine.attention import PREPARE, AttentionKind
from diag.probes.engine.batch import Batch, batch_of
from diag.probes.engine.config import EngineConfig
from diag.probes.engine.decoder import Decoder
from diag.probes.engine.graphs import DecodeGraphs
from diag.probes.engine.kv_cache import KvCache, block_bytes
from diag.probes.engine.models import Model
from diag.probes.engine.plan import Chunk, Emission, StepOutput, StepPlan
from diag.probes.engine.sampler import best, choose, probabilities
from diag.probes.engine.sequence import SamplingParams
from diag.probes.engine.speculative import check_drawn, check_guesses
from diag.probes.nvtx_ranges import nvtx_range


class TorchRunner:
    """A `Runner` on PyTorch. Not to be called by two threads at a time.

    `attention`: which is used; None: Triton's kernels on a GPU, PyTorch elsewhere. `compiled`: torch.compile.
    Steps of decode that are padded to one of `config.graph_buckets` go through a graph where attention is Triton's.
    """

    def __init__(
        self, model: Model, config: EngineConfig, *, attention: AttentionKind | None = None, compiled: bool = False
    ) -> None:
        """Raises OutOfMemory where the cache does not fit."""
        check_cache_fits(model, config)
        self.model = model
        self.decoder = Decoder(model.shape, model.weights, compiled=compiled)
        self.cache = KvCache(
            model.shape, n_blocks=config.n_blocks, block_tokens=config.block_tokens,
            n_host_blocks=config.n_host_blocks, dtype=model.dtype, device=model.device,
        )  # fmt: skip
        self.attention = attention or default_attention(model)
        self.graphs: DecodeGraphs | None = None
        if config.graph_buckets and self.attention == "triton":
            most_blocks = min(config.n_blocks, blocks_for(config.max_context, config.block_tokens))
            self.graphs = DecodeGraphs(self.decoder, self.cache, config.graph_buckets, most_blocks)

    def run(self, plan: StepPlan) -> StepOutput:
        """Raises InputError for unknown tokens and for logits that are no numbers."""
        started_ns = perf_counter_ns()
        with nvtx_range("engine.model"), torch.no_grad():
            self.cache.swap_out(plan.swap_out)
            self.cache.swap_in(plan.swap_in)
            self.cache.copy(plan.copies)
            logits = self._logits(plan)
            self._wait()
        computed_ns = perf_counter_ns()
        with nvtx_range("engine.sample"):
            emissions = emissions_of(plan, logits)
        return StepOutput(emissions, computed_ns - started_ns, perf_counter_ns() - computed_ns)

    def _logits(self, plan: StepPlan) -> Tensor:
        """[wanted rows, vocabulary]."""
        shape, cache = self.model.shape, self.cache
        if not plan.chunks:
            return torch.empty(0, shape.vocab_size)
        batch = batch_of(
            plan, block_tokens=cache.block_tokens, padding_block=cache.padding_block, vocab_size=shape.vocab_size,
            device=self.model.device,
        )  # fmt: skip
        if self.graphs and plan.padded_rows and self.graphs.takes(batch):
            return self.graphs.logits(batch)
        return self._eager_logits(batch)

    def _eager_logits(self, batch: Batch) -> Tensor:
        attend = PREPARE[self.attention](batch, self.cache.block_tokens, self.cache.padding_block)
        hidden = self.decoder.hidden(batch.tokens, batch.positions, batch.slots, self.cache, attend)
        return self.decoder.logits(hidden[batch.wanted])

    def _wait(self) -> None:
        if self.model.device == "cuda":
            torch.cuda.synchronize()


def default_attention(model: Model) -> AttentionKind:
    least, most = HEAD_DIMS
    has_kernel = model.dtype != torch.float64 and least <= model.shape.head_dim <= most
    return "triton" if model.device == "cuda" and has_kernel else "torch"


def check_cache_fits(model: Model, config: EngineConfig) -> None:
    """Raises OutOfMemory."""
    each_bytes = block_bytes(model.shape, config.block_tokens, model.weights.embedding.element_size())
    for n_blocks, device in ((config.n_blocks + 1, model.device), (config.n_host_blocks, "cpu")):
        machine.check_memory(f"A cache of {n_blocks} blocks", n_blocks * each_bytes, device, "Choose fewer blocks")


# ---- tokens --------------------------------------------------------------------------------------------------------


def emissions_of(plan: StepPlan, logits: Tensor) -> Sequence[Emission]:
    """Of each chunk that samples; its rows of logits [wanted rows, vocabulary] come in the order of the chunks."""
    sampling = [(chunk, chunk.sampling) for chunk in plan.chunks if chunk.sampling]
    if not sampling:
        return []
    if not bool(logits.isfinite().all()):
        raise InputError("The model's logits are not all finite. Its weights are damaged, or their type is too narrow.")
    n_rows = [len(chunk.drafts) + 1 for chunk, _ in sampling]
    samplings = [params for (_, params), n in zip(sampling, n_rows, strict=True) for _ in range(n)]
    positions = [
        chunk.start + len(chunk.tokens) + i for (chunk, _), n in zip(sampling, n_rows, strict=True) for i in range(n)
    ]
    chosen = choose(logits, samplings, positions).tolist()  # of all at once: to wait for a device takes its time
    ends = accumulate(n_rows)
    return [
        _emission(chunk, params, chosen[end - n : end], logits[end - n : end])
        for (chunk, params), n, end in zip(sampling, n_rows, ends, strict=True)
    ]


def _emission(chunk: Chunk, sampling: SamplingParams, chosen: Sequence[int], logits: Tensor) -> Emission:
    """`chosen` and the rows of `logits` [drafts + 1, vocabulary] are of the positions of its drafts, and one more."""
    if chunk.draft_probabilities:
        proposed = torch.tensor(chunk.draft_probabilities, dtype=torch.float64)
        target = probabilities(logits, [sampling] * len(logits)).cpu()
        position = chunk.start + len(chunk.tokens)
        verdict = check_drawn(target, proposed, chunk.drafts, seed=sampling.seed, position=position)
    else:
        verdict = check_guesses(chunk.drafts, chosen)
    likeliest = best(logits[verdict.n_accepted], chunk.n_best) if chunk.n_best else ()
    return Emission(chunk.sequence_id, verdict.tokens, verdict.n_accepted, likeliest)
