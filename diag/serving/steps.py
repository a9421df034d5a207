"""The steps of an engine while a run was measured, as columns of numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from diag.model.serving_metrics import Nanoseconds, end_ns
from diag.serving.run import EngineStep, ServingRun
from diag.timeline.intervals import Intervals

Chosen = NDArray[np.bool_]
"""(steps,): some of them."""


@dataclass(frozen=True, eq=False)
class Steps:
    """In the order in which they began; arrays are (steps,)."""

    run: ServingRun
    rows: tuple[EngineStep, ...]
    _columns: dict[str, Nanoseconds] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, run: ServingRun) -> Steps:
        """From the first measured request that was sent to the last that ended; all where no request has times.

        Steps that took no time were not timed, and are left out.
        """
        sent = [each.sent_ns for each in run.measured if each.sent_ns is not None]
        ended = [end for each in run.measured if (end := end_ns(each)) is not None]
        timed = [step for step in run.steps if step.duration_ns > 0]
        rows = sorted(timed, key=lambda step: (step.start_ns, step.number))
        if sent and ended:
            first_ns, last_ns = min(sent), max(ended)
            rows = [step for step in rows if step.end_ns > first_ns and step.start_ns < last_ns]
        return cls(run, tuple(rows))

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, name: str) -> Nanoseconds:
        """A column of `engine_step`; what is not known counts as 0."""
        if name not in self._columns:
            self._columns[name] = np.array([getattr(row, name) or 0 for row in self.rows], np.int64)
        return self._columns[name]

    def tells(self, *names: str) -> bool:
        """Whether every step has these columns."""
        return all(getattr(row, name) is not None for name in names for row in self.rows)

    def has(self, name: str) -> Chosen:
        return np.array([getattr(row, name) is not None for row in self.rows], bool)

    @cached_property
    def start_ns(self) -> Nanoseconds:
        return self["start_ns"]

    @cached_property
    def end_ns(self) -> Nanoseconds:
        return self["end_ns"]

    @property
    def duration_ns(self) -> Nanoseconds:
        return self.end_ns - self.start_ns

    @property
    def window(self) -> tuple[int, int]:
        """From the first start to the last end. Needs a step."""
        return int(self.start_ns[0]), int(self.end_ns.max())

    @property
    def window_ns(self) -> int:
        start_ns, end_ns = self.window
        return end_ns - start_ns

    @cached_property
    def decodes_alone(self) -> Chosen:
        """Whether it decoded, and computed no prompt."""
        return np.asarray((self["n_decodes"] > 0) & (self["prefill_tokens"] == 0))

    @cached_property
    def left_work(self) -> Chosen:
        """Whether sequences ran, waited or were swapped out when the step ended."""
        return np.asarray(self["n_running"] + self["n_waiting"] + self["n_swapped"] > 0)

    @cached_property
    def between_ns(self) -> Nanoseconds:
        """Since the end of the step before, while it had left work; 0 for the first and after a time without work."""
        gaps = np.maximum(self.start_ns[1:] - np.maximum.accumulate(self.end_ns)[:-1], 0)
        return np.concatenate(([0], np.where(self.left_work[:-1], gaps, 0))).astype(np.int64)

    @cached_property
    def lasting_ns(self) -> Nanoseconds:
        """For how long what a step left behind stayed so: to the end of the next step, or its own for the last."""
        return np.maximum(np.append(self.end_ns[1:] - self.end_ns[:-1], self.duration_ns[-1:]), 0)

    @cached_property
    def busy(self) -> Intervals:
        """While the engine had work: steps, and what lies between two of which the first left work."""
        return Intervals.union_of(self.start_ns - self.between_ns, self.end_ns)

    @cached_property
    def model(self) -> Intervals:
        """While the model ran, as the parts of a step follow each other."""
        begin = self.start_ns + self["schedule_ns"]
        return Intervals.union_of(begin, begin + self["model_ns"])

    def after(self, chosen: Chosen) -> Intervals:
        """The time for which what these steps left behind stayed so."""
        ends = self.end_ns[chosen]
        return Intervals.union_of(ends, ends + self.lasting_ns[chosen]).clip(*self.window)

    def during(self, chosen: Chosen) -> Intervals:
        return Intervals.union_of(self.start_ns[chosen], self.end_ns[chosen])
