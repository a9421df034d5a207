"""What a worker does with a shard: imports it, or finds it imported, and judges it."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from diag.cluster.shards import Shard
from diag.ingest.importer import ImportOptions, nothing, open_inputs
from diag.ingest.input_file import silent
from diag.launches.benchmarks import load_benchmarks
from diag.model.benchmark import Benchmark
from diag.model.measured import Known
from diag.ranks.summarise import summaries_of
from diag.rules import rooflines, thresholds
from diag.rules.analysis import AnalysisOptions, digest_of, overlaps_of
from diag.rules.scope import PartAsked, part_of, scoped_traces
from diag.rules.shard_result import ShardResult, encoded
from diag.rules.stored import digest_of_code
from diag.rules.thresholds import Limits
from diag.rules.trace_result import trace_result
from diag.rules.verdict import explained_by
from diag.store.case import Case


@dataclass(frozen=True)
class Reading:
    """How shards are read and judged. Nothing of it is a file of the machine that asks."""

    imports: ImportOptions
    window: str | None
    range_name: str | None
    limits: Mapping[str, Limits]
    ceilings: Sequence[Benchmark]

    @classmethod
    def of(cls, imports: ImportOptions, options: AnalysisOptions) -> Reading:
        alone = replace(imports, keep=None, note=silent, finish=nothing)
        return cls(alone, options.window, options.range_name, thresholds.load(options.thresholds), options.ceilings)

    @property
    def asked(self) -> str:
        """As `AnalysisOptions.asked_of_traces`."""
        return digest_of(self.window, self.range_name, self.limits)

    @property
    def fingerprint(self) -> str:
        return digest_of(self.asked, list(self.ceilings), digest_of_code())

    def __call__(self, shard: Shard) -> bytes:
        """A `ShardResult`, encoded. The second time it is in the case that the first one left in the cache."""
        with open_inputs(shard.paths, self.imports) as case:
            kept = case.value(_KEPT, (self.fingerprint,))
            if kept is not None:
                return bytes(kept)
            body = encoded(_judged(case, self))
            if case.writable:
                case.db.execute(KEEP, (case.sources[0].id, self.asked, self.fingerprint, body))
            return body


_KEPT = "SELECT body FROM shard_result WHERE fingerprint = ?"
KEEP = "INSERT OR REPLACE INTO shard_result (source_id, asked, fingerprint, body) VALUES (?, ?, ?, ?)"


_SOURCES = "SELECT * FROM source ORDER BY id"


def _judged(case: Case, reading: Reading) -> ShardResult:
    asked = PartAsked(reading.window, reading.range_name)
    traces = scoped_traces(case, asked)
    ladder, known = rooflines.ladder(reading.limits["ncu.roofline"]), Known(load_benchmarks(case), reading.ceilings)
    results = [trace_result(trace, reading.limits, ladder, known) for trace in traces]
    findings = sorted(chain.from_iterable(result.findings for result in results), key=lambda finding: finding.rank)
    parts = [part for trace in traces if (part := part_of(trace, asked)) is not None]
    place = f"{socket.gethostname()}:{case.path}"
    return ShardResult(
        sources=[dict(row) | {"shard": place} for row in case.rows(_SOURCES)],
        notes={source.id: case.notes(source.id) for source in case.sources},
        results=results,
        overlaps=overlaps_of(findings),
        explained=explained_by(findings),
        summaries=[summary for trace in traces for summary in summaries_of(trace)],
        part=max(parts, key=lambda part: part.trace_ns, default=None),
    )
