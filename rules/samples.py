"""Native functions by samples, for traces without GPU work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from diag.model import units
from diag.rules import activities
from diag.rules.engine import source_rule
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding, Subject
from diag.rules.main_thread import main_thread
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
    main = main_thread(trace)
    sampled = _sampled(trace, main.thread) if main else Intervals.empty()
    leaves = activities.leaves_within(trace.case, main.thread, sampled) if main else Counter()
    n = leaves.total()
    if main is None or n < limits["fewest"]:
        yield CannotTell(Subject(trace.source.id), f"only {n} samples of the main thread; a share needs more")
        return
    ranked = [(name, hits) for name, hits in leaves.most_common(6) if name is not None][:5]
    if not ranked:
        yield CannotTell(Subject(trace.source.id), "no sample of the main thread has a stack")
        return
    function, count = ranked[0]
    if count / n < limits["share"]:
        yield Clear(main.subject)
        return
    extent = sampled & main.window
    period_ns = extent.measure_ns / n
    told = activities.activity_of_stack([function])
    sql = _SQL.format(thread=main.thread.thread_id, start=sampled.span[0], end=sampled.span[1])
    yield Finding(
        title=f"Hot native code: {function}" + (f" ({told[0].label})" if told else ""),
        claim=f"{units.share(count / n)} of the main thread's samples ({count} of {n}, one every "
        f"{units.time(period_ns)} on average) are in {function}.",
        subject=main.subject,
        share=count / n,
        recoverable_ns=int(count * period_ns),
        confidence="medium",
        counterfactual=f"Were it free, the run would be about {units.time(count * period_ns)} shorter at most.",
        evidence=[
            Evidence(f"samples in {name}", hits, "count", "samples with this leaf", sql) for name, hits in ranked
        ],
        refute="Sample again at another rate: if the share changes by more than 1 / sqrt(samples), it was chance.",
        next=[told[0].do if told else "See who calls it: sample with call chains (nsys --backtrace=dwarf) or py-spy."],
        extent=extent,
    )


def _sampled(trace: Trace, thread: HostThread) -> Intervals:
    """From the first sample of the thread up to and with the last, cut to the scope."""
    times_ns = thread.samples.time_ns
    if not len(times_ns):
        return Intervals.empty()
    sampled = Intervals.single(int(times_ns[0]), int(times_ns[-1]) + 1)
    return sampled if trace.scope is None else sampled & trace.scope


_SQL = (
    "SELECT n.text, COUNT(*) FROM cpu_sample c JOIN stack k ON k.id = c.stack_id AND k.depth = 0 "
    "JOIN name n ON n.id = k.symbol_id WHERE c.thread_id = {thread:d} AND c.time_ns >= {start:d} "
    "AND c.time_ns < {end:d} GROUP BY 1 ORDER BY 2 DESC"
)
