"""The device of an engine waits for its host between two runs of the model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from diag.model import units
from diag.rules.finding import Answer, Clear, Evidence, Finding
from diag.rules.serving_steps import step_rows, steps_rule, subject_of
from diag.rules.thresholds import Limits
from diag.serving.steps import Steps

WHERE: Mapping[str, str] = {
    "schedule": "choosing what to compute, and its block tables",
    "sample": "choosing tokens",
    "output": "detokenising and sending",
    "rest": "inside steps, in none of their parts",
    "between": "between steps, while requests ran or waited",
}

_NEXT: Mapping[str, str] = {
    "schedule": "Profile the scheduler on its own: does its time grow with the sequences that run, or that wait?",
    "sample": "Sample on the device for the whole batch at once; look for a copy of all logits to the host.",
    "output": "Detokenise and send in another thread or process, and only the new tokens.",
    "rest": "Record the engine with py-spy or nsys, with Python's call stacks: diag run --with nsys -- PROGRAM",
    "between": "See what the loop does between steps: diag run --with nsys -- PROGRAM, and look at its main thread.",
}


@steps_rule("serving.host_gap", needs=("model_ns",))
def idle_between_decode_steps(steps: Steps, limits: Limits) -> Iterator[Answer]:
    """The device idles between decode steps, for the host is not done.

    Asks      While the engine has work, for what share of the time does no model run, and what does the host do then?
    Decides   share = 1 - Σ model_ns / busy, where busy is the time of all steps, and that between two steps of which
              the first left requests behind. The rest is partitioned as the engine timed it: scheduling, sampling,
              output, what of a step is nobody's, and between steps. Fires at `share`.
    Matters   Decode steps take milliseconds: what the host does between them, one after the other, is lost for every
              sequence of the batch.
    Do        Take off the critical path what is largest: prepare the next step while this one runs, sample on the
              device, detokenise in another process. CUDA graphs make launches cheaper; they are inside model_ns here.
    Refute    A timeline of the same run shows kernels of the next step in these gaps: then the host works ahead, and
              model_ns is only what it waits for.
    """
    subject, busy_ns = subject_of(steps), steps.busy.measure_ns
    parts = host_parts(steps)
    lost = steps.busy - steps.model
    if not busy_ns or lost.measure_ns < limits["share"] * busy_ns:
        yield Clear(subject)
        return
    most = max(parts, key=lambda name: parts[name])
    rows = step_rows(steps, "n_decodes", "schedule_ns", "model_ns", "sample_ns", "output_ns")
    yield Finding(
        title=f"No model runs for {units.share(lost.measure_ns / busy_ns)} of the time in which the engine has work",
        claim=f"Of {units.time(busy_ns)} the model runs for {units.time(steps.model.measure_ns)}. Most of the rest is "
        f"{WHERE[most]} ({units.time(parts[most])}, {units.time(parts[most] / len(steps))} a step).",
        subject=subject,
        share=lost.measure_ns / steps.window_ns,
        recoverable_ns=lost.measure_ns,
        counterfactual="If the host did all of it while the model runs, the same steps would take that much less time.",
        evidence=[
            Evidence("without the model", lost.measure_ns, "ns", "busy - Σ model_ns", rows),
            Evidence("busy", busy_ns, "ns", "steps, and between two of which the first left requests", rows),
            Evidence("share of busy", lost.measure_ns / busy_ns, "share", "without the model / busy", rows),
            *(Evidence(name, took_ns, "ns", f"Σ over steps: {WHERE[name]}", rows) for name, took_ns in parts.items()),
        ],
        refute="A timeline shows kernels of the next step in these gaps.",
        next=[_NEXT[most]],
        extent=lost,
    )


def host_parts(steps: Steps) -> Mapping[str, int]:
    """Keys of WHERE, in ns; of parts that the engine did not time, the time is in `rest`."""
    timed = {name: steps[f"{name}_ns"] for name in ("schedule", "sample", "output")}
    rest_ns = steps.duration_ns - steps["model_ns"] - sum(timed.values())
    return {
        **{name: int(took.sum()) for name, took in timed.items()},
        "rest": max(int(rest_ns.sum()), 0),
        "between": int(steps.between_ns.sum()),
    }
