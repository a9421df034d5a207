"""What a report says of itself, of how it was made, and of the devices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from diag.ingest.launch_attributes import ATTRIBUTE, described
from diag.ingest.launch_records import ProfiledDevice, ReportFacts
from diag.ingest.ncu_rep.command_line import CACHE_CONTROL, CLOCK_CONTROL, REPLAY, Choice
from diag.ingest.ncu_rep.container import Block, Container
from diag.ingest.ncu_rep.values import text, value_of

COLLECTOR = "Nsight Compute Target"
"""The provider, among the versions that a report lists, that measured."""


def facts_of(container: Container, sources: dict[str, str]) -> ReportFacts:
    """`sources` is kept, not copied: it fills while the launches are read."""
    details = [block.header.details for block in container.blocks]
    return ReportFacts(
        tool_version=_version(chain.from_iterable(each.versions for each in details)),
        schema_version=str(container.version),
        host=next((text(each.target.host) for each in details if each.target.host), None),
        clock_control=_chosen(details, "clock_control", CLOCK_CONTROL),
        cache_control=CACHE_CONTROL.made_in(_command_line(details)),
        replay=_chosen(details, "replay", REPLAY),
        devices=list(_devices(container.blocks)),
        sources=sources,
        is_cut=container.is_cut,
    )


def _version(versions: Iterable[Any]) -> str | None:
    of_collector = (text(each.version) for each in versions if text(each.provider) == COLLECTOR)
    return next(of_collector, "").split(" ")[0] or None


def _command_line(details: Sequence[Any]) -> str:
    return next((text(each.command_line) for each in details if each.command_line), "")


def _chosen(details: Sequence[Any], setting: str, choice: Choice) -> str | None:
    """From the settings that ncu-ui stores, else from the command line."""
    stored = next((text(getattr(each.settings, setting)).lower() for each in details if each.settings), "")
    return stored if stored in choice.values else choice.made_in(_command_line(details))


def _devices(blocks: Iterable[Block]) -> Iterable[ProfiledDevice]:
    for block in blocks:
        for device in block.header.details.devices:
            listed = {text(each.name).removeprefix(ATTRIBUTE): value_of(each.value) for each in device.attributes}
            attributes = {name: value for name, value in listed.items() if value is not None}
            yield described(device.id, attributes, name=text(device.name), pid=pid_of(block))


def pid_of(block: Block) -> int | None:
    """The process that a block is about. One that names none is about the process of the whole report."""
    header = block.header
    return (header.process.pid if header.HasField("process") else header.details.pid) or None
