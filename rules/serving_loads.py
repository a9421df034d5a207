"""What rules about loads share: whom they answer for, typical latencies, and the rows behind a figure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import wraps
from itertools import groupby

from diag.model import units
from diag.model.serving_metrics import LATENCY_NAMES, Latency, latency
from diag.rules.engine import run_subject, serving_rule
from diag.rules.finding import Answer, CannotTell, Evidence, Subject
from diag.rules.thresholds import Limits
from diag.serving.alike import tokens_of
from diag.serving.run import ServingRun

LoadDecision = Callable[[ServingRun, Limits], Answer]

NO_REQUESTS = (
    "its file states figures of the whole and no single requests (diag probe serve writes them, vllm bench serve with "
    "--save-detailed)"
)

AT_ONCE = "all requests came at once: each waits for those before it, whatever the server does; send them at a rate"


def load_rule(rule_id: str, *, needs_requests: bool = True) -> Callable[[LoadDecision], LoadDecision]:
    """Registers a rule that answers for each load by itself; without `needs_requests` it looks at stated figures."""

    def register(decide: LoadDecision) -> LoadDecision:
        @wraps(decide)
        def decide_all(runs: Sequence[ServingRun], limits: Limits) -> Iterator[Answer]:
            def answer(run: ServingRun) -> Answer:
                if needs_requests and not run.measured:
                    return CannotTell(run_subject(run), NO_REQUESTS)
                return decide(run, limits)

            return for_each(runs, answer)

        serving_rule(rule_id)(decide_all)
        return decide

    return register


def for_each(runs: Sequence[ServingRun], answer: Callable[[ServingRun], Answer | None]) -> Iterator[Answer]:
    """The answers that there are; where one reason keeps all loads of a source from being judged, it is said once."""
    for source, of in groupby(runs, key=lambda run: run.source_id):
        answers = [each for each in map(answer, of) if each is not None]
        reasons = {each.because if isinstance(each, CannotTell) else None for each in answers}
        if len(answers) > 1 and len(reasons) == 1 and None not in reasons:
            yield replace(answers[0], subject=Subject(source))
        else:
            yield from answers


# ---- figures -------------------------------------------------------------------------------------------------------


def typical(run: ServingRun, which: Latency) -> Evidence | None:
    """The median of completed requests in ns, else the median or mean that the file states; None without."""
    found = latency(run.requests, which)
    if found is not None:
        of = "gaps" if which == "itl" else "completed requests"
        column = "itl_ns" if which == "itl" else "ttft_ns, e2e_ns, output_tokens"
        formula = f"median of {found.count:,} {of}"
        return Evidence(f"{LATENCY_NAMES[which]} P50", round(found.p50), "ns", formula, request_rows(run, column))
    return _stated(run, which, "p50") or _stated(run, which, "mean") or (_by_tokens(run) if which == "e2e" else None)


def mean_e2e(run: ServingRun) -> Evidence | None:
    """As `typical`, where the mean is wanted: in a queue that grows it is half of the longest wait."""
    found = latency(run.requests, "e2e")
    if found is not None:
        formula = f"mean of {found.count:,} completed requests"
        return Evidence("E2E mean", round(found.mean), "ns", formula, request_rows(run, "e2e_ns"))
    return _stated(run, "e2e", "mean") or _by_tokens(run) or _stated(run, "e2e", "p50")


def _stated(run: ServingRun, which: Latency, statistic: str) -> Evidence | None:
    stated = run.stated(which, statistic)
    if stated is None or stated.unit != "ns":
        return None
    label = f"{LATENCY_NAMES[which]} {statistic.replace('p', 'P')}"
    formula = f"as the file states it: {stated.stated_as}"
    return Evidence(label, round(stated.value), "ns", formula, figure_rows(run))


def _by_tokens(run: ServingRun) -> Evidence | None:
    """E2E = TTFT + (n - 1) TPOT, which holds of means as well as n and TPOT do not go together."""
    ttft, tpot, n = run.stated("ttft", "mean"), run.stated("tpot", "mean"), tokens_of(run, "output_tokens")
    if ttft is None or tpot is None or n is None or {ttft.unit, tpot.unit} != {"ns"}:
        return None
    value = round(ttft.value + max(n - 1, 0) * tpot.value)
    return Evidence("E2E mean", value, "ns", f"mean TTFT + (n - 1) mean TPOT, n = {n:.1f} tokens", figure_rows(run))


def per_s(rate: float) -> str:
    """
    >>> per_s(3.8723), per_s(16.0), per_s(0.04)
    ('3.87 requests/s', '16 requests/s', '0.04 requests/s')
    """
    return units.quantity(rate, "requests/s")


# ---- rows ----------------------------------------------------------------------------------------------------------


def request_rows(run: ServingRun, *columns: str, where: str = "1") -> str:
    """SQL of the requests that were judged; `where` is this program's own words."""
    return (
        f"SELECT number, {', '.join(columns)} FROM request WHERE run_id = {run.id:d} AND phase = 'measured' "
        f"AND {where} ORDER BY number"
    )


def every_step_rows(run: ServingRun, *columns: str) -> str:
    """SQL of all steps of its engine; `serving_steps.step_rows` is of those that were judged."""
    return f"SELECT number, start_ns, end_ns, {', '.join(columns)} FROM engine_step WHERE run_id = {run.id:d}"


def figure_rows(run: ServingRun) -> str:
    return f"SELECT name, statistic, value, unit, stated_as FROM serving_figure WHERE run_id = {run.id:d} ORDER BY id"


def run_rows(*runs: ServingRun) -> str:
    ids = ", ".join(f"{run.id:d}" for run in runs)
    return (
        "SELECT id, label, model, arrival, rate_per_s, concurrency, n_requests, n_completed, duration_ns, engine "
        f"FROM serving_run WHERE id IN ({ids}) ORDER BY id"
    )
