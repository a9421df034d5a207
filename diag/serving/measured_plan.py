"""What a case holds of a plan's figures: peaks of memory by phase, KV blocks, latencies, accepted drafts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from diag.model.card_budget import CardBudget
from diag.model.deployment import operating
from diag.model.plan_against import Line
from diag.model.plan_serving import Layout
from diag.model.plan_speculative import Speculation
from diag.model.serving_metrics import LATENCY_NAMES, Latency, latency, rates
from diag.model.speculative_gain import acceptance_of, tokens_per_verification
from diag.model.training_memory import Peaks
from diag.serving.run import ServingRun, serving_runs
from diag.store.case import Case
from diag.timeline.memory_peaks import DevicePeak, memory_peaks

NO_MEMORY = "the case has no memory events (record torch.cuda.memory._record_memory_history, or profile_memory=True)"
NO_PHASE = "no memory event of this phase has a stack that tells it"
NO_STEPS = "the case has no engine steps"
NOT_SAID = "neither its requests nor the figures of its file say it"
NO_BLOCKS = "its engine says nothing of blocks"


# ---- memory ----------------------------------------------------------------------------------------------------------


def fullest(case: Case) -> DevicePeak | None:
    """The device that held most; None without memory events."""
    return max(memory_peaks(case), key=lambda peak: peak.held_bytes, default=None)


def inference_lines(case: Case, budget: CardBudget) -> list[Line]:
    """Of the card that held most, and of the engine's blocks. The pool is planned to be allocated whole."""
    pool_bytes = budget.n_blocks * budget.block_tokens * budget.kv_token_bytes
    with_pool = budget.weights_bytes + pool_bytes
    with_graphs = with_pool + budget.graphs_bytes
    peak = fullest(case)
    phases = {
        "load": budget.weights_bytes,
        "kv cache": with_pool,
        "capture": with_graphs,
        "prefill": with_graphs + budget.workspace_bytes,
        "decode": with_graphs + budget.workspace_bytes,
        "forward": with_graphs + budget.workspace_bytes,
    }
    return [
        _held(peak, with_graphs + budget.workspace_bytes),
        *_of_phases(peak, phases),
        *_block_lines(case, budget.n_blocks),
    ]


def training_lines(case: Case, planned: Peaks) -> list[Line]:
    """Of the card that held most. Activations are complete at the end of forward."""
    peak = fullest(case)
    phases = {
        "forward": planned.start_of_backward,
        "backward": max(planned.start_of_backward, planned.optimizer),
        "optimizer": planned.optimizer,
    }
    return [_held(peak, planned.largest), *_of_phases(peak, phases)]


def _held(peak: DevicePeak | None, planned_bytes: float) -> Line:
    return Line("held at most", "bytes", planned_bytes, peak.held_bytes if peak else None, NO_MEMORY)


def _of_phases(peak: DevicePeak | None, planned: Mapping[str, float]) -> list[Line]:
    measured = peak.phases if peak else {}
    because = NO_PHASE if peak else NO_MEMORY
    return [
        Line(f"peak, {phase}", "bytes", n_bytes, measured.get(phase), because) for phase, n_bytes in planned.items()
    ]


def _block_lines(case: Case, n_blocks: int) -> list[Line]:
    runs = serving_runs(case)
    pools = [run.settings.n_blocks for run in runs if run.settings.n_blocks]
    used = [step.used_blocks for run in runs for step in run.steps if step.used_blocks is not None]
    because = NO_STEPS if not any(run.steps for run in runs) else NO_BLOCKS
    return [
        Line("blocks of the KV cache", "count", n_blocks, max(pools, default=None), NO_BLOCKS if runs else NO_STEPS),
        Line("blocks used at most", "count", n_blocks, max(used, default=None), because),
    ]


# ---- serving ---------------------------------------------------------------------------------------------------------

_PLANNED_LATENCIES: tuple[Latency, ...] = ("ttft", "tpot", "itl", "e2e")
Statistic = Literal["mean", "p50", "p99"]
_STATISTICS: Mapping[Statistic, str] = {"mean": "mean", "p50": "P50", "p99": "P99"}


