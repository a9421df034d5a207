"""What the inputs of a report are called, and what is known about each."""

from __future__ import annotations

import ntpath
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache

from diag.model import units
from diag.rules.report import Report
from diag.store.case import Source

_TRACE_ENDINGS = (
    ".pt.trace.json.gz",
    ".pt.trace.json",
    ".json.gz",
    ".json",
    ".sqlite",
    ".nsys-rep",
    ".qdrep",
    ".qdstrm",
)


def short_name(report: Report, source_id: int) -> str:
    """How one of several sources is called: by its rank, its file's name or its path, whichever is its own first."""
    return _short_names(report).get(source_id, f"source {source_id}")


@lru_cache(maxsize=2)
def _short_names(report: Report) -> Mapping[int, str]:
    """Worked out once: a report on a thousand ranks names each of them many times."""
    choices = {source.id: _names_of(source.rank, source.path) for source in report.sources}
    taken = [Counter(names) for names in zip(*choices.values(), strict=True)]
    return {
        source_id: name
        for source_id, names in choices.items()
        if (name := next((n for n, counts in zip(names, taken, strict=True) if n and counts[n] == 1), None))
    }


def _names_of(rank: int | None, path: str) -> tuple[str | None, ...]:
    """From the shortest to the longest."""
    file = ntpath.basename(path)
    ending = next((ending for ending in _TRACE_ENDINGS if file.endswith(ending)), "")
    return (_rank(rank), file.removesuffix(ending), file, path)


def _rank(rank: int | None) -> str | None:
    return None if rank is None else f"rank {rank}"


def description(of: Source) -> str:
    """What is known about an input: the tool that made it, and how fine its clock is."""
    parts = [of.tool or of.kind, of.tool_version or ""]
    made_by = " ".join(filter(None, parts))
    schema = f"schema {of.schema_version}" if of.schema_version else None
    machine = f"host {of.host}" if of.host else None
    tick, graphs = f"tick {units.time(of.time_resolution_ns)}", _GRAPH_MODES.get(of.graph_mode or "")
    return ", ".join(filter(None, (made_by, schema, machine, _rank(of.rank), tick, graphs, _events(of))))


def _events(of: Source) -> str | None:
    """How many of the events that the file declares were read; None where it declares none."""
    if of.events_declared is None or of.events_read is None:
        return None
    if of.events_read == of.events_declared:
        return f"all {units.count(of.events_declared, 'event')} read"
    if of.events_read > of.events_declared:
        return f"{units.count(of.events_read, 'event')} read where {of.events_declared:,} are declared"
    return f"{of.events_read:,} of {units.count(of.events_declared, 'event')} read"


_GRAPH_MODES = {"graph": "CUDA graphs traced as a whole", "node": "CUDA graphs traced node by node"}
