"""Requests that were not served: failed, refused, or sent again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from diag.model import units
from diag.model.serving_metrics import ServedRequest, counts, end_ns
from diag.rules.engine import run_subject
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding, Severity
from diag.rules.serving_loads import NO_REQUESTS, every_step_rows, figure_rows, load_rule, request_rows, run_rows
from diag.rules.thresholds import Limits
from diag.serving.run import ServingRun


@load_rule("serving.errors", needs_requests=False)
def errors(run: ServingRun, limits: Limits) -> Answer:
    """Requests fail, or end past their deadline.

    Asks      Which share of the requests that were sent came to nothing, and what was said of them?
    Decides   share = (failed + expired) / sent. Fires at `share`, and is critical at `critical`. Where a file gives
              numbers alone, those that did not complete count, whatever became of them.
    Matters   Latencies are of the requests that completed: a server that drops what is slow looks fast. Failed
              requests are in no mean here, so that this share belongs beside every latency.
    Do        Read what the most frequent error says; look into the server's log at the time of the first. Time-outs
              say that the queue is longer than clients wait: bound it and reject at once.
    Refute    The same requests, sent alone, fail as well: then it is they, and not the load.
    """
    subject = run_subject(run)
    if run.measured:
        of = counts(run.requests)
        if of.error_share < limits["share"]:
            return Clear(subject)
        return _errors(run, [each for each in run.measured if each.outcome in ("failed", "expired")], limits)
    lost = _lost(run)
    if lost is None:
        return CannotTell(subject, NO_REQUESTS)
    return Clear(subject) if float(lost.value) < limits["share"] else _did_not_complete(run, lost, limits)


def _lost(run: ServingRun) -> Evidence | None:
    """What a file states alone; None where it states neither what failed nor how many there were."""
    if run.n_completed is None:
        return None
    failed = run.stated("failed", "value")
    if failed is not None and run.n_completed + failed.value > 0:
        share = failed.value / (run.n_completed + failed.value)
        return Evidence("errors", share, "share", "failed / (completed + failed), as stated", figure_rows(run))
    if not run.n_requests:
        return None
    share = max(run.n_requests - run.n_completed, 0) / run.n_requests
    return Evidence("errors", share, "share", "1 - completed / requests, as stated", run_rows(run))


def _errors(run: ServingRun, lost: Sequence[ServedRequest], limits: Limits) -> Finding:
    said = Counter(each.error or each.finish_reason or each.outcome for each in lost)
    (most, n_most), *_ = said.most_common(1)
    share, sql = len(lost) / len(run.measured), request_rows(run, "outcome", "sent_ns", "ended_ns", "error")
    kinds = f" There are {len(said):,} kinds of them." if len(said) > 1 else ""
    return Finding(
        title=f"{units.share(share)} of the requests fail",
        claim=f"Of {units.count(len(run.measured), 'request')} {len(lost):,} failed or expired; most often "
        f"({n_most:,} times): {most}.{kinds}",
        subject=run_subject(run),
        level=_level(share, limits),
        counterfactual="Latencies of this run leave them out; with them served it would have done more work.",
        evidence=[
            Evidence("errors", share, "share", "(failed + expired) / sent, measured requests", sql),
            Evidence("failed", sum(each.outcome == "failed" for each in lost), "count", "outcome 'failed'", sql),
            Evidence("expired", sum(each.outcome == "expired" for each in lost), "count", "outcome 'expired'", sql),
            Evidence("most frequent", most, "text", "error, or else how it ended", sql),
        ],
        refute="The same requests, sent alone, fail as well.",
        next=["Look into the server's log at the time of the first.", "Send the failed requests again, one by one."],
    )


def _did_not_complete(run: ServingRun, lost: Evidence, limits: Limits) -> Finding:
    share = float(lost.value)
    return Finding(
        title=f"{units.share(share)} of the requests did not complete",
        claim=f"{units.count(run.n_completed or 0, 'request')} completed, {units.share(share)} of all did not; the "
        "file does not say what became of them.",
        subject=run_subject(run),
        level=_level(share, limits),
        confidence="medium",
        counterfactual="Latencies of this run leave them out; with them served it would have done more work.",
        evidence=[lost],
        refute="They were refused by an admission limit, or cancelled by the client.",
        next=["Run it again with single requests recorded, and read what is said of those that fail."],
    )


def _level(share: float, limits: Limits) -> Severity:
    return "critical" if share >= limits["critical"] else "warning"


@load_rule("serving.empty_answers")
def empty_answers(run: ServingRun, limits: Limits) -> Answer:
    """Requests that count as completed and brought no token.

    Asks      Which share of the requests that completed have an answer without a single token?
    Decides   share = completed with 0 output tokens / completed. Fires at `share`.
    Matters   They count in requests per second, and clients that write a TTFT of 0 for them make its mean and its
              median better than they were. Behind them may be an error that the client did not see in the stream, or
              prompts that the server refused politely.
    Do        Send some of them again and look at the raw stream; compare servers by output tokens per second.
    Refute    The prompts ask for it: the first token that the model gives is its end of sequence.
    """
    known = [each for each in run.completed if each.output_tokens is not None]
    if not known:
        return CannotTell(run_subject(run), "how many tokens each answer has is not known")
    empty = sum(each.output_tokens == 0 for each in known)
    if not empty or empty < limits["share"] * len(known):
        return Clear(run_subject(run))
    sql = request_rows(run, "prompt_tokens", "output_tokens", "ttft_ns", "finish_reason", where="outcome = 'completed'")
    share = empty / len(known)
    return Finding(
        title=f"{units.share(share)} of the answers are empty",
        claim=f"{empty:,} of {units.count(len(known), 'request')} that completed brought no token. They count in "
        "requests per second; latencies here are of the others.",
        subject=run_subject(run),
        level="warning",
        counterfactual="Nothing would be faster; requests per second would count work that was done.",
        evidence=[
            Evidence("empty", share, "share", "completed with 0 output tokens / completed", sql),
            Evidence("empty answers", empty, "count", "completed with 0 output tokens", sql),
        ],
        refute="The first token that the model gives to these prompts is its end of sequence.",
        next=["Send some of them again, one by one, and look at the raw stream."],
    )


@load_rule("serving.rejections")
def rejections(run: ServingRun, limits: Limits) -> Answer:
    """Requests are refused before any work is done for them.

    Asks      Which share of the requests does admission control refuse, and was the engine full at that time?
    Decides   share = rejected / sent. Fires at `share`. Where the engine's steps are there, those are counted that were
              refused while it had a free place (fewer running than max_sequences, none waiting).
    Matters   Refusing is the right answer to more than can be served, and better than a queue in which everything
              expires. It says that capacity is short, or that the limit is tighter than the engine needs.
    Do        With the engine full: more capacity, or fewer requests. With free places: a longer queue, or a limit in
              tokens and not in requests. Let clients back off for a while, and not at once again.
    Refute    With a longer queue the share stays the same: then it only fills later.
    """
    of = counts(run.requests)
    if of.rejection_share < limits["share"] or not of.rejected:
        return Clear(run_subject(run))
    rejected = [each for each in run.measured if each.outcome == "rejected"]
    at_leisure = _while_free(run, rejected)
    sql = request_rows(run, "sent_ns", "ended_ns", "prompt_tokens", "error", where="outcome = 'rejected'")
    evidence = [
        Evidence("rejected", of.rejection_share, "share", "rejected / sent, measured requests", sql),
        Evidence("rejected requests", of.rejected, "count", "outcome 'rejected'", sql),
    ]
    told = ""
    if at_leisure is not None:
        formula = "the last step before left fewer than max_sequences running, and none waiting"
        rows = every_step_rows(run, "n_running", "n_waiting")
        evidence.append(Evidence("with a free place", at_leisure, "count", formula, rows))
        told = f" {at_leisure:,} of them came while the engine had a free place."
    is_tight = at_leisure is not None and 2 * at_leisure >= of.rejected
    return Finding(
        title=f"{units.share(of.rejection_share)} of the requests are rejected",
        claim=f"{of.rejected:,} of {units.count(of.sent, 'request')} were refused before any work.{told}",
        subject=run_subject(run),
        level="warning",
        counterfactual="Nothing that was served would be faster: it would be more.",
        evidence=evidence,
        refute="With a longer queue the share stays the same.",
        next=[_TIGHT if is_tight else _FULL, "Let clients wait before they send again, each time longer."],
    )


_TIGHT = "Raise the limit of what may wait (max_waiting), or of tokens: the engine had room."
_FULL = "Add capacity, or send less: a longer queue would only make everyone wait."


def _while_free(run: ServingRun, rejected: Sequence[ServedRequest]) -> int | None:
    """Rejected requests that found a free place; None where the engine does not tell."""
    most = run.settings.max_sequences
    times = [time for each in rejected if (time := end_ns(each) or each.sent_ns) is not None]
    if most is None or not run.steps or not times:
        return None
    ends = np.array([step.end_ns for step in run.steps])
    is_free = np.array([step.n_running < most and not step.n_waiting for step in run.steps])
    before = np.searchsorted(ends, times, side="right") - 1
    return int(np.sum(np.where(before < 0, True, is_free[before])))


@load_rule("serving.retries")
def retries(run: ServingRun, limits: Limits) -> Answer:
    """Clients that send again what failed, and make it fail more.

    Asks      How much of the load are second and further attempts, and does it grow as more fails?
    Decides   share = attempts that are retries / all attempts. Fires at `share` (Google, Site Reliability Engineering,
              ch. 21: retries within a budget of a tenth of the requests). It is a storm, and critical, when the share
              of retries in the last third of the attempts is `grows` times that in the first, and retries fail at least
              as often as first attempts.
    Matters   What fails for want of capacity is sent again and takes more of it: the server may stay down at a load
              that it carried before.
    Do        Retry with exponential back-off and jitter, within a budget for each client; never retry what was refused
              for overload at once. Let the server say when to come back (Retry-After).
    Refute    With retries switched off as many first attempts fail: then the load, and not they, is the cause.
    """
    subject, attempts = run_subject(run), run.measured
    again = [each for each in attempts if each.retry_of is not None]
    if not again and not all(each.is_completed for each in attempts):
        return CannotTell(subject, "no request is marked as another's retry: nobody retried, or the file does not say")
    if len(again) < limits["share"] * len(attempts) or not again:
        return Clear(subject)
    return _retries(run, again, limits)


def _retries(run: ServingRun, again: Sequence[ServedRequest], limits: Limits) -> Finding:
    attempts, share = run.measured, len(again) / len(run.measured)
    third = max(len(attempts) // 3, 1)
    first, last = (_retry_share(part) for part in (attempts[:third], attempts[-third:]))
    of_retries = _failing_share(again)
    of_first = _failing_share([each for each in attempts if each.retry_of is None])
    is_storm = last >= limits["grows"] * first and last > first and of_retries >= of_first
    sql = request_rows(run, "name", "retry_of", "outcome", "sent_ns")
    return Finding(
        title=f"{'A retry storm: ' if is_storm else ''}{units.share(share)} of the attempts are retries",
        claim=f"{len(again):,} of {units.count(len(attempts), 'attempt')} repeat an earlier one. Of the first third "
        f"{units.share(first)} are retries, of the last {units.share(last)}; {units.share(of_retries)} of them come to "
        f"nothing again, of first attempts {units.share(of_first)}.",
        subject=run_subject(run),
        level="critical" if is_storm else "warning",
        counterfactual=f"Without them {units.share(share)} of the load would not be there.",
        evidence=[
            Evidence("retries", share, "share", "attempts with retry_of / all attempts", sql),
            Evidence("retries in the first third", first, "share", "of the attempts by send order", sql),
            Evidence("retries in the last third", last, "share", "of the attempts by send order", sql),
            Evidence("retries in vain", of_retries, "share", "not completed / retries", sql),
            Evidence("first attempts in vain", of_first, "share", "not completed / first attempts", sql),
        ],
        refute="With retries switched off as many first attempts fail.",
        next=[
            "Retry with exponential back-off and jitter, within a tenth of the requests.",
            "Bound the server's queue.",
        ],
    )


def _retry_share(attempts: Sequence[ServedRequest]) -> float:
    return sum(each.retry_of is not None for each in attempts) / len(attempts)


def _failing_share(attempts: Sequence[ServedRequest]) -> float:
    return sum(not each.is_completed for each in attempts) / len(attempts) if attempts else 0.0
