"""The rule engine: what a rule is, how one is registered, and which exist. `diag.rules.running` runs them.

A rule is one function whose docstring is its documentation. It answers for a whole source (`@source_rule`), for each
(process, device) that has enough work (`@device_rule`), for each kernel that Nsight Compute measured
(`@kernel_rule`), for all that probes measured in one run (`@benchmark_rule`), for a workload as it was watched
(`@live_rule`), for the ranks of a job together (`@job_rule`), or for loads on a server (`@serving_rule`).
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from threading import RLock

from diag import plugins
from diag.errors import PluginError
from diag.launches.kernel import ProfiledKernel
from diag.launches.probe_results import ProbeResults
from diag.model.live_run import LiveRun
from diag.model.quantities import quantities
from diag.ranks.job import Job
from diag.rules import thresholds
from diag.rules.facts import FACTS
from diag.rules.finding import Answer, CannotTell, Subject
from diag.rules.thresholds import Limits
from diag.serving.run import ServingRun
from diag.timeline.device import FEWEST_OPERATIONS, DeviceTimeline
from diag.timeline.trace import Trace

SUBJECTS = (
    "capture",
    "idle", "launch", "graphs", "replays", "loading", "sync",
    "transfer", "transfer_link", "transfer_small", "transfer_sync", "transfer_repeat",
    "memory", "unified_memory",
    "streams", "stream_priority", "overlap",
    "kernels", "occupancy", "grid", "precision", "fusion", "counters",
    "steps", "host", "samples", "locks", "cores", "upkeep",
    "ncu_speed_of_light", "ncu_roofline", "ncu_issue_slots", "ncu_stalls", "ncu_divergence",
    "ncu_pipes", "ncu_tensor_cores", "ncu_fused", "ncu_fp64", "ncu_imbalance", "ncu_conditions",
    "ncu_coalescing", "ncu_bank_conflicts", "ncu_spills", "ncu_cache", "ncu_remote",
    "ncu_occupancy", "ncu_grid",
    "benchmark",
    "comm_wrong", "comm_bandwidth", "comm_fit", "comm_topology",
    "live_errors", "live_orphans", "live_memory", "live_clocks", "live_link",
    "live_host", "live_loader", "live_collective", "live_stacks", "live_cores",
    "ranks_capture", "ranks_late", "ranks_balance", "ranks_power", "comm_exposed", "comm_small", "comm_rate",
    "hang", "hang_setup", "hang_binding", "hang_alive", "hang_coverage",
    "nccl_transport", "nccl_topology", "nccl_network", "nccl_version", "nccl_warnings", "nccl_ras",
    "job_watchdog", "job_exit",
    "serving_checks",
    "serving_late_sends", "serving_overload", "serving_knee", "serving_errors", "serving_goodput", "serving_ttft",
    "serving_long_prompts", "serving_prefix", "serving_scaling", "serving_queue",
    "serving_itl", "serving_host", "serving_preemption", "serving_kv", "serving_batch", "serving_speculative",
    "serving_memory",
)  # fmt: skip
"""Modules with rules, in the order in which a reader should meet them."""

SECTIONS = {
    "Asks": "What it asks",
    "Decides": "How it decides",
    "Matters": "Why it matters",
    "Do": "What to do",
    "Refute": "What would refute it",
}


@dataclass(frozen=True)
class Rule:
    id: str
    title: str
    sections: Mapping[str, str]  # keys of SECTIONS
    module: str  # that it is written in
    needs: tuple[str, ...]

    @property
    def is_of_plugin(self) -> bool:
        return not self.module.startswith("diag.")


@dataclass(frozen=True)
class TraceRule(Rule):
    """About a timeline; `needs` are keys of FACTS."""

    decide: Callable[[Trace, Limits], Iterator[Answer]]
    host_only: bool = False


@dataclass(frozen=True)
class KernelRule(Rule):
    """About a kernel that Nsight Compute measured; `needs` are names of `diag.model.quantities`."""

    decide: Callable[[ProfiledKernel, Limits], Iterator[Answer]]


@dataclass(frozen=True)
class BenchmarkRule(Rule):
    """About what probes measured; it needs nothing that a benchmark may lack."""

    decide: Callable[[ProbeResults, Limits], Iterator[Answer]]


@dataclass(frozen=True)
class LiveRule(Rule):
    """About a workload as it was watched; it says itself what could not be read. `fewest` snapshots are needed."""

    decide: Callable[[LiveRun, Limits], Iterator[Answer]]
    fewest: int


@dataclass(frozen=True)
class JobRule(Rule):
    """About all ranks of a job together. It is asked only where an input holds one of `needs`, which are capabilities
    of sources; what else it would need it says itself.
    """

    decide: Callable[[Job, Limits], Iterator[Answer]]


@dataclass(frozen=True)
class ServingRule(Rule):
    """About all loads of a case together, as a sweep is judged by more than one; it says itself what was not seen."""

    decide: Callable[[Sequence[ServingRun], Limits], Iterator[Answer]]


@dataclass(frozen=True)
class LostRules(Rule):
    """In the place of the rules of a plug-in that cannot be loaded."""

    because: str


_REGISTRY: dict[str, Rule] = {}


SourceDecision = Callable[[Trace, Limits], Iterator[Answer]]
DeviceDecision = Callable[[Trace, DeviceTimeline, Limits], Iterator[Answer]]
KernelDecision = Callable[[ProfiledKernel, Limits], Iterator[Answer]]
BenchmarkDecision = Callable[[ProbeResults, Limits], Iterator[Answer]]
LiveDecision = Callable[[LiveRun, Limits], Iterator[Answer]]
JobDecision = Callable[[Job, Limits], Iterator[Answer]]
ServingDecision = Callable[[Sequence[ServingRun], Limits], Iterator[Answer]]


def source_rule(
    rule_id: str, *, needs: tuple[str, ...] = (), host_only: bool = False
) -> Callable[[SourceDecision], SourceDecision]:
    """Registers a rule that answers for a source. `needs` are keys of FACTS; `host_only`: only without GPU work."""

    def register(decide: SourceDecision) -> SourceDecision:
        _register(TraceRule(rule_id, *_documentation(rule_id, decide), needs, decide, host_only))
        return decide

    return register


def kernel_rule(rule_id: str, *, needs: tuple[str, ...] = ()) -> Callable[[KernelDecision], KernelDecision]:
    """Registers a rule that answers for each kernel that Nsight Compute measured.

    `needs` are quantities that the rule reads with `kernel.value`: where one has no value, the engine answers.
    """

    def register(decide: KernelDecision) -> KernelDecision:
        _register(KernelRule(rule_id, *_documentation(rule_id, decide), needs, decide))
        return decide

    return register


def benchmark_rule(rule_id: str) -> Callable[[BenchmarkDecision], BenchmarkDecision]:
    """Registers a rule that answers for the measurements of one benchmark."""

    def register(decide: BenchmarkDecision) -> BenchmarkDecision:
        _register(BenchmarkRule(rule_id, *_documentation(rule_id, decide), (), decide))
        return decide

    return register


FEWEST_SNAPSHOTS = 5
"""Shares of a shorter window say little: one reading would be a quarter of it."""


def live_rule(
    rule_id: str, *, fewest: int = FEWEST_SNAPSHOTS, needs: tuple[str, ...] = ()
) -> Callable[[LiveDecision], LiveDecision]:
    """Registers a rule that answers for a watched workload. `needs` names, for its page, the fields that it reads."""

    def register(decide: LiveDecision) -> LiveDecision:
        _register(LiveRule(rule_id, *_documentation(rule_id, decide), needs, decide, fewest))
        return decide

    return register


def job_rule(rule_id: str, *, needs: tuple[str, ...]) -> Callable[[JobDecision], JobDecision]:
    """Registers a rule that answers for a job. `needs` are capabilities of sources: one of them will do."""

    def register(decide: JobDecision) -> JobDecision:
        _register(JobRule(rule_id, *_documentation(rule_id, decide), needs, decide))
        return decide

    return register


def serving_rule(rule_id: str) -> Callable[[ServingDecision], ServingDecision]:
    """Registers a rule that answers for the loads of a case together."""

    def register(decide: ServingDecision) -> ServingDecision:
        _register(ServingRule(rule_id, *_documentation(rule_id, decide), (), decide))
        return decide

    return register


def device_rule(rule_id: str, *, needs: tuple[str, ...] = ()) -> Callable[[DeviceDecision], DeviceDecision]:
    """Registers a rule that answers for each (process, device). `needs` are keys of FACTS; GPU work is implied."""

    def register(decide: DeviceDecision) -> DeviceDecision:
        def decide_all(trace: Trace, limits: Limits) -> Iterator[Answer]:
            for device in trace.devices:
                if device.has_shares:
                    yield from decide(trace, device, limits)
                else:
                    yield CannotTell(subject_of(device), TOO_FEW.format(n=len(device.ops)))

        _register(TraceRule(rule_id, *_documentation(rule_id, decide), ("gpu", *needs), decide_all))
        return decide

    return register


TOO_FEW = f"too few GPU operations in the window for shares ({{n}}; {FEWEST_OPERATIONS} are needed)"


def _register(rule: Rule) -> None:
    if rule.id in _REGISTRY:
        raise RuntimeError(f"Two rules are called {rule.id}; was a module imported under two names?")
    _REGISTRY[rule.id] = rule


def _documentation(rule_id: str, decide: Callable[..., Iterator[Answer]]) -> tuple[str, dict[str, str], str]:
    title, sections = parse_documentation(decide.__doc__ or "")
    if missing := SECTIONS.keys() - sections.keys():
        raise RuntimeError(f"Rule {rule_id} lacks {', '.join(sorted(missing))} in its docstring.")
    return title, sections, decide.__module__


def parse_documentation(doc: str) -> tuple[str, dict[str, str]]:
    """Title and sections of a rule's docstring: a section starts with its key at the start of a line."""
    title, _, body = inspect.cleandoc(doc).partition("\n")
    parts = re.split(rf"^({'|'.join(SECTIONS)})\s+", body, flags=re.MULTILINE)
    texts = (" ".join(text.split()) for text in parts[2::2])
    return title.rstrip("."), dict(zip(parts[1::2], texts, strict=True))


