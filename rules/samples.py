"""Native functions by samples, for traces without GPU work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from diag.model import units
from diag.rules import activities
from diag.rules.engine import source_rule
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding, Subject
from diag.rules.thresholds import Limits
from diag.timeline.host import HostThread
from diag.timeline.intervals import Intervals
from diag.timeline.trace import Trace


@source_rule("host.samples", needs=("cpu_sample",), host_only=True)
def hot_native_code(trace: Trace, limits: Limits) -> Iterator[Answer]:
    """Native functions by self time, from samples (traces without GPU work).

    Asks      Which function was the main thread running when it was sampled?
    Decides   Share of the thread's samples whose leaf is the function; an unresolved leaf counts for its library. Fires
              for the largest at `share`, with `fewest` samples at least.
    Matters   Samples see what no range names: the interpreter, the C library, memory copies.
    Do        Make this code cheaper, call it less often, or move it off the main thread.
    Refute    Sample again at another rate: a true share stays the same within 1 / sqrt(samples).
    """
    thread = None if trace.main_thread is None else trace.threads[trace.main_thread]
    leaves = Counter[str | None]() if thread is None else _leaves(trace, thread)
    n = leaves.total()
    del leaves[None]
    if thread is None or n < limits["fewest"]:
        yield CannotTell(Subject(trace.source.id), f"only {n} samples of the main thread; a share needs more")
        return
    if not leaves:
        yield CannotTell(Subject(trace.source.id), "no sample of the main thread has a stack")
        return
    times_ns = thread.samples.time_ns
    window = Intervals.single(int(times_ns[0]), int(times_ns[-1]))
    subject = Subject(trace.source.id, process=trace.process_of(thread.thread_id)[0], window=window.span)
    ranked = [(name, hits) for name, hits in leaves.most_common(5) if name is not None]
    function, count = ranked[0]
    if count / n < limits["share"]:
        yield Clear(subject)
        return
    period_ns = window.measure_ns / n
    told = activities.activity_of_stack([function])
    yield Finding(
        title=f"Hot native code: {function}" + (f" ({told[0].label})" if told else ""),
        claim=f"{units.share(count / n)} of the main thread's samples ({count} of {n}, one every "
        f"{units.time(period_ns)} on average) are in {function}.",
        subject=subject,
        share=count / n,
        recoverable_ns=int(count * period_ns),
        confidence="medium",
        counterfactual=f"Were it free, the run would be about {units.time(count * period_ns)} shorter at most.",
        evidence=[
            Evidence(f"samples in {name}", hits, "count", "samples with this leaf", _SQL) for name, hits in ranked
        ],
        refute="Sample again at another rate: if the share changes by more than 1 / sqrt(samples), it was chance.",
        next=[told[0].do if told else "See who calls it: sample with call chains (nsys --backtrace=dwarf) or py-spy."],
        extent=window,
    )


def _leaves(trace: Trace, thread: HostThread) -> Counter[str | None]:
    """How many samples of the thread in scope have each leaf; None stands for those without a stack."""
    times_ns, stack_ids = thread.samples.time_ns, thread.samples.stack_id
    if trace.scope is not None:
        stack_ids = stack_ids[trace.scope.contains(times_ns)]
    return Counter(activities.leaf_of(trace.case, stack_id) for stack_id in stack_ids.tolist())


_SQL = (
    "SELECT n.text, COUNT(*) FROM cpu_sample c JOIN stack k ON k.id = c.stack_id AND k.depth = 0 "
    "JOIN name n ON n.id = k.symbol_id GROUP BY 1 ORDER BY 2 DESC"
)
