"""The engine: requests go in, steps are made, tokens come out.

    engine = Engine(EngineConfig(), runner)
    group = engine.add(Request("a", prompt=(1, 2, 3)))
    engine.drain()
    group.outputs[0]

`add` and `cancel` may be called while another thread is in `step`.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from threading import RLock

from diag.errors import DiagError, InputError
from diag.model.serving_log import Outcome
from diag.probes.engine.admission import Overloaded, check_config, check_request, max_tokens
from diag.probes.engine.config import EngineConfig
from diag.probes.engine.drafters import Drafter, NoDrafter, PromptLookup
from diag.probes.engine.generation import Generation
from diag.probes.engine.journal import Journal, Sink, StepTimes
from diag.probes.engine.kv_memory import KvMemory
from diag.probes.engine.plan import Runner, StepOutput, StepPlan
from diag.probes.engine.scheduler import Scheduler, Step
from diag.probes.engine.sequence import Request, SequenceGroup, State
from diag.probes.engine.steady_clock import SteadyClock


class Engine:
    def __init__(
        self,
        config: EngineConfig,
        runner: Runner,
        *,
        clock: Callable[[], int] = time.monotonic_ns,
        sink: Sink = lambda _: None,
        drafter: Drafter | None = None,
        model: str = "",
        vocabulary: int | None = None,
    ) -> None:
        """`clock` returns ns, `sink` takes the log's records, `drafter` is prompt lookup unless said otherwise.

        `model` is part of what a prefix is known by. Tokens of prompts are below `vocabulary`, if that is given.
        Raises UsageError for settings with which nothing could run.
        """
        check_config(config)
        self.config = config
        self.memory = KvMemory(config, model)
        self.scheduler = Scheduler(
            config, self.memory, drafter or (PromptLookup() if config.n_draft_tokens else NoDrafter())
        )
        self.groups: dict[str, SequenceGroup] = {}  # that have not ended, by the id of their request
        self._deadlines_ns: dict[str, int] = {}
        self._generation = Generation(self.scheduler, self.memory)
        self._runner = runner
        self._journal = Journal(sink, self.scheduler, self.memory)
        self._clock = SteadyClock(clock)
        self._vocabulary = vocabulary
        self._lock = RLock()
        self._is_in_flight = False
        self._cancelled: list[SequenceGroup] = []  # while a step is in flight
        self._ended: list[SequenceGroup] = []  # since the last step
        self._unwritten: deque[SequenceGroup] = deque()  # that ended: written when all else is done, as a sink may fail
        self._n_added = 0

    @property
    def has_work(self) -> bool:
        return bool(self.groups)

    # ---- requests --------------------------------------------------------------------------------------------------

    def add(self, request: Request) -> SequenceGroup:
        """What the request becomes: its outputs grow with the steps, and `outcome` is None until it ends.

        Raises InputError for a request that can never be served, Overloaded while the queue is full. Both are logged
        as rejected, and leave nothing behind.
        """
        with self._lock:
            group = SequenceGroup(request, self._n_added, self._clock.now_ns(), max_tokens(request, self.config))
            self._n_added += 1
            try:
                self._check(request)
            except DiagError as error:
                self._close(group, "rejected", str(error))
                self._journal.request_refused(group)
                raise
            self.groups[request.id] = group
            if request.deadline_ns is not None:
                self._deadlines_ns[request.id] = request.deadline_ns
            self._generation.begin(group)
            self._journal.request_began(group)
            return group

    def cancel(self, request_id: str) -> bool:
        """Whether it was there to cancel. While a step is in flight its blocks stay, as the device may use them."""
        with self._lock:
            if (group := self.groups.get(request_id)) is None:
                return False
            self._cancelled.append(group)
            if not self._is_in_flight:
                self._apply_cancelled()
                self._write_ends()
            return True

    def _check(self, request: Request) -> None:
        if request.id in self.groups:
            raise InputError(f"A request {request.id!r} is served already. Give each one an id of its own.")
        check_request(request, self.config, self._vocabulary)
        n_waiting, most = len(self.scheduler.waiting), self.config.max_waiting
        if most is not None and n_waiting >= most:
            raise Overloaded(f"{n_waiting:,} requests wait, and no more may. Send request {request.id!r} again later.")

    # ---- steps -----------------------------------------------------------------------------------------------------

    def step(self) -> list[SequenceGroup]:
        """Makes one step. Returns the groups that have new tokens, or have ended since the last one.

        An error of the runner ends what it held as failed, and is raised; what waits goes on with the next step.
        Raises InputError where the clock has gone back, before the step begins.
        """
        with self._lock:
            self._clock.check()
            start_ns = self._clock.now_ns()
            self._expire(start_ns)
            step = self.scheduler.schedule()
            if step is None:
                if self.groups:
                    raise RuntimeError(f"Nothing can be scheduled of {len(self.groups)} requests: a bug of the engine.")
                self._write_ends()
                return self._took_ended()
            plan = self.scheduler.plan(step)
            scheduled_ns = self._clock.now_ns()
            for sequence in step.sequences:
                if sequence.group.scheduled_ns is None:
                    sequence.group.scheduled_ns = start_ns
            self._is_in_flight = True
        try:
            with self._journal.step_range(step.number):
                output = self._runner.run(plan)
            _check_output(plan, output)
        except BaseException as error:
            with self._lock:
                self._fail(error)
                self._write_ends()
            raise
        with self._lock:
            returned_ns = self._clock.now_ns()
            changed = self._take(step, output, returned_ns)
            times = StepTimes(start_ns, scheduled_ns, returned_ns, self._clock.now_ns())
            self._write_ends()
            self._journal.step_ended(step, plan, output, times)
            return changed

    def drain(self) -> None:
        """Steps until all requests have ended."""
        while self.has_work:
            self.step()

    def _take(self, step: Step, output: StepOutput, time_ns: int) -> list[SequenceGroup]:
        self._landed()
        changed = self._generation.take(step, output, time_ns)
        for group in changed:
            if group.is_done:
                self._end(group, "completed")
        self._apply_cancelled()
        return list(dict.fromkeys([*changed, *self._took_ended()]))

    def _landed(self) -> None:
        """The device no longer uses what the step in flight named."""
        self._is_in_flight = False
        self.memory.settle()

    def _took_ended(self) -> list[SequenceGroup]:
        ended, self._ended = self._ended, []
        return ended

    # ---- ends ------------------------------------------------------------------------------------------------------

    def _expire(self, now_ns: int) -> None:
        for request_id, deadline_ns in list(self._deadlines_ns.items()):
            if now_ns > deadline_ns:
                late_s = (now_ns - deadline_ns) / 1e9
                says = f"Its deadline had passed by {late_s:.3f} s when the next step began."
                self._end(self.groups[request_id], "expired", says)

    def _apply_cancelled(self) -> None:
        for group in self._cancelled:
            if group.outcome is None:  # else it ended in the step in flight
                self._end(group, "cancelled")
        self._cancelled.clear()

    def _fail(self, error: BaseException) -> None:
        """What the device holds of sequences that have blocks is not known any more: their requests end."""
        self._landed()
        text = f"{type(error).__name__}: {error}"
        for sequence in [*self.scheduler.running, *self.scheduler.swapped]:
            if sequence.group.outcome is None:
                self._end(sequence.group, "failed", text)
        self._apply_cancelled()

    def _end(self, group: SequenceGroup, outcome: Outcome, error: str | None = None) -> None:
        for sequence in group.sequences:
            if sequence.state is not State.FINISHED:
                self.scheduler.leave(sequence)
        self._close(group, outcome, error)
        del self.groups[group.request.id]
        self._deadlines_ns.pop(group.request.id, None)
        self._ended.append(group)
        self._unwritten.append(group)

    def _write_ends(self) -> None:
        while self._unwritten:
            self._journal.request_ended(self._unwritten[0])
            self._unwritten.popleft()

    def _close(self, group: SequenceGroup, outcome: Outcome, error: str | None) -> None:
        group.outcome, group.error, group.ended_ns = outcome, error, self._clock.now_ns()


def _check_output(plan: StepPlan, output: StepOutput) -> None:
    """Raises RuntimeError where a runner's answer does not fit its question."""
    asked = [chunk for chunk in plan.chunks if chunk.sampling]
    if len(asked) != len(output.emissions):
        raise RuntimeError(
            f"{len(asked)} chunks of step {plan.number} sample; the runner gave {len(output.emissions)}."
        )
    for chunk, each in zip(asked, output.emissions, strict=True):
        if (
            each.sequence_id != chunk.sequence_id
            or each.n_accepted > len(chunk.drafts)
            or len(each.tokens) != each.n_accepted + 1
            or (chunk.n_best and not each.best)
        ):
            raise RuntimeError(f"In step {plan.number} the runner answered {each} to {chunk}.")
