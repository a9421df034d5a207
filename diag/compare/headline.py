"""The one figure that says whether a run got faster: chosen by the user, or the best that both sides have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from diag.compare import serving
from diag.compare.changes import Amount, Change, judged
from diag.compare.noise import Values
from diag.compare.questions import Domain
from diag.compare.recording import Recording
from diag.compare.series import Series, sum_of, together
from diag.compare.sides import Sides
from diag.errors import UsageError
from diag.model.near import did_you_mean, near
from diag.model.serving_metrics import LATENCY_NAMES, Latency
from diag.store.names import pattern_of

PLAIN_METRICS = ("step", "window", "gpu-busy", "kernels", "launches", "ttft", "tpot", "itl", "e2e")
NAMED_METRICS = ("kernel:NAME", "range:NAME")
METRICS = (*PLAIN_METRICS, *NAMED_METRICS)


@dataclass(frozen=True)
class Headline:
    metric: str  # one of METRICS
    what: str  # it is, in words
    domain: Domain
    change: Change


def headline_of(sides: Sides, metric: str | None) -> Headline:
    """The change of the metric. Raises UsageError for one that there is none of, or that neither side has."""
    if metric is None:
        return _judged(_best(sides), sides)
    found = _metric(sides, metric)
    if found is None:
        raise UsageError(f"There is no --metric {metric}. Choose one of: {', '.join(METRICS)}.")
    if found.change.before is None and found.change.after is None:
        raise UsageError(f"Neither side has what --metric {metric} is about.{_hint(sides, found)}")
    return _judged(found, sides)


def _judged(found: Headline, sides: Sides) -> Headline:
    (change,) = judged([found.change], sides.resolution_ns)
    return Headline(found.metric, found.what, found.domain, change)


def _best(sides: Sides) -> Headline:
    """The first that both sides have: a step, all kernels, what Nsight Compute measured, the window, a request."""
    metrics = ("step", "kernels", "launches", "window", *_of_requests(sides))
    tried = [found for metric in metrics if (found := _metric(sides, metric))]
    whole = [found for found in tried if found.change.before is not None and found.change.after is not None]
    return (whole or tried[::-1])[0]


def _of_requests(sides: Sides) -> Sequence[str]:
    """End-to-end time is what a user waits for, unless outputs are longer on one side."""
    keys = serving.matched(sides) if any(run.loads for run in sides.runs) else ()
    if not keys:
        return ()
    return ("tpot", "ttft") if serving.outputs_differ(sides, keys[-1]) else ("e2e", "tpot", "ttft")


def _metric(sides: Sides, metric: str) -> Headline | None:
    kind, _, name = metric.partition(":")
    match kind, name:
        case "step", "":
            change = sides.typical(lambda run: run.steps.periods if run.steps else None, name=metric, repeats="steps")
            return Headline(metric, f"step time{_pattern(sides)}", "run", change)
        case "window", "":
            return Headline(metric, f"window{_each(sides)}", "run", _figure(sides, "window", metric))
        case "gpu-busy", "":
            return Headline(metric, f"GPU busy time{_each(sides)}", "device", _figure(sides, "busy", metric))
        case "kernels", "":
            return Headline(metric, f"kernel time{_each(sides)}", "device", _all_kernels(sides, metric))
        case "launches", "":
            return Headline(metric, "time of the profiled kernels that both have", "profile", _launches(sides, metric))
        case ("ttft" | "tpot" | "itl" | "e2e") as which, "":
            return _request(sides, which)
        case "kernel", str(name) if name:
            return _kernel(sides, metric, name)
        case "range", str(name) if name:
            return _range(sides, metric, name)
    return None


def _each(sides: Sides) -> str:
    return f" of a step ('{sides.per_step}')" if sides.per_step else ""


def _pattern(sides: Sides) -> str:
    steps = next((run.steps for run in sides.before.runs if run.steps), None)
    return f" ('{steps.pattern}')" if steps else ""


# ---- of the whole run ----------------------------------------------------------------------------------------------


def _figure(sides: Sides, figure: str, metric: str) -> Change:
    """Of the device with the longest window; where no run has GPU work, all that was recorded is the window."""
    place = _longest(sides)
    is_of_host = figure == "window" and not any(run.devices for run in sides.runs)

    def pick(run: Recording) -> Series | None:
        if is_of_host:
            return Series.of_figure(float(run.span_ns), None) if run.span_ns else None
        return run.devices.get((place, figure))

    return sides.by_step(pick, place=place, name=metric, otherwise="steps")


def _longest(sides: Sides) -> str:
    """The device with the longest window before."""
    windows = [
        (series.total_ns, place)
        for run in sides.before.runs
        for (place, figure), series in run.devices.items()
        if figure == "window"
    ]
    return max(windows, default=(0.0, ""))[1]


def _all_kernels(sides: Sides, metric: str) -> Change:
    """The sum over the kernels of the device with the longest window, which vary each by itself."""
    place = _longest(sides)

    def pick(run: Recording) -> Series | None:
        kernels = [kernel for (where, _), kernel in run.kernels.items() if where == place]
        every = [series for kernel in kernels for series in kernel.by_configuration.values()]
        if not every:
            return None
        return together(every) if sides.per_step else sum_of(every)

    change = sides.by_step(pick, place=place, name=metric, otherwise="launches")
    return replace(change, before=_uncounted(change.before), after=_uncounted(change.after))


def _uncounted(amount: Amount | None) -> Amount | None:
    return None if amount is None else replace(amount, count=None)


def _request(sides: Sides, which: Latency) -> Headline:
    """The median at the last load that both sides have, which in a sweep is the heaviest."""
    keys = serving.matched(sides)
    change = serving.median_change(sides, which, keys[-1] if keys else "")
    return Headline(which, f"median {LATENCY_NAMES[which]}{serving.at_load(sides, keys)}", "run", change)


# ---- of what was asked for by name, or profiled --------------------------------------------------------------------


def _launches(sides: Sides, metric: str) -> Change:
    """Each kernel as often as it was profiled before, by its mean on either side: which were profiled is no change."""
    runs = sides.runs
    weights = {
        (key, how): series.count or 0
        for key, kernel in sides.before.runs[0].launches.items()
        for how, series in kernel.by_configuration.items()
        if all(key in run.launches and how in run.launches[key].by_configuration for run in runs)
    }

    def pick(run: Recording) -> Series | None:
        found = [(count, run.launches[key].by_configuration[how].each_ns) for (key, how), count in weights.items()]
        parts = [each_ns * (count / len(each_ns)) for count, each_ns in found if each_ns is not None]
        return Series(None, _sum(parts), None, None, parts_ns=parts) if parts else None

    return sides.profiled(pick, place="", name=metric)


def _sum(parts: Sequence[Values]) -> float:
    return float(sum(part.sum() for part in parts))


def _kernel(sides: Sides, metric: str, name: str) -> Headline:
    """A launch of a kernel, by its full or short name, on whatever device; profiled where no timeline has kernels."""
    is_profile = not any(run.kernels for run in sides.runs)

    def pick(run: Recording) -> Series | None:
        series = [
            each
            for (_, full), kernel in (run.launches if is_profile else run.kernels).items()
            if name in (full, kernel.short_name)
            for each in kernel.by_configuration.values()
        ]
        return together(series) if series else None

    change = sides.typical(pick, name=name, repeats="launches")
    return Headline(metric, f"launch time of '{name}'", "profile" if is_profile else "device", change)


def _range(sides: Sides, metric: str, name: str) -> Headline:
    """An instance of a range: the GPU time launched inside it where all recordings have any, else its host time."""
    runs = sides.runs
    pattern = pattern_of(name)
    found = [[times for (_, each), times in run.ranges.items() if each == pattern] for run in runs]
    on_gpu = all(times and all(each.gpu for each in times) for times in found)

    def pick(run: Recording) -> Series | None:
        times = [each.gpu if on_gpu else each.host for (_, found), each in run.ranges.items() if found == pattern]
        series = [each for each in times if each is not None]
        return together(series) if series else None

    change = sides.typical(pick, name=pattern, repeats="instances")
    what = "GPU time" if on_gpu else "host time"
    return Headline(metric, f"{what} of a range '{pattern}'", "device" if on_gpu else "run", change)


def _hint(sides: Sides, found: Headline) -> str:
    """Names like the one that was asked for, or the metrics that there are."""
    runs = sides.runs
    kind, _, name = found.metric.partition(":")
    if not name:
        tried = [each for metric in PLAIN_METRICS if (each := _metric(sides, metric))]
        there = [each.metric for each in tried if each.change.before is not None or each.change.after is not None]
        return f" What they have: {', '.join(there)}." if there else ""
    known = {
        "kernel": {kernel.short_name for run in runs for kernel in (*run.kernels.values(), *run.launches.values())},
        "range": {pattern for run in runs for _, pattern in run.ranges},
    }
    return did_you_mean(map(repr, near(name, known.get(kind, ()))))
