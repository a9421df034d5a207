"""What the steps of an engine say of the blocks of its KV cache: how many are left, and how much of them is empty."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

import numpy as np

from diag.model.kv_cache import blocks_for
from diag.model.serving_metrics import Nanoseconds
from diag.serving.steps import Chosen, Steps

BLOCKS = ("used_blocks", "cached_blocks", "free_blocks")


@dataclass(frozen=True)
class Room:
    """Blocks that a request needs to begin: 1 where prompts or blocks are not known."""

    median: int
    most: int

    @classmethod
    def of(cls, steps: Steps) -> Room:
        """Of prompts; with their outputs where sequences come back after preemption."""
        block = steps.run.settings.block_tokens
        comes_back = bool(steps["n_preempted"].any())
        needs = [
            each.prompt_tokens + (each.output_tokens or 0 if comes_back else 0)
            for each in steps.run.measured
            if each.prompt_tokens
        ]
        if not block or not needs:
            return cls(1, 1)
        return cls(blocks_for(round(median(needs)), block), blocks_for(max(needs), block))


def waits_without(steps: Steps, n_blocks: int) -> Chosen:
    """(steps,): whether requests waited at its end, and fewer blocks were free or cached without a reference."""
    waits = steps["n_waiting"] + steps["n_swapped"] > 0
    return np.asarray(waits & (steps["free_blocks"] + steps["cached_blocks"] < n_blocks))


def has_seats(steps: Steps) -> Chosen:
    """(steps,): whether more sequences might have run at once."""
    most = steps.run.settings.max_sequences
    return np.ones(len(steps), bool) if most is None else np.asarray(steps["n_running"] < most)


def expected_waste(block_tokens: int, sequence_tokens: float) -> float:
    """Share of a sequence's blocks that is empty, its length being anything.

    >>> round(expected_waste(16, 100), 3), expected_waste(1, 100)
    (0.07, 0.0)
    """
    tail = (block_tokens - 1) / 2
    return tail / (sequence_tokens + tail) if sequence_tokens + tail else 0.0


def empty_share(steps: Steps) -> float | None:
    """Of the used blocks, weighted by time; None where it is not known."""
    block = steps.run.settings.block_tokens
    if block is None or not steps.tells("used_blocks", "used_tokens"):
        return None
    weight = steps.lasting_ns.astype(np.float64)
    slots = float((steps["used_blocks"] * weight).sum()) * block
    return max(0.0, 1 - float((steps["used_tokens"] * weight).sum()) / slots) if slots > 0 else None


def mean_sequence(steps: Steps) -> tuple[float, float, float]:
    """Tokens of a sequence, blocks in use, sequences that run: means by time, while any block was in use."""
    weight = steps.lasting_ns.astype(np.float64) * (steps["used_blocks"] > 0)
    tokens, blocks, running = (
        float((steps[name] * weight).sum()) / max(float(weight.sum()), 1.0)
        for name in ("used_tokens", "used_blocks", "n_running")
    )
    return tokens / running if running else tokens, blocks, running


def mean_share(steps: Steps, name: str) -> float | None:
    """Of all blocks, those of one of BLOCKS, weighted by time; None where they are not known."""
    if not steps.tells(*BLOCKS):
        return None
    return float(np.average(steps[name] / _pool(steps), weights=steps.lasting_ns))


def fullest(steps: Steps) -> float | None:
    """The largest share of all blocks that was in use after a step; None where they are not known."""
    return float((steps["used_blocks"] / _pool(steps)).max()) if steps.tells(*BLOCKS) else None


def _pool(steps: Steps) -> Nanoseconds:
    """(steps,): all blocks."""
    return np.maximum(sum(steps[name] for name in BLOCKS), 1)
