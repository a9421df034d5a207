"""Which tokens of which sequences the next step computes: continuous batching under one budget of tokens.

Decode comes first, a token for each sequence that generates; then the next chunks of prompts that are begun; then, in
the order of priority and arrival, what was swapped out and what waits. When blocks run out, the sequence that ranks
last is preempted: its blocks are dropped, to be computed again, or moved to the host.
(Orca, Yu et al., OSDI 2022; vLLM, Kwon et al., SOSP 2023; chunked prefill: Sarathi-Serve, Agrawal et al., OSDI 2024.)
"""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass, field
from operator import attrgetter

from diag.probes.engine.config import EngineConfig
from diag.probes.engine.drafters import Drafter
from diag.probes.engine.kv_memory import KvMemory
from diag.probes.engine.plan import BlockCopy, Chunk, StepPlan
from diag.probes.engine.sequence import Sequence, State

_RANK = attrgetter("rank")


@dataclass(eq=False)
class Step:
    """A plan in the making, and what its record will say of it."""

    number: int
    budget: int
    sequences: list[Sequence] = field(default_factory=list)  # of each chunk
    chunks: list[Chunk] = field(default_factory=list)
    copies: list[BlockCopy] = field(default_factory=list)
    swap_out: list[BlockCopy] = field(default_factory=list)
    swap_in: list[BlockCopy] = field(default_factory=list)
    preempted: list[Sequence] = field(default_factory=list)
    n_decodes: int = 0
    prefill_tokens: int = 0
    recomputed_tokens: int = 0
    drafted_tokens: int = 0
    longest_prefill_tokens: int = 0
    longest_prefill: Sequence | None = None


