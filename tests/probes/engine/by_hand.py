"""Steps planned by a die instead of a scheduler: chunks of any length, blocks in any order, forks, swaps."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

import torch
from torch import Tensor

from diag.probes.engine.config import EngineConfig
from diag.probes.engine.models import Model
from diag.probes.engine.plan import BlockCopy, Chunk, Emission, StepPlan
from diag.probes.engine.runner import TorchRunner
from diag.probes.engine.sequence import SamplingParams
from tests.probes.engine import dense

MOST_TOKENS = 512
"""Of all sequences together, be it on the device or swapped out."""


@dataclass
class Written:
    """A sequence whose tokens are known beforehand, and how far it is computed."""

    id: int
    tokens: list[int]
    expected: Tensor  # log-probabilities [tokens, vocabulary]
    n_computed: int = 0
    blocks: list[int] = field(default_factory=list)
    host_blocks: list[int] = field(default_factory=list)  # while it is swapped out

    @property
    def is_done(self) -> bool:
        return self.n_computed == len(self.tokens)


class Dice:
    """Plans and runs steps, and holds what comes back against dense attention."""

    def __init__(self, model: Model, seed: int, *, block_tokens: int, **options: Any) -> None:
        self.random, self.model, self.block_tokens = Random(seed), model, block_tokens
        n_blocks = MOST_TOKENS // block_tokens
        config = EngineConfig(block_tokens=block_tokens, n_blocks=n_blocks, n_host_blocks=n_blocks)
        self.runner = TorchRunner(model, config, **options)
        self.free, self.free_host = list(range(n_blocks)), list(range(n_blocks))
        self.random.shuffle(self.free)
        self.references = dict.fromkeys(range(n_blocks), 0)
        self.sequences: list[Written] = []
        self.steps = 0
        self.furthest = 0.0  # difference of log-probabilities

    def add(self, tokens: list[int]) -> Written:
        expected = dense.log_probabilities(self.model.weights, self.model.shape, tokens)
        sequence = Written(len(self.sequences), tokens, expected)
        self.sequences.append(sequence)
        return sequence

    def drawn_tokens(self, n: int) -> list[int]:
        return [self.random.randrange(self.model.shape.vocab_size) for _ in range(n)]

    def fork(self, parent: Written, n_more: int) -> tuple[Written, list[BlockCopy]]:
        """A sequence that shares what is computed: full blocks by reference, the one begun by a copy."""
        child = self.add(parent.tokens[: parent.n_computed] + self.drawn_tokens(n_more))
        child.n_computed = parent.n_computed
        n_full = parent.n_computed // self.block_tokens
        child.blocks = parent.blocks[:n_full]
        for block in child.blocks:
            self.references[block] += 1
        copies = []
        if parent.n_computed % self.block_tokens:
            child.blocks.append(self._block())
            copies.append(BlockCopy(parent.blocks[n_full], child.blocks[n_full]))
        return child, copies

    def swap_out(self, sequence: Written) -> list[BlockCopy]:
        sequence.host_blocks = [self.free_host.pop() for _ in sequence.blocks]
        copies = [BlockCopy(*each) for each in zip(sequence.blocks, sequence.host_blocks, strict=True)]
        self._give_back(sequence)
        return copies

    def swap_in(self, sequence: Written) -> list[BlockCopy]:
        sequence.blocks = [self._block() for _ in sequence.host_blocks]
        copies = [BlockCopy(*each) for each in zip(sequence.host_blocks, sequence.blocks, strict=True)]
        self.free_host += sequence.host_blocks
        sequence.host_blocks = []
        return copies

    def finish(self, sequence: Written) -> None:
        self._give_back(sequence)
        self.sequences.remove(sequence)

    def step(self, sequences: list[Written], most_tokens: int, n_padding: int = 0, **moves: list[BlockCopy]) -> None:
        """Each sequence goes on by a few tokens."""
        chunks = [self._chunk(each, self.random.randint(1, most_tokens)) for each in sequences]
        n_rows = sum(chunk.n_tokens for chunk in chunks)
        plan = StepPlan(self.steps, chunks, padded_rows=n_rows + n_padding if n_padding else None, **moves)
        emissions = self.runner.run(plan).emissions
        self.steps += 1
        assert [each.sequence_id for each in emissions] == [each.id for each in sequences]
        for sequence, emission in zip(sequences, emissions, strict=True):
            self._compare(sequence, emission)

    def _chunk(self, sequence: Written, n: int) -> Chunk:
        start, end = sequence.n_computed, min(sequence.n_computed + n, len(sequence.tokens))
        while len(sequence.blocks) * self.block_tokens < end:
            sequence.blocks.append(self._block())
        sequence.n_computed = end
        return Chunk(
            sequence.id, tuple(sequence.tokens[start:end]), start, tuple(sequence.blocks), SamplingParams(),
            n_best=self.model.shape.vocab_size,
        )  # fmt: skip

    def _compare(self, sequence: Written, emission: Emission) -> None:
        expected = sequence.expected[sequence.n_computed - 1]
        found = torch.empty_like(expected)
        for token, value in emission.best:
            found[token] = value
        self.furthest = max(self.furthest, float((found - expected).abs().max()))

    def _block(self) -> int:
        block = self.free.pop()
        self.references[block] = 1
        return block

    def _give_back(self, sequence: Written) -> None:
        for block in sequence.blocks:
            self.references[block] -= 1
            if not self.references[block]:
                self.free.insert(self.random.randint(0, len(self.free)), block)
        sequence.blocks = []


def play(dice: Dice, n_steps: int, *, padding: int = 0) -> None:
    """Sequences come, fork, are swapped, go on and end, as the die falls."""
    random = dice.random
    for _ in range(n_steps):
        moves: dict[str, list[BlockCopy]] = {"swap_out": [], "swap_in": [], "copies": []}
        if len(dice.sequences) < 4:
            dice.add(dice.drawn_tokens(random.randint(1, 40)))
        for sequence in [each for each in dice.sequences if each.host_blocks and random.random() < 0.5]:
            moves["swap_in"] += dice.swap_in(sequence)
        running = [each for each in dice.sequences if not each.host_blocks and not each.is_done]
        computed = [each for each in running if each.n_computed]
        if computed and random.random() < 0.3 and len(dice.sequences) < 6:
            child, copies = dice.fork(random.choice(computed), random.randint(1, 20))
            moves["copies"] += copies
            running.append(child)
        chosen = [each for each in running if random.random() < 0.7]
        random.shuffle(chosen)
        dice.step(chosen, random.choice((1, 3, 17)), padding, **moves)
        for sequence in [each for each in dice.sequences if each.is_done]:
            dice.finish(sequence)
        resting = [each for each in dice.sequences if each.blocks and each.n_computed]
        if resting and random.random() < 0.3:
            out = dice.swap_out(random.choice(resting))
            dice.step([], 1, swap_out=out)
