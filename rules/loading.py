"""Loading of code and compilation after startup."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from diag.model import units
from diag.rules import pacing
from diag.rules.compilers import Compiler, any_compiler, compilers
from diag.rules.engine import device_rule, subject_of
from diag.rules.facts import FACTS
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding
from diag.rules.thresholds import Limits
from diag.timeline.device import DeviceTimeline
from diag.timeline.graphs import MAKES_INSTANCE, capturing
from diag.timeline.host import HostThread
from diag.timeline.intervals import Intervals
from diag.timeline.naming import where_named
from diag.timeline.ranges import OPEN_NS, Ranges
from diag.timeline.trace import Trace

_LOADING_CALL = re.compile(
    r"^(cuda|cu|hip)(Module(Load|GetFunction|GetGlobal)|Library(Load|GetKernel|GetModule)|KernelGetFunction)"
)
_COMPILING_CALL = re.compile(r"^cuLink(Add|Complete)|^hiprtc|^nvrtc")


@device_rule("load.steady", needs=("api",))
def loading_in_steady_state(trace: Trace, device: DeviceTimeline, limits: Limits) -> Iterator[Answer]:
    """Loading of code and compilation while the work runs.

    Asks      After startup, how long does the device wait for a host that loads modules or kernels, or compiles?
    Decides   For each launching thread: its calls that load modules or get functions from them, its stream captures
              and calls that instantiate graphs, what the driver reports on it of loading and JIT, and ranges in which a
              framework compiles (compilers.toml). Of that, the part after startup in which the device idles because
              this thread is late, or is inside the launching call. Fires when it takes `share` of the steady state.
    Matters   It is work that could have been done once, ahead: a step or request that meets it takes much longer.
    Do        Load kernels ahead (CUDA_MODULE_LOADING=EAGER, or launch each once), compile for the device's own
              architecture, warm up every shape, and find what makes the framework compile again.
    Refute    Run with CUDA_MODULE_LOADING=EAGER and every shape warmed up: if the device idles as long, it was not
              that.
    """
    startup = trace.startup_of(device)
    if not startup.is_told:
        yield CannotTell(subject_of(device), "steady state is not in sight: nothing repeats after the one-time work")
        return
    if not trace.source.captured("overhead"):
        what = "loading and JIT inside other calls"
        yield CannotTell(subject_of(device), f"{what}: {FACTS['overhead'].why_not(trace)}")
    waiting = _waiting(trace, device)
    least_ns = limits["share"] * max(startup.steady.measure_ns, 1)
    if (_union(waiting.values()) & startup.steady).measure_ns < least_ns:
        yield Clear(subject_of(device))
        return
    work = _one_time_work(trace, waiting)
    waited = {what: time & startup.steady for what, time in work.items()}
    together = _union(waited.values())
    if together.measure_ns < least_ns:
        yield Clear(subject_of(device))
        return
    share = together.measure_ns / startup.steady.measure_ns
    ranked = sorted((what for what in waited if waited[what]), key=lambda what: -waited[what].measure_ns)
    in_startup = _union(work.values()) & startup.time
    yield Finding(
        title=f"{ranked[0].does} while the device waits",
        claim=f"After startup the device waits {units.time(together.measure_ns)} ({units.share(share)} of the steady "
        f"state) for one-time work: {', '.join(_part(what, waited[what]) for what in ranked)}.",
        subject=subject_of(device),
        share=device.share(together),
        recoverable_ns=together.measure_ns,
        confidence="medium",
        counterfactual=f"Done once and ahead, the window would be at most {units.time(together.measure_ns)} shorter.",
        evidence=[
            *(Evidence(what.label, waited[what].measure_ns, "ns", what.formula) for what in ranked),
            Evidence("all of it", together.measure_ns, "ns", "union of these"),
            Evidence("share of steady state", share, "share", "all of it / (window - startup)"),
            Evidence("the same in startup", in_startup.measure_ns, "ns", "before steady state, which a run pays once"),
        ],
        refute="Run with CUDA_MODULE_LOADING=EAGER and every shape warmed up: if the device idles as long, it was not "
        "that.",
        next=list(dict.fromkeys(what.do for what in ranked)),
        extent=together,
    )


@dataclass(frozen=True)
class _Work:
    """One kind of work that need be done only once."""

    does: str
    label: str
    formula: str
    do: str


_LOADING = _Work(
    does="Code is loaded",
    label="loading of modules and kernels",
    formula="inside cuModuleLoad, cuLibraryGetKernel and the like, and what the driver reports of loading",
    do="Load ahead: set CUDA_MODULE_LOADING=EAGER, or launch each kernel once before the work begins.",
)
_JIT = _Work(
    does="The driver compiles kernels",
    label="compilation by the driver (JIT)",
    formula="inside cuLink and the like, and what the driver reports of its compiler",
    do="Compile for this device's architecture (nvcc -arch, TORCH_CUDA_ARCH_LIST), so that the driver finds no PTX to "
    "compile; keep its cache (CUDA_CACHE_PATH).",
)
_GRAPHS = _Work(
    does="CUDA graphs are made",
    label="capture and instantiation of graphs",
    formula="from the begin of a stream capture to its end, inside cudaGraphInstantiate and cudaGraphExecUpdate",
    do="Make graphs ahead, one for each shape, and keep them.",
)


def _of(compiler: Compiler) -> _Work:
    return _Work(
        does=f"{compiler.label} compiles",
        label=f"compilation by {compiler.label}",
        formula=f"inside ranges in which {compiler.label} compiles",
        do=compiler.do,
    )


def _waiting(trace: Trace, device: DeviceTimeline) -> Mapping[int, Intervals]:
    """By launching thread: idle time that ends with an operation of it, until that was launched and while it was."""
    account = trace.idle_of(device)
    return {
        thread_id: account.host_late_of.get(thread_id, Intervals.empty())
        | pacing.ended_by(device, account.launch_latency, device.calls.thread_id == thread_id)
        for thread_id in np.unique(pacing.launches_of(device).thread_id).tolist()
    }


def _one_time_work(trace: Trace, waiting: Mapping[int, Intervals]) -> Mapping[_Work, Intervals]:
    """The part of that time in which the thread did such work instead."""
    found: dict[_Work, Intervals] = {}
    for thread_id, idle in waiting.items():
        for what, time in _work_of(trace, trace.threads[thread_id]).items():
            found[what] = found.get(what, Intervals.empty()) | (idle & time)
    return found


def _reported(trace: Trace, thread: HostThread, *kinds: str) -> Intervals:
    """Time that the driver said it spent on a thread."""
    overhead = trace.overhead_of(thread.process_id, *kinds)
    return overhead.union(overhead.thread_id == thread.thread_id)


def _work_of(trace: Trace, thread: HostThread) -> Mapping[_Work, Intervals]:
    compiling = thread.ranges.select(where_named(any_compiler(), thread.ranges.name_id, thread.names))
    return {
        _LOADING: _inside(thread, _LOADING_CALL) | _reported(trace, thread, "module loading", "lazy loading"),
        _JIT: _inside(thread, _COMPILING_CALL) | _reported(trace, thread, "jit"),
        _GRAPHS: _inside(thread, MAKES_INSTANCE) | capturing(thread.calls, thread.names),
        **{_of(compiler): _in_ranges(compiling, compiler.ranges, thread.names) for compiler in compilers()},
    }


def _inside(thread: HostThread, pattern: re.Pattern[str]) -> Intervals:
    calls = thread.calls.select(where_named(pattern, thread.calls.name_id, thread.names))
    return Intervals.union_of(calls.start_ns, calls.end_ns)


def _in_ranges(ranges: Ranges, pattern: re.Pattern[str], names: Mapping[int, str]) -> Intervals:
    wanted = where_named(pattern, ranges.name_id, names) & (ranges.end_ns != OPEN_NS)
    return Intervals.union_of(ranges.start_ns[wanted], ranges.end_ns[wanted])


def _union(parts: Iterable[Intervals]) -> Intervals:
    together = Intervals.empty()
    for part in parts:
        together = together | part
    return together


def _part(what: _Work, time: Intervals) -> str:
    return f"{what.label} {units.time(time.measure_ns)}"