def rules() -> Mapping[str, Rule]:
    """All rules by id, in reading order; those of plug-ins come last."""
    for subject in SUBJECTS:
        import_module(f"diag.rules.{subject}")
    with _LOADING:
        _load_plugins()
    return _REGISTRY


_LOADING = RLock()  # the terminal UI has two threads that may be the first to ask


@cache
def _load_plugins() -> None:
    """Of each plug-in all rules or none: half of them would look like all that it has to say."""
    for plugin in plugins.installed(plugins.RULES):
        before = dict(_REGISTRY)
        try:
            plugin.load()
            thresholds.of_plugin(plugin)
            with plugins.blamed(plugin.title):
                for rule in list(_REGISTRY.values())[len(before) :]:
                    _check_needs(rule)
        except PluginError as error:
            _REGISTRY.clear()
            _REGISTRY.update(before)
            lost = _lost(plugin, str(error))
            _REGISTRY[lost.id] = lost


def _check_needs(rule: Rule) -> None:
    """Raises ValueError for what nobody could say how to capture."""
    known = FACTS if isinstance(rule, TraceRule) else quantities() if isinstance(rule, KernelRule) else rule.needs
    if unknown := [need for need in rule.needs if need not in known]:
        raise ValueError(f"its rule {rule.id} needs {', '.join(unknown)}, which diag does not know")