class Scheduler:
    def __init__(self, config: EngineConfig, memory: KvMemory, drafter: Drafter) -> None:
        self.waiting: list[Sequence] = []  # like the others in the order of rank
        self.running: list[Sequence] = []
        self.swapped: list[Sequence] = []
        self.padding: list[Sequence] = []  # finished rows of a static batch, which keep their blocks until its end
        self._config = config
        self._memory = memory
        self._drafter = drafter
        self._is_static = config.batching == "static"
        self._n_steps = 0

    # ---- queues ----------------------------------------------------------------------------------------------------

    def enter(self, sequence: Sequence) -> None:
        """By its state: into the queue, or, with blocks already, among those that run."""
        insort(self._queue_of(sequence), sequence, key=_RANK)

    def leave(self, sequence: Sequence) -> None:
        """It ended. Only in a static batch its row and its blocks stay until all have ended."""
        self._remove(sequence)
        had_row, sequence.state = sequence.state is State.RUNNING, State.FINISHED
        if self._is_static and had_row:
            self.padding.append(sequence)
        else:
            self._memory.free(sequence)
        if not self.running:
            for each in self.padding:
                self._memory.free(each)
            self.padding.clear()

    def replace(self, parents: list[Sequence], children: list[Sequence]) -> None:
        """Beams go on as their children, which share their blocks."""
        for parent in parents:
            self._remove(parent)
            self._memory.free(parent)
            parent.state = State.FINISHED
        for child in children:
            self.enter(child)

    def _queue_of(self, sequence: Sequence) -> list[Sequence]:
        match sequence.state:
            case State.RUNNING:
                return self.running
            case State.SWAPPED:
                return self.swapped
            case _:
                return self.waiting

    def _remove(self, sequence: Sequence) -> None:
        queue = self._queue_of(sequence)
        if sequence in queue:  # a beam that was preempted while it was held is in none
            queue.remove(sequence)

    # ---- one step --------------------------------------------------------------------------------------------------

    def schedule(self) -> Step | None:
        """The next step; None where nothing is left to compute."""
        step = self._scheduled()
        if not step.chunks and any(each.is_held for each in self.running):
            # Beams that wait for each other hold what the last of them needs.
            for held in [each for each in self.running if each.is_held]:
                self._preempt(held, step)
            self._resume(step)
            self._admit(step)
        if not (step.chunks or step.swap_out):
            return None
        self._n_steps += 1
        return step

    def plan(self, step: Step) -> StepPlan:
        return StepPlan(
            step.number, step.chunks, step.swap_out, step.swap_in, step.copies, padded_rows=self._padded_rows(step)
        )

    def _scheduled(self) -> Step:
        step = Step(self._n_steps, self._config.max_step_tokens)
        decoding: list[Sequence] = []
        prefilling: list[Sequence] = []
        for each in self.running:
            if not each.is_held:
                (decoding if each.is_decoding else prefilling).append(each)
        if not self._config.chunked_prefill and self._took_long_prompt(step, prefilling, len(decoding)):
            return step
        self._decode(step, decoding)
        for sequence in prefilling:
            self._compute(step, sequence, self._n_prefill(step, sequence))
        if not step.preempted:  # else a block that was just given up could be filled from the host before it is copied
            self._resume(step)
            self._admit(step)
        return step

    def _decode(self, step: Step, decoding: list[Sequence]) -> None:
        n_for_drafts = max(0, step.budget - len(decoding))
        for sequence in decoding:
            if not step.budget:
                break
            if sequence.state is not State.RUNNING:  # preempted by one before it
                continue
            drafts = self._drafts(sequence, n_for_drafts) if n_for_drafts and self._config.n_draft_tokens else ()
            if drafts and self._computed_without_preemption(step, sequence, drafts):
                n_for_drafts -= len(drafts)
            else:
                self._compute(step, sequence, 1)

    def _drafts(self, sequence: Sequence, n_tokens: int) -> tuple[int, ...]:
        """None beyond what may still come out: the token after the drafts is the last one."""
        if sequence.group.request.sampling.beam_width:
            return ()
        n_left = sequence.group.max_tokens - (len(sequence.tokens) - sequence.n_prompt)
        n_tokens = min(n_tokens, n_left - 1, self._config.n_draft_tokens)
        return self._drafter.propose(sequence.tokens, n_tokens)[:n_tokens] if n_tokens > 0 else ()

    def _n_prefill(self, step: Step, sequence: Sequence) -> int:
        """Of its pending tokens those that go into the step: a chunk; or all or none, over the budget only alone."""
        if self._config.chunked_prefill or sequence.n_pending <= step.budget:
            return min(sequence.n_pending, step.budget)
        return 0 if step.chunks else sequence.n_pending

    def _took_long_prompt(self, step: Step, prefilling: list[Sequence], n_decoding: int) -> bool:
        """Without chunks, a prompt beside which the decodes do not fit has the step to itself, and they stand still."""
        n_free = self._config.max_step_tokens - n_decoding
        for sequence in prefilling:
            if sequence.n_pending > n_free:
                return self._compute(step, sequence, sequence.n_pending)
        if self._is_static or self.swapped or not self.waiting:
            return False
        sequence = self.waiting[0]
        if sequence.n_pending <= n_free or sequence.n_pending - self._memory.n_known_tokens(sequence) <= n_free:
            return False
        may_run = self._may_enter(sequence) and self._brought_in(sequence)
        return may_run and self._compute(step, sequence, sequence.n_pending)

    # ---- what comes in ---------------------------------------------------------------------------------------------

    def _resume(self, step: Step) -> None:
        """What was swapped out goes on, before anything new begins."""
        while self.swapped and step.budget > 0 and self._n_rows() < self._config.max_sequences:
            sequence = self.swapped[0]
            copies = self._memory.swap_in(sequence)
            if copies is None:
                return
            step.swap_in += copies
            self._run(sequence)
            self._compute(step, sequence, self._n_prefill(step, sequence))

    def _admit(self, step: Step) -> None:
        """In the order of rank; the first that does not fit lets none overtake."""
        if self._is_static:
            self._take_batch()
            for sequence in [each for each in self.running if each.last_step != step.number and each.n_pending]:
                self._compute(step, sequence, self._n_prefill(step, sequence))
            return
        while self.waiting and not self.swapped and step.budget > 0:
            sequence = self.waiting[0]
            if not (self._may_enter(sequence) and self._brought_in(sequence)):
                return
            if not self._compute(step, sequence, self._n_prefill(step, sequence)):
                return

    def _take_batch(self) -> None:
        """As many as fit to their ends, once the batch before has ended as a whole."""
        if self.running:
            return
        n_blocks = 0
        while self.waiting and self._may_enter(self.waiting[0]):
            group = self.waiting[0].group
            n_tokens = len(group.request.prompt) + group.max_tokens - 1
            n_blocks += group.request.sampling.width * self._memory.blocks_of(n_tokens)
            if n_blocks > self._config.n_blocks or not self._brought_in(self.waiting[0]):
                return

    def _n_rows(self) -> int:
        """Sequences that run, and those that will when the prompts of their groups are computed."""
        return len(self.running) + sum(each.group.n_to_fork for each in self.running)

    def _may_enter(self, sequence: Sequence) -> bool:
        return self._n_rows() + 1 + sequence.group.n_to_fork <= self._config.max_sequences

    def _brought_in(self, sequence: Sequence) -> bool:
        """Whether all its tokens fit into memory, those found in the prefix cache included; it then runs."""
        if not self._memory.pool.n_available:
            return False
        self._memory.find_prefix(sequence)
        if not self._memory.fits(sequence):
            self._memory.free(sequence)
            sequence.n_computed = 0
            return False
        if sequence.group.cached_tokens is None:
            sequence.group.cached_tokens = sequence.n_computed
        self._run(sequence)
        return True

    def _run(self, sequence: Sequence) -> None:
        self._queue_of(sequence).remove(sequence)
        sequence.state = State.RUNNING
        insort(self.running, sequence, key=_RANK)

    # ---- chunks, and room for them ---------------------------------------------------------------------------------

    def _compute(self, step: Step, sequence: Sequence, n_tokens: int) -> bool:
        """Whether the next `n_tokens` of a sequence are in the step; others are preempted where that makes room."""
        if not n_tokens or sequence.state is not State.RUNNING:
            return False
        while (copies := self._memory.reserve(sequence, n_tokens)) is None:
            if (victim := self._victim(step, sequence)) is None:
                return False
            self._preempt(victim, step)
        step.copies += copies
        self._append(step, sequence, n_tokens, ())
        return True

    def _computed_without_preemption(self, step: Step, sequence: Sequence, drafts: tuple[int, ...]) -> bool:
        copies = self._memory.reserve(sequence, 1 + len(drafts))
        if copies is None:
            return False
        step.copies += copies
        self._append(step, sequence, 1, drafts)
        return True

    def _append(self, step: Step, sequence: Sequence, n_tokens: int, drafts: tuple[int, ...]) -> None:
        start, tokens, sampling = sequence.n_computed, sequence.tokens, sequence.sampling
        end = start + n_tokens
        blocks = tuple(sequence.blocks)
        if end == len(tokens):
            chunk = Chunk(
                sequence.id, tuple(tokens[start:]), start, blocks, sampling, drafts, n_best=2 * sampling.beam_width
            )  # as many beams may end by a stop token as go on
        else:
            chunk = Chunk(sequence.id, tuple(tokens[start:end]), start, blocks, None)
        step.chunks.append(chunk)
        step.sequences.append(sequence)
        step.budget -= n_tokens + len(drafts)
        sequence.last_step = step.number
        if n_tokens == 1 and sequence.is_decoding:
            step.n_decodes += 1
            step.drafted_tokens += len(drafts)
            return
        step.prefill_tokens += n_tokens
        step.recomputed_tokens += max(0, min(end, sequence.n_once_computed) - start)
        if n_tokens > step.longest_prefill_tokens:
            step.longest_prefill_tokens, step.longest_prefill = n_tokens, sequence

    def _victim(self, step: Step, sequence: Sequence) -> Sequence | None:
        """The last in rank that the step does not compute, if it ranks behind; beams that are held give way to all."""
        for other in reversed(self.running):
            if other.last_step == step.number or other is sequence:
                continue
            if other.is_held or other.rank > sequence.rank:
                return other
        return None

    def _preempt(self, sequence: Sequence, step: Step) -> None:
        self.running.remove(sequence)
        step.preempted.append(sequence)
        sequence.group.n_preemptions += 1
        swaps = self._config.preemption == "swap" and not sequence.is_held
        if swaps and (copies := self._memory.swap_out(sequence)) is not None:
            step.swap_out += copies
            sequence.state = State.SWAPPED
        else:
            self._memory.free(sequence)
            sequence.n_once_computed = max(sequence.n_once_computed, sequence.n_computed)
            sequence.n_computed = 0
            sequence.state = State.WAITING
        if not sequence.is_held:  # a held one has nothing to compute: its children will
            self.enter(sequence)

    def _padded_rows(self, step: Step) -> int | None:
        """Of a step whose chunks are one token each, and its drafts: a row is a token."""
        if any(len(chunk.tokens) != 1 for chunk in step.chunks):
            return None
        n_rows = len(step.chunks) + step.drafted_tokens + len(self.padding)
        fitting = [bucket for bucket in self._config.graph_buckets if bucket >= n_rows]
        return min(fitting, default=n_rows if self._is_static else None)
