"""How a comparison puts things into words, whatever the format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from diag.compare.changes import Amount, Answer, Change, Repeats
from diag.compare.comparison import Comparison
from diag.compare.conditions import TITLES, Condition
from diag.compare.findings import STANDINGS, FindingChange
from diag.compare.nccl import NcclDifference
from diag.compare.noise import ERROR, LEVEL, RUN_TO_RUN
from diag.compare.questions import Evidence
from diag.compare.recording import Recording, Side
from diag.model import units
from diag.render.phrases import whole

NOT_THERE = "-"

_ORDER: Sequence[Answer] = (
    "regressed",
    "improved",
    "new",
    "gone",
    "within noise",
    "cannot tell",
    "not comparable",
)


def signed_share(value: float | None) -> str:
    """
    >>> signed_share(0.2), signed_share(-0.035), signed_share(0.0), signed_share(None)
    ('+20.0 %', '−3.5 %', '0 %', '-')
    """
    if value is None:
        return NOT_THERE
    return f"{_sign(value)}{units.share(abs(value)) if abs(value) < 10 else f'{abs(value):,.0%}'.replace('%', ' %')}"


def signed_time(ns: float) -> str:
    """
    >>> signed_time(26_500_000), signed_time(-12), signed_time(0)
    ('+26.5 ms', '−12 ns', '0 ns')
    """
    return f"{_sign(ns)}{units.time(abs(ns))}"


def _sign(value: float) -> str:
    return "+" if value > 0 else "−" if value < 0 else ""


def time_of(amount: Amount | None) -> str:
    return NOT_THERE if amount is None else units.time(amount.total_ns)


def number(count: float) -> str:
    """
    >>> number(1200.0), number(2.25)
    ('1,200', '2.25')
    """
    return f"{count:,.0f}" if count == int(count) else f"{count:,.3g}"


# ---- verdict -------------------------------------------------------------------------------------------------------


def title(comparison: Comparison) -> str:
    change = comparison.headline.change
    said = f"{_capital(_headline_answer(change.answer))}: {comparison.headline.what}"
    if change.before is None and change.after is None and comparison.nccl is not None:
        return comparison.nccl.sentence
    if change.before is None and change.after is None:
        return f"{_capital(_headline_answer(change.answer))}: the two sides have no figure in common"
    if change.before is None or change.after is None:
        side, amount = ("before", change.before) if change.before else ("after", change.after)
        return f"{said} is only there {side}, {time_of(amount)}"
    return f"{said} {time_of(change.before)} → {time_of(change.after)} ({signed_share(change.ratio)})"


def nccl(comparison: Comparison) -> list[str]:
    """What differs in what NCCL made of the runs: the sentence where it is not the title, then each difference."""
    if comparison.nccl is None:
        return []
    said = [f"{each.what}{_at(each)}: {each.before} → {each.after}" for each in comparison.nccl.differences]
    return said if title(comparison) == comparison.nccl.sentence else [comparison.nccl.sentence, *said]


def _at(of: NcclDifference) -> str:
    return f" ({of.where})" if of.where else ""


def _headline_answer(answer: Answer) -> str:
    return "cannot tell" if answer in ("new", "gone") else answer


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def summary(comparison: Comparison) -> list[str]:
    """What the reader must know of the verdict: what stands against it, how sure it is, what times are those of."""
    return list(filter(None, (_against(comparison), _certainty(comparison), _scale(comparison), _allowed(comparison))))


def _against(comparison: Comparison) -> str:
    found = [(c, c.stands_against(comparison.headline.domain)) for c in comparison.conditions]
    named = [(condition, evidence) for condition, evidence in found if evidence]
    if not named:
        return ""
    what = "; ".join(f"{TITLES[c.name]} ({', '.join(each.what for each in evidence)})" for c, evidence in named)
    allow = " ".join(f"--allow {condition.name}" for condition, _ in named if condition.name != "metric")
    how = _ALONE if any(c.name == "metric" for c, _ in named) else f"If that is what you compare: {allow}."
    return f"The two sides differ in {what}. {how}"


_ALONE = (
    "Nsight Compute runs each launch alone, with its own clocks and mostly with empty caches: its times are never set "
    "against those of a run."
)


def _certainty(comparison: Comparison) -> str:
    """From what the noise is known, and what the change is within."""
    change, shift = comparison.headline.change, comparison.headline.change.shift
    if change.before is None or change.after is None:
        return ""
    if shift is None:
        return _without_noise(change.answer)
    sides = f"{shift.n_before} before and {shift.n_after} after"
    between = f"between {signed_time(shift.low_ns)} and {signed_time(shift.high_ns)}"
    sure = f"({100 * LEVEL:.0f} % interval; {_p(shift.p)}"
    if change.repeats == "runs":
        return f"Noise is that of runs, {sides}: the change lies {between} {sure})."
    return (
        f"Noise is that of {change.repeats} within one run, {sides}: the change lies {between} {sure} for more than "
        f"{_FLOOR}). {_NOT_MEASURED}"
    )


_FLOOR = f"{100 * RUN_TO_RUN:.0f} %"
_NOT_MEASURED = (
    f"What two runs differ by was not measured, and up to {_FLOOR} counts as noise: to measure it, name folders with "
    "repeats of each run."
)


def _without_noise(answer: Answer) -> str:
    if answer == "within noise":
        return f"Nothing repeats here that would tell the noise. {_NOT_MEASURED}"
    return "Noise is not known, as nothing repeats here: to measure it, name folders with repeats of each run."


def _p(p: float) -> str:
    """
    >>> _p(0.03), _p(0.0000001)
    ('p = 0.03', 'p < 0.001')
    """
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"


def _scale(comparison: Comparison) -> str:
    if comparison.per_step is None:
        return ""
    return f"Times and counts are those of a step ('{comparison.per_step}'), from its start to the start of the next."


def _allowed(comparison: Comparison) -> str:
    names = [TITLES[each.name] for each in comparison.conditions if each.is_allowed and each.answer == "differs"]
    return f"Allowed to differ: {', '.join(names)}." if names else ""


# ---- conditions ----------------------------------------------------------------------------------------------------


def condition(of: Condition) -> str:
    """Its answer, and what tells so: first what differs."""
    return f"{of.answer}: {TITLES[of.name]}{_allowed_to(of)}. {'. '.join(filter(None, _said(of)))}."


def _allowed_to(of: Condition) -> str:
    return " (allowed)" if of.is_allowed and of.answer == "differs" else ""


def _said(of: Condition) -> Iterator[str]:
    """What differs, what is alike, what ought to be known, and what differs without deciding anything."""
    counted = [each for each in of.evidence if each.counts]
    differing = [each for each in counted if each.answer == "differs"]
    alike = [each for each in counted if each.answer == "same" and not each.is_usual]
    wanting = [each for each in counted if each.answer == "unknown" and (each.is_needed or each.is_undecided)]
    besides = [each for each in of.evidence if not each.counts and each.answer == "differs"]
    yield _capital(_listed(differing))
    yield f"Alike: {_listed(alike)}" if alike and differing else _capital(_listed(alike))
    yield _capital(_listed(wanting))
    yield "" if differing or alike or wanting else "Nothing that was recorded tells"
    yield f"Besides: {_listed(besides)}" if besides else ""


def _listed(evidence: Sequence[Evidence]) -> str:
    return "; ".join(f"{each.what}: {each.said}{_NEITHER * each.is_undecided}" for each in evidence)


_NEITHER = ", which tells neither"


# ---- tables and findings -------------------------------------------------------------------------------------------


def tally(changes: Iterable[Change]) -> str:
    """How many changes have each answer.

    >>> tally([])
    'none'
    """
    numbers = Counter(change.answer for change in changes)
    return ", ".join(f"{numbers[answer]} {answer}" for answer in _ORDER if numbers[answer]) or "none"


def finding(change: FindingChange) -> str:
    about = "" if change.device is None else f", GPU {change.device}"
    shares = [units.share(each.recoverable_share) for each in (change.before, change.after) if each]
    could = any(each.recoverable_share for each in (change.before, change.after) if each)
    won = f"; at most {' → '.join(shares)} of {whole(change.share_of)} to win" if could else ""
    standing = "not looked for again" if change.standing == "not looked for" else change.standing
    return f"{standing}: {change.title}{about}{won} (rule {change.rule})"


def findings_that_moved(comparison: Comparison) -> list[FindingChange]:
    return [each for each in comparison.findings if each.standing != "known"]


def findings_tally(comparison: Comparison) -> str:
    numbers = Counter(each.standing for each in comparison.findings)
    return ", ".join(f"{numbers[standing]} {standing}" for standing in STANDINGS if numbers[standing])


def how_judged(comparison: Comparison) -> list[str]:
    """What the answers of the tables rest on."""
    kinds: tuple[Repeats, ...] = ("runs", "steps", "launches", "instances", "requests", "outputs")
    used = [each for each in kinds if any(change.repeats == each for change in _all_changes(comparison))]
    if not used:
        return ["Nothing repeats here: no table tells its noise."]
    ranks = "Student's t on the runs" if used == ["runs"] else f"ranks of {' and '.join(used)}"
    return [
        f"By {ranks}; of what a table calls changed, {100 * ERROR:.0f} % at most are expected to be chance. Cannot "
        "tell: what changed by more than noise may do, and repeats too little. New and gone: on one side only.",
        *([_TAILS] if comparison.serving and used != ["runs"] else []),
    ]


_TAILS = (
    "P99: by the order statistics between which it lies, for which a side needs 437 values. Requests that wait for "
    "each other are less sure than they look: name folders with repeats of each run."
)


def _all_changes(comparison: Comparison) -> list[Change]:
    of_ranges = [each.change for each in comparison.ranges]
    of_loads = [*comparison.serving.latencies, *comparison.serving.by_output] if comparison.serving else []
    of_launches = [each.change for each in comparison.launches]
    return [*comparison.figures, *comparison.kernels, *of_launches, *of_ranges, *of_loads]


# ---- what was read -------------------------------------------------------------------------------------------------


def side(of: Side, is_before: bool) -> str:
    """What the user named; a single recording with what is known of it."""
    name = "before" if is_before else "after"
    if len(of.runs) == 1:
        return f"{name}: {of.path}{_known(of.runs[0])}"
    return f"{name}: {of.path}, {units.count(len(of.runs), 'run')}"


def runs(of: Side) -> list[str]:
    """Each of several recordings."""
    return [f"{run.path}{_known(run)}" for run in of.runs] if len(of.runs) > 1 else []


def _known(of: Recording) -> str:
    made_by = [" ".join(filter(None, (each.tool or each.kind, each.tool_version))) for each in of.report.sources[:1]]
    more = f" and {units.count(len(of.report.sources) - 1, 'more input')}" if len(of.report.sources) > 1 else ""
    steps = f", {units.count(int(of.steps.periods.count or 0), 'step')} timed" if of.steps else ""
    return f" ({', '.join(made_by)}{more}{steps})"


def lacks(of: Side) -> list[str]:
    return list(dict.fromkeys(lack for run in of.runs for lack in run.lacks))
