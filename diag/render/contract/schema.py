"""JSON Schema (2020-12) of the documents that diag writes, made from the types of the code that fills them.

What is shipped (`diag/render/schemas`) is what this makes, which a test holds. Keys are never closed: they may be added
to a document, as docs/json-contract.md says. `closed` is for tests, which must not miss one.

    python -m diag.render.contract.schema diag/render/schemas
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from diag.model.benchmark import Benchmark
from diag.model.heartbeat import Heartbeat
from diag.model.serving_log import Header, RequestRecord, StepRecord
from diag.model.stack_file import StackFile
from diag.render.contract.compare_document import COMPARE
from diag.render.contract.enumerations import ENUMERATIONS, USUAL
from diag.render.contract.live_document import LIVE
from diag.render.contract.other_documents import DOCTOR, INSPECTION, LOG, PLAN
from diag.render.contract.record import Type, refer
from diag.render.contract.report_document import PROBE_REPORT, RANKS, REPORT

DIALECT = "https://json-schema.org/draft/2020-12/schema"

Schema = dict[str, Any]

UNITS = (
    (r"(.*_)?p?flops_per_s$", "FLOP/s"),
    (r"(.*_)?bytes_per_s$", "bytes/s"),
    (r"(.*_)?tokens_per_s$", "tokens/s"),
    (r"(.*_)?requests_per_s$|goodput_per_s$|rate_per_s$", "requests/s"),
    (r".*_per_s$", "in a second"),
    (r".*_unix_ns$|.*_ns$", "ns"),
    (r"(.*_)?bytes$", "bytes"),
    (r"(.*_)?flops$", "FLOP"),
    (r".*_pct$", "%, from 0 to 100"),
    (r".*_share$|share$|share_.*", "share, from 0 to 1"),
    (r".*_hz$", "Hz"),
    (r".*_w$", "W"),
    (r".*_c$", "°C"),
    (r"(.*_)?tokens$", "tokens"),
)
"""What the name of a field tells of its unit, the first that fits; only of numbers."""


@dataclass(frozen=True)
class Document:
    """A kind of document. `also`: records that only an `either` of its shape refers to. `is_whole`: all of its keys are
    there, with `null` where there is nothing to say.
    """

    kind: str
    title: str
    shape: Type
    also: tuple[Type, ...] = ()
    is_whole: bool = True


DOCUMENTS = (
    Document("report", "What diag report and diag hang write", REPORT, RANKS),
    Document("compare", "What diag compare writes", COMPARE),
    Document("live", "What diag watch writes, one a reading", LIVE),
    Document("plan", "What diag plan writes", PLAN),
    Document("log", "What diag log writes", LOG),
    Document("doctor", "What diag doctor writes", DOCTOR),
    Document("inspection", "What diag probe inspect writes", INSPECTION),
    Document("probe", "What diag probe run --report writes", PROBE_REPORT, RANKS),
    Document("benchmark", "The file of diag calibrate and diag probe run", Benchmark, is_whole=False),
    Document(
        "serving-log",
        "A line of the file of diag probe serve",
        Header | RequestRecord | StepRecord,
        is_whole=False,
    ),
    Document("heartbeat", "The file that a rank's heartbeat keeps", Heartbeat, is_whole=False),
    Document("stacks", "The file of stacks that diag hang PID keeps", StackFile, is_whole=False),
)


def schema_of(document: Document) -> Schema:
    """Raises KeyError for a field that nobody has described."""
    (root, *_), components = msgspec.json.schema_components(
        [document.shape, *document.also], schema_hook=refer, ref_template="#/$defs/{name}"
    )
    words = _descriptions()
    definitions = {name: _described(name, each, document, words) for name, each in sorted(components.items())}
    return {
        "$schema": DIALECT,
        "$id": f"diag.{document.kind}/1",
        "title": document.title,
        "description": "Keys may be added within this version: ignore those that you do not know.",
        **root,
        "$defs": definitions,
    }


def text_of(document: Document) -> str:
    return json.dumps(schema_of(document), indent=1, ensure_ascii=True) + "\n"


def closed(schema: Any) -> Any:
    """The same with no other keys than its own allowed."""
    match schema:
        case {"properties": _}:
            return {key: closed(value) for key, value in schema.items()} | {"additionalProperties": False}
        case dict():
            return {key: closed(value) for key, value in schema.items()}
        case list():
            return [closed(each) for each in schema]
        case _:
            return schema


def _described(name: str, component: Schema, document: Document, words: Mapping[str, Any]) -> Schema:
    if "properties" not in component:
        return component
    properties = {field: _property(name, field, said, words) for field, said in component["properties"].items()}
    made = {key: value for key, value in component.items() if key not in ("title", "description", "properties")}
    made["properties"] = properties
    if document.is_whole:
        optional = words.get("left_out", {}).get(name, ())
        made["required"] = [field for field in properties if field not in optional]
    return made


def _property(record: str, field: str, said: Schema, words: Mapping[str, Any]) -> Schema:
    said = {key: value for key, value in said.items() if key not in ("default", "description")}
    if (values := ENUMERATIONS.get((record, field))) is not None:
        said = _only(said, sorted(values))
    if (usual := USUAL.get((record, field))) is not None:
        said = {**said, "examples": sorted(usual)}
    text = words.get(record, {}).get(field) or words["any"][field]
    unit = next((unit for pattern, unit in UNITS if re.fullmatch(pattern, field)), None) if _is_number(said) else None
    return {"description": f"{text} ({unit})" if unit else text, **said}


def _only(said: Schema, values: list[str]) -> Schema:
    """The same, where each text in it is one of `values`."""
    if said == {"type": "string"}:
        return {"enum": values}
    return {key: _only_in(value, values) for key, value in said.items()}


def _only_in(value: Any, values: list[str]) -> Any:
    match value:
        case dict():
            return _only(value, values)
        case list():
            return [_only_in(each, values) for each in value]
        case _:
            return value


def _is_number(said: Schema) -> bool:
    kinds = [said, *said.get("anyOf", ()), said.get("items") or {}]
    return any(each.get("type") in ("integer", "number") for each in kinds)


def _descriptions() -> Mapping[str, Any]:
    return tomllib.loads(files(__package__).joinpath("descriptions.toml").read_text("utf-8"))


def pages() -> Iterator[tuple[str, str]]:
    """(file name, text) of each schema."""
    for document in DOCUMENTS:
        yield f"{document.kind}-1.json", text_of(document)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    for file_name, text in pages():
        (folder / file_name).write_text(text, "utf-8")
