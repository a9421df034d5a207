"""Figures of a serving run that contradict each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from diag.model import units
from diag.rules.engine import run_subject, serving_rule
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding
from diag.rules.thresholds import Limits
from diag.serving.checks import Check, checks
from diag.serving.run import ServingRun

_ROWS = """
    SELECT number, name, phase, outcome, prompt_tokens, output_tokens, sent_ns, ended_ns, ttft_ns, e2e_ns
      FROM request
     WHERE run_id = {run_id:d}
     ORDER BY number
"""


@serving_rule("serving.checks")
def contradictions(runs: Sequence[ServingRun], limits: Limits) -> Iterator[Answer]:
    """Figures of a serving run that contradict each other.

    Asks      Do figures agree that were found in different ways: Little's law, E2E = TTFT + (n - 1) TPOT, tokens that
              arrived and those that are stated, tokens that steps computed and those that requests needed, requests
              that were sent and those that ended?
    Decides   Fires where both ways differ by more than the tolerance of that check, which says why it is so large: 0
              where both are counted, 1 % and 2 % where a file rounds or counts tokens again, 5 % and 10 % where a
              client reads its clock at other moments, 25 % for products of means (docs/serving.md).
    Matters   One of the two figures is wrong, and whatever is worked out from it.
    Do        See whether records are missing or twice, whether one clock was used for all times, and by which
              definition and tokenizer the client counts.
    Refute    The same load, measured by another client, gives the same figures: then they count different things.
    """
    for run in runs:
        made = checks(run)
        wrong = [check for check in made if not check.holds]
        if not made:
            yield CannotTell(run_subject(run), "no two of its figures were found in different ways")
        elif wrong:
            yield _contradicted(run, wrong)
        else:
            yield Clear(run_subject(run))


def _contradicted(run: ServingRun, wrong: Sequence[Check]) -> Finding:
    sql = _ROWS.format(run_id=run.id) if run.requests else None
    return Finding(
        title=f"Figures that contradict each other: {', '.join(check.name for check in wrong)}",
        claim=" ".join(map(_in_words, wrong)),
        subject=run_subject(run),
        level="info",
        confidence="high",
        counterfactual="Nothing would be faster; the figures would be surer.",
        evidence=[each for check in wrong for each in _evidence(check, sql)],
        refute="The same load, measured by another client, gives the same figures: then they count different things.",
        next=["Look whether records are missing or twice, and whether all times come from one clock."],
    )


def _in_words(check: Check) -> str:
    """Both figures, and how far apart they may be."""
    found, expected = (units.quantity(_whole(value, check), check.unit) for value in (check.found, check.expected))
    allowed = f"{units.share(check.tolerance)} tolerated" if check.tolerance else "they have to be equal"
    return f"{check.name}: {found} against {expected}, {units.share(check.deviation)} apart, {allowed}."


def _evidence(check: Check, sql: str | None) -> Iterator[Evidence]:
    for label, value in ((check.name, check.found), (f"{check.name}: expected", check.expected)):
        yield Evidence(label, _whole(value, check), check.unit, check.formula, sql)


def _whole(value: float, check: Check) -> float:
    return round(value) if check.unit in ("ns", "count") else value
