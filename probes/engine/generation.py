"""What a step's output makes of the sequences: tokens come on, samples and beams part, ends are found."""

from __future__ import annotations

from itertools import count

from diag.probes.engine import beam
from diag.probes.engine.kv_memory import KvMemory
from diag.probes.engine.plan import Emission, StepOutput
from diag.probes.engine.scheduler import Scheduler, Step
from diag.probes.engine.sequence import BeamEnd, Sequence, SequenceGroup, State


class Generation:
    def __init__(self, scheduler: Scheduler, memory: KvMemory) -> None:
        self._scheduler = scheduler
        self._memory = memory
        self._ids = count()

    def begin(self, group: SequenceGroup) -> None:
        """The first sequence computes the prompt; others are forked from it."""
        group.n_to_fork = group.request.sampling.width - 1
        self._scheduler.enter(self._added(group, 0))

    def take(self, step: Step, output: StepOutput, time_ns: int) -> list[SequenceGroup]:
        """The groups that have new tokens, in the order of the step; `time_ns`: when they came."""
        changed: dict[SequenceGroup, int] = {}
        emissions = iter(output.emissions)
        for sequence, chunk in zip(step.sequences, step.chunks, strict=True):
            sequence.n_computed += len(chunk.tokens)
            if chunk.sampling is None:
                self._memory.commit(sequence)
                continue
            emission, group = next(emissions), sequence.group
            n_new = self._searched(sequence, emission) if chunk.n_best else self._sampled(sequence, emission)
            if n_new:
                changed[group] = changed.get(group, 0) + n_new
        for group, n_tokens in changed.items():
            group.token_ns.append(time_ns)
            group.token_counts.append(n_tokens)
        return list(changed)

    def _added(self, group: SequenceGroup, index: int) -> Sequence:
        prompt = group.request.prompt
        sequence = Sequence(
            next(self._ids), group, group.request.sampling.of_sample(index), list(prompt), n_prompt=len(prompt)
        )
        group.sequences.append(sequence)
        return sequence

    # ---- samples ---------------------------------------------------------------------------------------------------

    def _sampled(self, sequence: Sequence, emission: Emission) -> int:
        n_new = _extend(sequence, emission)
        self._memory.commit(sequence)
        if sequence.group.n_to_fork:
            self._fork_samples(sequence)
        if sequence.finish_reason is not None:
            self._scheduler.leave(sequence)
        return n_new

    def _fork_samples(self, first: Sequence) -> None:
        """Each computes the prompt's last token again, to draw a first token of its own, and shares what is before."""
        group = first.group
        for index in range(1, 1 + group.n_to_fork):
            child = self._added(group, index)
            self._memory.fork(first, child, child.n_prompt - 1)
            child.state = State.RUNNING
            self._scheduler.enter(child)
        group.n_to_fork = 0

    # ---- beams -----------------------------------------------------------------------------------------------------

    def _searched(self, sequence: Sequence, emission: Emission) -> int:
        """A beam has its candidates; the last one brings all of them on. Tokens are out when the search is over."""
        group = sequence.group
        self._memory.commit(sequence)
        sequence.candidates = emission.best
        if not all(each.is_held for each in group.sequences):
            return 0
        self._advance(group)
        return sum(len(end.tokens) for end in group.beam_ends) if group.is_done else 0

    def _advance(self, group: SequenceGroup) -> None:
        sampling, beams = group.request.sampling, group.sequences
        width = sampling.beam_width
        chosen = beam.select(
            [each.log_probability for each in beams], [each.candidates for each in beams], width, sampling.stop_tokens
        )
        is_longest = len(beams[0].output) + 1 >= group.max_tokens
        ends = [(each, "stop") for each in chosen.ended] + [(each, "length") for each in chosen.alive if is_longest]
        for end, reason in ends:
            tokens = (*beams[end.beam].output, end.token)
            group.beam_ends.append(BeamEnd(tokens, end.log_probability, reason))
        group.n_to_fork = 0
        if is_longest or len(group.beam_ends) >= width or not chosen.alive:
            group.beam_ends = sorted(group.beam_ends, key=lambda end: -end.score)[:width]
            for each in beams:
                self._scheduler.leave(each)
        else:
            group.sequences = [self._child(beams[each.beam], each) for each in chosen.alive]
            self._scheduler.replace(beams, group.sequences)

    def _child(self, parent: Sequence, continuation: beam.Continuation) -> Sequence:
        """In the parent's blocks, as far as it has them: it may have been preempted meanwhile."""
        child = Sequence(
            next(self._ids),
            parent.group,
            parent.sampling,
            [*parent.tokens, continuation.token],
            parent.n_prompt,
            n_once_computed=parent.n_once_computed,
            state=parent.state,
            log_probability=continuation.log_probability,
        )
        self._memory.fork(parent, child, parent.n_computed)
        return child


def _extend(sequence: Sequence, emission: Emission) -> int:
    """New tokens up to a stop token or the longest output; what was drafted beyond is dropped. How many came on."""
    stops, n_before = sequence.sampling.stop_tokens, len(sequence.tokens)
    n_most = sequence.n_prompt + sequence.group.max_tokens
    for token in emission.tokens:
        sequence.tokens.append(token)
        if token in stops:
            sequence.finish_reason = "stop"
            break
        if len(sequence.tokens) == n_most:
            sequence.finish_reason = "length"
            break
    sequence.n_computed = min(sequence.n_computed + emission.n_accepted, len(sequence.tokens))
    return len(sequence.tokens) - n_before
