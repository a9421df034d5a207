"""What can never run is refused before it takes anything, with the reason and the way out."""

from __future__ import annotations

from diag.errors import DiagError, InputError, UsageError
from diag.model.kv_cache import blocks_for
from diag.probes.engine.config import EngineConfig
from diag.probes.engine.sequence import Request


class Overloaded(DiagError):
    """The queue is full. The same request may be served later."""


def check_config(config: EngineConfig) -> None:
    """Raises UsageError for settings with which nothing could run."""
    least = {"block_tokens": 1, "n_blocks": 1, "n_host_blocks": 0, "max_sequences": 1, "max_step_tokens": 1,
             "max_context": 2, "n_draft_tokens": 0}  # fmt: skip
    for name, smallest in least.items():
        if getattr(config, name) < smallest:
            raise UsageError(f"{name} is {getattr(config, name)}. Set it to {smallest} or more.")
    if config.max_waiting is not None and config.max_waiting < 1:
        raise UsageError(f"max_waiting is {config.max_waiting}: no request could come in. Set it to 1 or more.")
    if list(config.graph_buckets) != sorted({*config.graph_buckets}) or min(config.graph_buckets, default=1) < 1:
        raise UsageError(f"graph_buckets {config.graph_buckets} do not rise from 1 on. Sort them, each once.")


def check_request(request: Request, config: EngineConfig, vocabulary: int | None = None) -> None:
    """Raises InputError for a request that could not be served at any time."""
    sampling = request.sampling
    if not request.prompt:
        raise InputError(f"Request {request.id!r} has an empty prompt: give it one token at least.")
    if min(request.prompt) < 0 or (vocabulary is not None and max(request.prompt) >= vocabulary):
        raise InputError(
            f"A token of request {request.id!r} is not in the vocabulary: tokens are indices from 0 to "
            f"{'the last' if vocabulary is None else vocabulary - 1}."
        )
    if sampling.max_tokens < 1:
        raise InputError(f"Request {request.id!r} asks for {sampling.max_tokens} tokens: ask for 1 at least.")
    if sampling.beam_width and sampling.n > 1:
        raise InputError(f"Request {request.id!r} asks for samples and for beams: choose one of n and beam_width.")
    if len(request.prompt) >= config.max_context:
        raise InputError(
            f"The prompt has {len(request.prompt):,} tokens, and the longest context is {config.max_context:,}, output "
            "included. Shorten it, or raise max_context."
        )
    if sampling.width > config.max_sequences:
        raise InputError(
            f"Request {request.id!r} becomes {sampling.width} sequences, and {config.max_sequences} can run at once. "
            "Ask for fewer, or raise max_sequences."
        )
    _check_blocks(request, config)


def max_tokens(request: Request, config: EngineConfig) -> int:
    """Output tokens that the longest context leaves."""
    return min(request.sampling.max_tokens, config.max_context - len(request.prompt))


def _check_blocks(request: Request, config: EngineConfig) -> None:
    """Any sequence must fit alone; in a static batch, which preempts nobody, all of the request's together."""
    n_tokens = len(request.prompt) + max_tokens(request, config) - 1  # the last token's keys and values are not needed
    rows = request.sampling.width if config.batching == "static" else 1
    n_blocks = rows * blocks_for(n_tokens, config.block_tokens)
    if n_blocks > config.n_blocks:
        raise InputError(
            f"It may need {n_blocks:,} blocks of {config.block_tokens} tokens, and the KV cache has "
            f"{config.n_blocks:,}. Shorten the prompt, ask for fewer tokens, or raise n_blocks."
        )
