"""What a server of vLLM or SGLang says of its memory: phases of its start, preemption, and where it ran out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from diag.ingest.job_log.event import Event, Place, recognised, shown
from diag.ingest.job_log.lines import Line
from diag.ingest.job_log.prefix import date_of, labelled
from diag.ingest.job_log.server_forms import ALLOCATED, FORMS, GPU, RESERVED
from diag.ingest.serving.engine_args import conditions_in

_AFTER: Mapping[str, str] = {
    "load": "profile", "profile": "kv_cache", "kv_cache": "capture", "capture": "warmup", "start": "warmup",
    "ready": "serve",
}  # fmt: skip
"""What a server does once a phase has ended. SGLang does not profile."""

_FRAMES: Mapping[str, str] = {
    ", in load_model": "load", ", in profile_run": "profile", ", in determine_": "profile",
    ", in initialize_kv_cache": "kv_cache", ", in initialize_cache": "kv_cache", ", in init_memory_pool": "kv_cache",
    ", in capture": "capture", ", in init_cuda_graphs": "capture", ", in init_device_graphs": "capture",
    ", in forward_extend": "serve", ", in forward_decode": "serve", ", in execute_model": "serve",
}  # fmt: skip
"""Functions of both servers in a traceback, and what they are part of. The outermost says it."""

_WORKER = re.compile(
    r"\s{0,8}\((?P<name>[\w.-]{1,80})(?: rank=\d{1,5})? pid=(?P<pid>\d{1,10})\)|"
    r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d{1,9})? (?P<ranks>(?:[A-Z]{2}\d{1,5} ?){1,5})\]"
)
_MOMENT = re.compile(
    r"\b(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) (?P<month>\d\d)-(?P<day>\d\d) (?P<time>\d\d:\d\d:\d\d)(?:\.\d{1,9})? "
)
_NEW_TOKENS = re.compile(r"#new-token: (?P<tokens>\d{1,12})")


def is_batch(text: str) -> bool:
    return "#running-req: " in text and " batch" in text


@dataclass
class Server:
    """Keeps what a server was doing, so that a line about memory says in which phase it ran out."""

    _server: str | None = None
    _phase: str | None = None
    _frame: str | None = None
    _batch: str | None = None
    _new_tokens: int | None = None

    def read(self, line: Line) -> Iterator[Event]:
        text = line.text
        if (settings := conditions_in(text)) is not None:
            self._server, self._phase = settings.server, "load"
            yield replace(_event(line, "server_args", {**settings.fields}), text=settings.text)
            return
        found = list(recognised(text, FORMS))
        if not found:
            self._look_at(text)
        for kind, said in found:
            fields = _with_bytes(said)
            if kind == "server_phase":
                if "server" not in said and self._server is None:
                    continue  # any web server says that it has started
                self._enter(said)
            elif kind in ("cuda_oom", "kv_oom"):
                fields |= _with_bytes(_more_of_memory(text)) | self._doing()
                self._frame = None
            yield _event(line, kind, fields)

    def follow(self, batch: str) -> None:
        """A line in which SGLang announces a batch."""
        self._server, self._phase = "sglang", "serve"
        self._batch = "prefill" if "Prefill batch" in batch else "decode"
        match = _NEW_TOKENS.search(batch)
        self._new_tokens = int(match["tokens"]) if match else None

    def _look_at(self, text: str) -> None:
        if "Traceback (most recent call last)" in text:
            self._frame = None
        elif ", in " in text and self._frame is None:
            self._frame = next((phase for mark, phase in _FRAMES.items() if mark in text), None)

    def _enter(self, said: Mapping[str, Any]) -> None:
        self._server = said.get("server", self._server)
        phase: str = said["phase"]
        if said["state"] != "ended":
            self._phase = phase
        else:
            self._phase = "kv_cache" if (self._server, phase) == ("sglang", "load") else _AFTER[phase]

    def _doing(self) -> dict[str, Any]:
        """`phase_from`: a traceback names the function, else the lines before tell how far the server was."""
        said = {
            "server": self._server,
            "phase": self._frame or self._phase,
            "phase_from": "traceback" if self._frame else "log" if self._phase else None,
            "after_batch": self._batch,
            "after_new_tokens": self._new_tokens,
        }
        return {name: each for name, each in said.items() if each is not None}


def _event(line: Line, kind: str, fields: Mapping[str, Any]) -> Event:
    found, worker, moment = labelled(line.text), _WORKER.match(line.text), _MOMENT.search(line.text)
    pid = int(worker["pid"]) if worker and worker["pid"] else None
    said = dict(fields)
    if worker and (name := worker["name"] or worker["ranks"]):
        said["worker"] = name
    if moment:
        said["moment"] = f"{moment['month']}-{moment['day']}T{moment['time']}"
    place = Place(rank=found.place.rank, pid=pid, local_rank=found.place.local_rank, device=said.get("device"))
    return Event(line.number, kind, said, shown(line.text), place, date_of(line.text))


def _more_of_memory(text: str) -> dict[str, Any]:
    """What newer versions of PyTorch say in sentences of their own."""
    found: dict[str, Any] = {}
    for pattern in (GPU, ALLOCATED, RESERVED):
        if match := pattern.search(text):
            found |= match.groupdict()
    if "device" in found:
        found["device"] = int(found["device"])
    return found


_UNITS = {"B": 1, "bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


def _with_bytes(said: Mapping[str, Any]) -> dict[str, Any]:
    """Sizes in bytes, and numbers that are printed with commas.

    >>> _with_bytes({"weights_gib": 1.5, "tried_size": "2.00 MiB", "kv_tokens": "8,192"})
    {'weights_bytes': 1610612736, 'tried_bytes': 2097152, 'kv_tokens': 8192}
    """
    found: dict[str, Any] = {}
    for name, each in said.items():
        if name.endswith("_gib"):
            found[name.removesuffix("_gib") + "_bytes"] = round(each * (1 << 30))
        elif name.endswith("_size"):
            number, _, unit = each.partition(" ")
            found[name.removesuffix("_size") + "_bytes"] = round(float(number) * _UNITS[unit])
        elif name.endswith("_tokens") and isinstance(each, str):
            found[name] = int(each.replace(",", "") or 0)
        else:
            found[name] = each
    return found
