"""A runner without a model, whose answers are known: a token is a hash of all that attention would see.

Each place of its KV memory holds a digest of the token there and of the digest before it, read through the block table
as keys of a second layer depend on the first. So any mistake of paging (a wrong block, one written while shared, one
taken too early, a prefix that is not the same) changes the tokens that come out, and `expected` says without any engine
which ones should have.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from hashlib import blake2b

from diag.probes.engine import beam
from diag.probes.engine.block_pool import BlockPool
from diag.probes.engine.config import EngineConfig
from diag.probes.engine.plan import Chunk, Emission, StepOutput, StepPlan
from diag.probes.engine.sequence import BeamEnd, Request, SamplingParams

VOCABULARY = 251

_EMPTY = -1
_SEED = 0x1234_5678_9ABC_DEF


def _digest(before: int, token: int) -> int:
    """63 bits."""
    return (before * 6364136223846793005 + token * 1442695040888963407 + 1) & 0x7FFF_FFFF_FFFF_FFFF


def digests(tokens: Sequence[int]) -> array[int]:
    """(tokens,): of each, and all before it."""
    made = array("q")
    digest = _SEED
    for token in tokens:
        digest = _digest(digest, token)
        made.append(digest)
    return made


def likeliest(seen: array[int], n: int) -> tuple[tuple[int, float], ...]:
    """(n,) tokens that may follow these digests, with log-probabilities that fall."""
    drawn = _drawn(seen, b"")
    gap = (1 + drawn % 97) / 97
    return tuple(((drawn + 7 * rank) % VOCABULARY, -gap * (rank + 1)) for rank in range(n))


def token_after(seen: array[int], sampling: SamplingParams) -> int:
    """Greedy: the likeliest. Else by the seed, too."""
    if not sampling.temperature:
        return _drawn(seen, b"") % VOCABULARY
    return _drawn(seen, sampling.seed.to_bytes(8, "big", signed=True)) % VOCABULARY


def _drawn(seen: array[int], salt: bytes) -> int:
    return int.from_bytes(blake2b(seen.tobytes() + salt, digest_size=6).digest(), "big")


class AnswerRunner:
    """A `Runner`. With the engine's pool, it checks that no block is written while others see it."""

    def __init__(self, config: EngineConfig) -> None:
        self.pool: BlockPool | None = None
        self._block_tokens = config.block_tokens
        self._device = _memory(config.n_blocks, config.block_tokens)
        self._host = _memory(config.n_host_blocks, config.block_tokens)

    def run(self, plan: StepPlan) -> StepOutput:
        for copy in plan.swap_out:
            self._host[copy.target][:] = self._device[copy.source]
        for copy in plan.swap_in:
            self._device[copy.target][:] = self._host[copy.source]
        for copy in plan.copies:
            self._device[copy.target][:] = self._device[copy.source]
        computed = [self._computed(chunk) for chunk in plan.chunks]
        return StepOutput([emission for emission in computed if emission is not None])

    def _computed(self, chunk: Chunk) -> Emission | None:
        for position, token in enumerate((*chunk.tokens, *chunk.drafts), chunk.start):
            self._write(chunk, position, token)
        if chunk.sampling is None:
            return None
        end = chunk.start + len(chunk.tokens)
        tokens = [token_after(self._seen(chunk, end), chunk.sampling)]
        for n_accepted, draft in enumerate(chunk.drafts, 1):
            if draft != tokens[-1]:
                break
            tokens.append(token_after(self._seen(chunk, end + n_accepted), chunk.sampling))
        best = likeliest(self._seen(chunk, end), chunk.n_best) if chunk.n_best else ()
        return Emission(chunk.sequence_id, tuple(tokens), len(tokens) - 1, best)

    def _write(self, chunk: Chunk, position: int, token: int) -> None:
        index, place = divmod(position, self._block_tokens)
        if self.pool is not None:
            self.pool.check_writable(chunk.blocks[index])
        before = _SEED
        if position:
            index_before, place_before = divmod(position - 1, self._block_tokens)
            before = self._device[chunk.blocks[index_before]][place_before]
        self._device[chunk.blocks[index]][place] = _digest(before, token)

    def _seen(self, chunk: Chunk, n_tokens: int) -> array[int]:
        """(n_tokens,) digests, through the block table."""
        seen = array("q")
        for block in chunk.blocks[: -(-n_tokens // self._block_tokens)]:
            seen += self._device[block]
        return seen[:n_tokens]


def _memory(n_blocks: int, block_tokens: int) -> list[array[int]]:
    return [array("q", [_EMPTY]) * block_tokens for _ in range(n_blocks)]


# ---- without any engine --------------------------------------------------------------------------------------------


def expected(request: Request) -> list[tuple[int, ...]]:
    """What an engine with an AnswerRunner must put out for the request: its samples, or its hypotheses."""
    sampling = request.sampling
    if sampling.beam_width:
        return _expected_beams(request)
    return [_expected_sample(request, sampling.of_sample(index)) for index in range(sampling.n)]


def _expected_sample(request: Request, sampling: SamplingParams) -> tuple[int, ...]:
    seen = digests(request.prompt)
    output: list[int] = []
    while len(output) < sampling.max_tokens:
        output.append(token_after(seen, sampling))
        if output[-1] in sampling.stop_tokens:
            break
        seen.append(_digest(seen[-1], output[-1]))
    return tuple(output)


def _expected_beams(request: Request) -> list[tuple[int, ...]]:
    sampling = request.sampling
    ends: list[BeamEnd] = []
    beams: list[tuple[tuple[int, ...], float]] = [((), 0.0)]
    while beams and len(ends) < sampling.beam_width:
        candidates = [likeliest(digests((*request.prompt, *output)), 2 * sampling.beam_width) for output, _ in beams]
        chosen = beam.select([score for _, score in beams], candidates, sampling.beam_width, sampling.stop_tokens)
        ended = [(*beams[each.beam][0], each.token) for each in chosen.ended]
        ends += [
            BeamEnd(tokens, each.log_probability, "stop") for tokens, each in zip(ended, chosen.ended, strict=True)
        ]
        beams = [((*beams[each.beam][0], each.token), each.log_probability) for each in chosen.alive]
        if len(beams[0][0]) == sampling.max_tokens:
            ends += [BeamEnd(tokens, log_probability, "length") for tokens, log_probability in beams]
            break
    return [end.tokens for end in sorted(ends, key=lambda end: -end.score)[: sampling.beam_width]]