def run_lines(run: ServingRun, layout: Layout) -> list[Line]:
    """The plan at the rate that the run completed: means, beside which P50 and P99 are only measured."""
    per_s = _completed_per_s(run)
    plan = operating(layout.replica, per_s / layout.n_replicas) if per_s else None
    times = {"ttft": plan.ttft_ns, "tpot": plan.tpot_ns, "itl": plan.tpot_ns, "e2e": plan.e2e_ns} if plan else {}
    lines = [Line("rate, most that meets it", "requests/s", layout.rate_per_s, per_s, NOT_SAID)]
    for which in _PLANNED_LATENCIES:
        measured = {statistic: _measured(run, which, statistic) for statistic in _STATISTICS}
        value = times.get(which, "cannot keep up" if per_s else "-")
        lines += [
            Line(
                f"{LATENCY_NAMES[which]}, {_STATISTICS[statistic]}",
                "ns",
                value if statistic == "mean" else "-",
                ns,
                NOT_SAID,
            )
            for statistic, ns in measured.items()
        ]
    decoding = plan.decoding * layout.n_replicas if plan else "cannot keep up" if per_s else "-"
    return [*lines, *_engine_lines(run, layout, decoding)]


def _completed_per_s(run: ServingRun) -> float | None:
    """Of its requests; else as the file states, or as follows from what it states."""
    if run.completed and run.duration_ns:
        return rates(run.requests, run.duration_ns).requests_per_s
    if (stated := run.stated("request_rate", "value") or run.stated("request_rate", "mean")) is not None:
        return stated.value
    return run.n_completed * 1e9 / run.duration_ns if run.n_completed and run.duration_ns else None


def _measured(run: ServingRun, which: Latency, statistic: Statistic) -> float | None:
    """Of its requests; else as the file states it."""
    if (of := latency(run.requests, which)) is not None:
        return {"mean": of.mean, "p50": of.p50, "p99": of.p99}[statistic]
    stated = run.stated(which, statistic)
    return stated.value if stated else None


def _engine_lines(run: ServingRun, layout: Layout, decoding: float | str) -> list[Line]:
    steps = [step for step in run.steps if step.n_decodes]
    spent_ns = sum(step.duration_ns for step in steps)
    mean = sum(step.n_decodes * step.duration_ns for step in steps) / spent_ns if spent_ns else None
    used = [step.used_blocks for step in run.steps if step.used_blocks is not None]
    preempted = sum(step.n_preempted for step in run.steps) if run.steps else None
    pool = layout.replica.budget.n_blocks
    return [
        Line("decoding at once, mean", "sequences", decoding, mean, NO_STEPS),
        Line("blocks used at most", "count", pool, max(used, default=None), NO_BLOCKS if run.steps else NO_STEPS),
        Line("preemptions", "count", 0, preempted, NO_STEPS),
        Line("requests completed", "count", "-", len(run.completed) or run.n_completed, NOT_SAID),
    ]


# ---- speculation -----------------------------------------------------------------------------------------------------


def speculation_lines(runs: Sequence[ServingRun], of: Speculation) -> list[Line]:
    """Of all steps that drafted something, as if each draft had K tokens."""
    steps = [step for run in runs for step in run.steps if step.drafted_tokens]
    drafted, accepted = sum(step.drafted_tokens for step in steps), sum(step.accepted_tokens for step in steps)
    because = "the case has no engine step that drafted tokens"
    tokens = tokens_per_verification(of.acceptance, of.drafted)
    share = accepted / drafted if drafted else None
    return [
        Line("drafted tokens accepted", "share", (tokens - 1) / of.drafted, share, because),
        Line(
            "acceptance of each, α", "share", of.acceptance,
            acceptance_of(accepted, drafted, of.drafted) if drafted else None, because,
        ),
        Line("tokens a verification", "tokens", tokens, None if share is None else 1 + share * of.drafted, because),
    ]  # fmt: skip
