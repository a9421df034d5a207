"""What rules about loads share: whom they answer for, typical latencies, and the rows behind a figure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import wraps

from diag.model import units
from diag.model.serving_metrics import LATENCY_NAMES, Latency, latency
from diag.rules.engine import run_subject, serving_rule
from diag.rules.finding import Answer, CannotTell, Evidence
from diag.rules.thresholds import Limits
from diag.serving.run import ServingRun

LoadDecision = Callable[[ServingRun, Limits], Answer]

NO_REQUESTS = (
    "its file states figures of the whole and no single requests (diag probe serve writes them, vllm bench serve with "
    "--save-detailed)"
)


def load_rule(rule_id: str, *, needs_requests: bool = True) -> Callable[[LoadDecision], LoadDecision]:
    """Registers a rule that answers for each load by itself; without `needs_requests` it looks at stated figures."""

    def register(decide: LoadDecision) -> LoadDecision:
        @wraps(decide)
        def decide_all(runs: Sequence[ServingRun], limits: Limits) -> Iterator[Answer]:
            for run in runs:
                if needs_requests and not run.measured:
                    yield CannotTell(run_subject(run), NO_REQUESTS)
                else:
                    yield decide(run, limits)

        serving_rule(rule_id)(decide_all)
        return decide

    return register


# ---- figures -------------------------------------------------------------------------------------------------------


def typical(run: ServingRun, which: Latency) -> Evidence | None:
    """The median of completed requests in ns, else the median or mean that the file states; None without."""
    found = latency(run.requests, which)
    if found is not None:
        of = "gaps" if which == "itl" else "completed requests"
        column = "itl_ns" if which == "itl" else "ttft_ns, e2e_ns, output_tokens"
        formula = f"median of {found.count:,} {of}"
        return Evidence(f"{LATENCY_NAMES[which]} P50", round(found.p50), "ns", formula, request_rows(run, column))
    for statistic, name in (("p50", "P50"), ("mean", "mean")):
        if (stated := run.stated(which, statistic)) is not None and stated.unit == "ns":
            label, formula = f"{LATENCY_NAMES[which]} {name}", f"as the file states it: {stated.stated_as}"
            return Evidence(label, round(stated.value), "ns", formula, figure_rows(run))
    return None


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


def step_rows(run: ServingRun, *columns: str) -> str:
    return f"SELECT number, start_ns, end_ns, {', '.join(columns)} FROM engine_step WHERE run_id = {run.id:d}"


def figure_rows(run: ServingRun) -> str:
    return f"SELECT name, statistic, value, unit, stated_as FROM serving_figure WHERE run_id = {run.id:d} ORDER BY id"


def run_rows(*runs: ServingRun) -> str:
    ids = ", ".join(f"{run.id:d}" for run in runs)
    return (
        "SELECT id, label, model, arrival, rate_per_s, concurrency, n_requests, n_completed, duration_ns, engine "
        f"FROM serving_run WHERE id IN ({ids}) ORDER BY id"
    )