def _lost(plugin: plugins.Plugin, because: str) -> LostRules:
    sections = {
        "Asks": f"Nothing. It stands for the rules of the plug-in {plugin.title}.",
        "Decides": f"None of its rules can be asked: {because}.",
        "Matters": "What these rules look for is not looked for.",
        "Do": f"Install a version of {plugin.package} that fits this diag, uninstall it, or set {plugins.SWITCH}=0.",
        "Refute": "diag explain lists the rules of the plug-in.",
    }
    title = f"The rules of the plug-in {plugin.title}, which cannot be loaded"
    return LostRules(f"plugin.{plugin.package}.{plugin.entry.name}", title, sections, plugin.module, (), because)


def trace_rule(rule_id: str) -> TraceRule:
    """One that judges timelines. Raises KeyError for any other."""
    rule = rules()[rule_id]
    if not isinstance(rule, TraceRule):
        raise KeyError(rule_id)
    return rule


def subject_of(device: DeviceTimeline, *, kernel: str | None = None) -> Subject:
    return Subject(
        source=device.source_id,
        process=device.pid,
        device=device.device,
        range=device.range_name,
        kernel=kernel,
        window=(device.start_ns, device.end_ns),
    )


def run_subject(run: ServingRun) -> Subject:
    return Subject(run.source_id, load=run.name)


def kernel_subject(kernel: ProfiledKernel) -> Subject:
    """The kernel on its device in the timeline where it has a place in one, else as it was profiled."""
    launch = kernel.launch
    if kernel.run is not None:
        about = subject_of(kernel.run.device, kernel=launch.name)
    else:
        about = Subject(launch.source_id, launch.pid, launch.device, launch.context, launch.stream, kernel=launch.name)
    return replace(about, configuration=kernel.configuration, launch=launch.label)
