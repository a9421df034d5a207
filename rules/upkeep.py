"""What a host thread does besides its work: page faults and Python's garbage collection."""

from __future__ import annotations

from collections.abc import Iterator

from diag.rules import activities, queries
from diag.rules.activities import activities as known
from diag.rules.finding import Answer, CannotTell, Clear, Evidence
from diag.rules.host_time import HostTime, Spent, finding, host_time_rule
from diag.rules.thresholds import Limits


@host_time_rule("host.page_faults", needs=("cpu_sample",))
def page_faults(time: HostTime, limits: Limits) -> Iterator[Answer]:
    """The operating system makes memory pages for a thread.

    Asks      How much of the time in which the launching thread keeps the device waiting (without GPU work: of the main
              thread's window) does it spend in page faults of host memory?
    Decides   Samples of the thread with the kernel's page-fault code in their stack x the usual distance between
              samples / window; fires at `share`, with a hundred samples at least. Where no sample names a function of
              the kernel, page faults are invisible and the rule cannot tell.
    Matters   The first touch of every 4 KiB costs a trip into the kernel, which clears the page: memory that is given
              back and taken again pays it again and again.
    Do        Reuse buffers, keep freed memory (jemalloc, tcmalloc, M_TRIM_THRESHOLD), huge pages, pinned pools.
    Refute    Count them: if `perf stat -e page-faults` shows few per step, the samples were of something else.
    """
    sampled = time.sampled(known()["fault_pages"])
    if not len(sampled.times_ns) and not time.trace.case.value(_NAMES_KERNEL, (time.trace.source.id,)):
        because = "no sample names a function of the operating system's kernel, and page faults are handled there"
        yield CannotTell(time.subject, f"{because} (perf record -g -e page-faults -- CMD shows them)")
        return
    if not sampled.decides:
        yield sampled.too_few
        return
    spent = Spent.as_sampled(sampled)
    if spent.share < limits["share"]:
        yield Clear(time.subject)
        return
    faults = known()["fault_pages"]
    yield finding(
        spent,
        doing=faults.label,
        claim=f"So say {sampled.in_words}.",
        evidence=list(sampled.evidence()),
        refute="Count them: if `perf stat -e page-faults` shows few per step, the samples were of something else.",
        do=[faults.do, "See which code touches new memory: perf record -g -e page-faults -- CMD"],
    )


@host_time_rule("host.gc", needs=("host_code",))
def garbage_collection(time: HostTime, limits: Limits) -> Iterator[Answer]:
    """Python collects garbage while the device or the program waits.

    Asks      How much of the time in which the launching thread keeps the device waiting (without GPU work: of the main
              thread's window) does it spend in Python's cyclic garbage collector?
    Decides   |union of the thread's ranges that are named so (gc.collect, "garbage collection")| / window; without such
              ranges, samples with the collector's functions in their stack x the usual distance between samples. Fires
              at `share`. Collections that Python starts by itself leave no range: without ranges and samples the rule
              cannot tell.
    Matters   A full collection visits every container object of the process, with the GIL held: tens to hundreds of
              milliseconds with a model and its optimiser loaded, at another step on every rank.
    Do        gc.disable() or gc.freeze() after start-up, gc.collect() every N steps on all ranks alike.
    Refute    Run with gc.disable(): if the same time is lost, it was not the collector.
    """
    collect = known()["collect_garbage"]
    inside = Spent.within(time, activities.time_in_ranges(time.thread, collect))
    sampled = time.sampled(collect)
    spent = inside if inside.ns else Spent.as_sampled(sampled)
    if spent.share < limits["share"]:
        if sampled.decides:
            yield Clear(time.subject)
        else:
            because = "collections that Python starts by itself leave no range, and there are too few samples"
            yield CannotTell(
                time.subject, f"{because} (nsys profile --sample=process-tree, or ranges from gc.callbacks)"
            )
        return
    if not inside.ns and not sampled.decides:
        yield sampled.too_few
        return
    yield finding(
        spent,
        doing=collect.label,
        claim="So say its ranges." if inside.ns else f"So say {sampled.in_words}.",
        evidence=[*_range_evidence(inside), *(sampled.evidence() if sampled.n_samples else ())],
        refute="Run with gc.disable(): if the same time is lost, it was not the collector.",
        do=[collect.do],
    )


def _range_evidence(inside: Spent) -> Iterator[Evidence]:
    if inside.ns:
        sql = queries.ranges(inside.time.trace, inside.time.thread.thread_id)
        formula = f"union of the ranges so named within {inside.time.in_words}"
        yield Evidence("in the garbage collector", inside.ns, "ns", formula, sql)


_NAMES_KERNEL = """
    SELECT EXISTS (
        SELECT 1
          FROM cpu_sample c
          JOIN stack k ON k.id = c.stack_id
          JOIN name n ON n.id = k.symbol_id
         WHERE c.source_id = ? AND k.is_kernel = 1 AND n.text NOT LIKE '0x%')
"""
