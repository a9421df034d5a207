"""Which version of Nsight Systems wrote a file."""

from __future__ import annotations

import re
from pathlib import Path

from google.protobuf.message import DecodeError

from diag.ingest.messages import BYTES, Field, Message, message_class
from diag.ingest.nsys_rep.magic import MAGIC, STREAM_MAGIC
from diag.ingest.nsys_rep.sections import Section, SectionedFile

_VERSION = re.compile(rb"\d{4}(?:[.@]\d{1,9}){2,4}")
_HEADER_BYTES = 128
# As seen in files of 2021.1 to 2024.6; all three agreed in each of them.
_UI_DATA = message_class(Message("UiData", {f"version_{number}": Field(number, BYTES) for number in (6, 7, 21)}))


def report_version(path: Path) -> str | None:
    """Version of the nsys that wrote the file, for example `2024.6.2.25`; None when it cannot be read.

    It stands in the first line of newer reports and of .qdstrm files; older reports have it in the section
    "UI Data" near their end.
    """
    try:
        with SectionedFile(path) as file:
            header = file.read(Section(0, min(_HEADER_BYTES, file.n_bytes)))
            return _in_header(header) or _in_ui_data(file.section("UI Data"))
    except (OSError, ValueError):
        return None


def _in_header(header: bytes) -> str | None:
    for magic in (MAGIC, STREAM_MAGIC):
        if header.startswith(magic):
            return _version(header[len(magic) :])
    return None


def _in_ui_data(section: bytes) -> str | None:
    try:
        data = _UI_DATA.FromString(section)
    except DecodeError:
        return None
    return _version(data.version_6) or _version(data.version_7) or _version(data.version_21)


def _version(text: bytes) -> str | None:
    match = _VERSION.match(text)
    return match[0].decode("ascii").replace("@", ".") if match else None
