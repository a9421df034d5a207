"""Which tool wrote a serving result, by the beginning of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from diag.ingest.serving import aiperf, bench_serving, genai_perf, guidellm, log, metrics_page

_SIGNS: Mapping[str, Callable[[bytes], bool]] = {
    log.KIND: log.looks_like_serving_log,
    guidellm.KIND: guidellm.looks_like_guidellm,
    aiperf.RECORDS: aiperf.looks_like_records,
    genai_perf.KIND: genai_perf.looks_like_genai_perf,
    aiperf.SUMMARY: aiperf.looks_like_summary,
    bench_serving.KIND: bench_serving.looks_like_bench_serving,
    metrics_page.KIND: metrics_page.looks_like_metrics_page,
}
"""The surest first."""

_REPORT = b'"diag.report/'
"""What diag itself says of a run names the same things."""


def kind_of_serving(head: bytes) -> str | None:
    if _REPORT in head[:1024]:
        return None
    return next((kind for kind, is_one in _SIGNS.items() if is_one(head)), None)
