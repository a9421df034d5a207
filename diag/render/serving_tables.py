"""The tables of serving runs: what was served, how long it took, and what the engine did."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from diag.model import units
from diag.model.serving_metrics import LATENCIES
from diag.render import phrases, source_phrases
from diag.render.table import NOT_CAPTURED, Table
from diag.rules.report import Report
from diag.rules.serving_rows import LatencyRow, ObjectiveRow, PromptBucketRow, ServingRunRow, StatedRow


def serving_runs(report: Report, top: int) -> Table:
    """Of many, an even choice that has the first and the last; without those of which nothing but figures is known."""
    rows = chosen([row for row in report.serving if row.requests_per_s is not None or row.sent is not None], top)
    has_goodput = any(row.goodput_per_s is not None for row in rows)
    goodput = ("goodput",) if has_goodput else ()
    return Table(
        "Serving",
        ("done", "not done", "req/s", *goodput, "out tok/s", "in flight", "in tok/s", "run"),
        [_run(report, row, has_goodput) for row in rows],
        name_column=7 if has_goodput else 6,
        notes=list(_run_notes(report, rows)),
        wraps_names=True,
    )


def _run(report: Report, row: ServingRunRow, has_goodput: bool) -> list[str]:
    return [
        _count(row.completed),
        _count(not_completed(row)),
        _number(row.requests_per_s),
        *([_number(row.goodput_per_s)] if has_goodput else []),
        _number(row.output_tokens_per_s),
        _number(row.in_flight),
        _number(row.input_tokens_per_s),
        ", ".join(filter(None, (row.name, *_load(row), _where(report, row)))),
    ]


def _load(row: ServingRunRow) -> Iterator[str]:
    """What a name does not say: how requests came."""
    if row.arrival:
        yield _ARRIVALS.get(row.arrival, row.arrival)
    for said in (_rate(row.rate_per_s), _flight(row.concurrency)):
        if said and said not in row.name:
            yield said


_ARRIVALS = {
    "closed": "closed loop",
    "poisson": "Poisson",
    "gamma": "gamma bursts",
    "constant": "constant rate",
    "trace": "trace",
    "at_once": "all at once",
}


def _rate(rate_per_s: float | None) -> str | None:
    return None if rate_per_s is None else f"{rate_per_s:g} requests/s"


def _flight(concurrency: int | None) -> str | None:
    return None if concurrency is None else f"{concurrency:,} in flight"


def _run_notes(report: Report, rows: Sequence[ServingRunRow]) -> Iterator[str]:
    if len(rows) < len(report.serving):
        yield phrases.more(len(report.serving), len(rows))
    for row in rows:
        if said := "; ".join(_row_notes(row)):
            yield f"{name_of(report, row)}: {said}." if len(report.serving) > 1 else f"{said[0].upper()}{said[1:]}."
    objectives = list(dict.fromkeys(row.objective for row in rows if row.goodput_per_s is not None and row.objective))
    if objectives:
        yield f"Goodput: completed requests a second with {objective(objectives[0])}."
    if rows:
        yield (
            "Rates and latencies are of completed requests; what was not done is in no mean. In flight: sent and not "
            "yet ended, on average."
        )


def objective(of: ObjectiveRow) -> str:
    """
    >>> objective(ObjectiveRow(500e6, None))
    'TTFT ≤ 500.0 ms'
    """
    limits = (("TTFT", of.ttft_ns), ("TPOT", of.tpot_ns))
    return " and ".join(f"{name} ≤ {units.time(ns)}" for name, ns in limits if ns is not None)


def _row_notes(row: ServingRunRow) -> Iterator[str]:
    outcomes = [
        f"{number:,} {outcome}"
        for outcome in ("rejected", "failed", "cancelled", "expired")
        if (number := getattr(row, outcome))
    ]
    if outcomes:
        yield f"{', '.join(outcomes)} of {units.count(row.sent or 0, 'request')}"
    if row.warm_up:
        yield f"{units.count(row.warm_up, 'request')} of warm-up left out"
    if row.stopped_early and row.completed:
        yield f"{units.share(row.stopped_early / row.completed)} stopped before the tokens that were asked for"
    if wrong := [check.name for check in row.checks if not check.holds]:
        yield f"figures contradict each other: {', '.join(wrong)} (diag explain serving.checks)"


# ---- latencies -----------------------------------------------------------------------------------------------------


def latencies(report: Report, top: int) -> Table:
    """Run below run for each latency, so that a sweep reads downwards."""
    rows = chosen(report.serving, top)
    found = [(row, of) for name in LATENCIES for row in rows for of in row.latencies if of.name == name]
    return Table(
        "Latencies of completed requests",
        ("P50", "P95", "P99", "mean", "count", "latency"),
        [_latency(report, row, of) for row, of in found],
        name_column=5,
        notes=list(_latency_notes(found)),
        wraps_names=True,
    )


def _latency(report: Report, row: ServingRunRow, of: LatencyRow) -> list[str]:
    times = (of.p50_ns, of.p95_ns, of.p99_ns, of.mean_ns)
    run = f", {name_of(report, row)}" if len(report.serving) > 1 else ""
    stated = " (stated)" if of.is_stated else ""
    return [*map(_time, times), _count(of.count), f"{of.title}{stated}{run}"]


def _latency_notes(found: Sequence[tuple[ServingRunRow, LatencyRow]]) -> Iterator[str]:
    names = {of.name for _, of in found}
    if any(of.is_stated for _, of in found):
        yield "Stated: by the file, which does not hold the requests themselves."
    terms = [said for name, said in _TERMS.items() if name in names]
    if terms:
        yield f"{'; '.join(terms)}."


_TERMS = {
    "send_delay": "send delay: sent after it should have been",
    "queue": "queue time: in the engine's queue until its first step",
    "ttft": "TTFT: to the first token",
    "tpot": "TPOT: per token after the first",
    "itl": "ITL: gaps between outputs",
    "e2e": "E2E: to the last token",
}


def latencies_by_prompt(report: Report, top: int) -> Table:
    """Buckets of about equally many requests, where prompts differ."""
    rows = chosen(report.serving, top)
    return Table(
        "Latencies by prompt length",
        ("TTFT P50", "P99", "TPOT P50", "P99", "E2E P50", "count", "prompt"),
        [_bucket(report, row, bucket) for row in rows for bucket in row.by_prompt],
        name_column=6,
        wraps_names=True,
    )


def _bucket(report: Report, row: ServingRunRow, of: PromptBucketRow) -> list[str]:
    times = (of.ttft_p50_ns, of.ttft_p99_ns, of.tpot_p50_ns, of.tpot_p99_ns, of.e2e_p50_ns)
    run = f", {name_of(report, row)}" if len(report.serving) > 1 else ""
    length = f"{of.least_tokens:,}" if of.least_tokens == of.most_tokens else f"{of.least_tokens:,}-{of.most_tokens:,}"
    return [*map(_time, times), _count(of.count), f"{length} tokens{run}"]


# ---- the engine ----------------------------------------------------------------------------------------------------


def kv_caches(report: Report, top: int) -> Table:
    rows = [(row, row.kv_cache) for row in chosen(report.serving, top) if row.kv_cache is not None]
    return Table(
        "KV cache of the engine",
        ("peak", "mean", "tail waste", "prefix hits", "preempted", "recomputed", "run"),
        [
            [
                _share(kv.peak_share),
                _share(kv.mean_share),
                _share(kv.tail_waste_share),
                _share(kv.prefix_hit_share),
                _count(kv.preemptions),
                _count(kv.recomputed_tokens),
                name_of(report, row),
            ]
            for row, kv in rows
        ],
        name_column=6,
        notes=[
            "Peak, mean: of the blocks, in use. Tail waste: room in used blocks that holds no token. Prefix hits: of "
            "prompt tokens. Recomputed: tokens, after preemption."
        ],
        wraps_names=True,
    )


def engine_steps(report: Report, top: int) -> Table:
    rows = [(row, row.engine_steps) for row in chosen(report.serving, top) if row.engine_steps is not None]
    padding = [
        f"{name_of(report, row)}: {units.share(steps.padding_share)} of the rows of CUDA graphs are padding."
        for row, steps in rows
        if steps.padding_share
    ]
    drafts = [
        f"{name_of(report, row)}: {units.share(steps.accepted_share)} of the drafted tokens are accepted."
        for row, steps in rows
        if steps.accepted_share is not None
    ]
    return Table(
        "Steps of the engine",
        ("steps", "batch", "schedule", "model", "sample", "output", "between", "run"),
        [
            [
                f"{steps.count:,}",
                _number(steps.mean_sequences),
                _share(steps.schedule_share),
                _share(steps.model_share),
                _share(steps.sample_share),
                _share(steps.output_share),
                _share(steps.between_share),
                name_of(report, row),
            ]
            for row, steps in rows
        ],
        name_column=7,
        notes=[
            *padding,
            *drafts,
            "Batch: sequences in a step, on average. Shares are of the time in which the engine had work; between: "
            "from a step to the next.",
        ],
        wraps_names=True,
    )


def stated_figures(report: Report, top: int) -> Table:
    """What files state that do not hold requests, but for what the other tables have of it."""
    found = [(row, of) for row in report.serving for of in row.stated if not _is_shown(of)]
    most = max(top, phrases.FEW_ROWS)
    several = len(report.serving) > 1
    return Table(
        "Figures that files state",
        ("value", "statistic", "figure"),
        [
            [
                units.quantity(int(of.value) if of.value.is_integer() else of.value, of.unit),
                of.statistic,
                f"{of.name.replace('_', ' ')} ({of.stated_as}){f', {name_of(report, row)}' if several else ''}",
            ]
            for row, of in found[:most]
        ],
        name_column=2,
        notes=[phrases.more(len(found), most)] if len(found) > most else [],
        wraps_names=True,
    )


def _is_shown(of: StatedRow) -> bool:
    """In other tables, or what their figures are worked out from. Bounds of a percentile are in none."""
    return of.name in _SHOWN and not of.statistic.endswith(("_from", "_to"))


_SHOWN = {
    *LATENCIES, "request_rate", "goodput", "output_token_rate", "input_token_rate", "total_token_rate", "completed",
    "concurrency", "input_tokens", "output_tokens", "duration",
}  # fmt: skip


# ---- cells ---------------------------------------------------------------------------------------------------------


def chosen(rows: Sequence[ServingRunRow], top: int) -> list[ServingRunRow]:
    """Of many, an even choice that has the first and the last, as loads of a sweep come in order."""
    most = max(top, phrases.FEW_ROWS)
    if len(rows) <= most:
        return list(rows)
    return [rows[round(at * (len(rows) - 1) / (most - 1))] for at in range(most)]


def name_of(report: Report, row: ServingRunRow) -> str:
    return ", ".join(filter(None, (row.name, _where(report, row))))


def _where(report: Report, row: ServingRunRow) -> str | None:
    """The file, where several hold runs."""
    are_several = len({each.source for each in report.serving}) > 1
    return source_phrases.short_name(report, row.source) if are_several else None


def not_completed(row: ServingRunRow) -> int | None:
    """Rejected, failed, cancelled and expired together."""
    return None if row.sent is None or row.completed is None else row.sent - row.completed


def _count(value: int | None) -> str:
    return NOT_CAPTURED if value is None else f"{value:,}"


def _number(value: float | None) -> str:
    """Three digits of what is small."""
    if value is None:
        return NOT_CAPTURED
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _time(ns: float | None) -> str:
    return NOT_CAPTURED if ns is None else units.time(ns)


def _share(value: float | None) -> str:
    return NOT_CAPTURED if value is None else units.share(value)


SERVING_TABLES = (serving_runs, latencies, latencies_by_prompt, kv_caches, engine_steps, stated_figures)
"""In reading order; those without rows have nothing to say."""
