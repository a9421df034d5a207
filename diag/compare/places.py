"""What a device or an input is called in every recording of a job: process ids and paths differ, ranks do not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from diag.rules.document import Document

GPU = "GPU"
"""The only device of its process, whatever its ordinal: another run may have been given another one."""

DeviceKey = tuple[int, int, int]
"""Source, process and ordinal."""


def device_places(report: Document) -> Mapping[DeviceKey, str]:
    """What each device of a report's timelines is called."""
    inputs = input_places(report)
    places = {
        (row.source, row.process, row.device): _joined(inputs.get(source, ""), ordinal_place(row.device, ordinals))
        for source, ordinals in _by_source(report).items()
        for row in report.devices
        if row.source == source
    }
    alike: defaultdict[str, list[DeviceKey]] = defaultdict(list)
    for key, place in sorted(places.items()):
        alike[place].append(key)
    numbered = {
        key: f"{place}, process {number}"
        for place, keys in alike.items()
        if len(keys) > 1
        for number, key in enumerate(keys, 1)
    }
    return {**places, **numbered}


def input_places(report: Document) -> Mapping[int, str]:
    """What each source with a timeline is called: nothing if it is alone, else by its rank or its number."""
    timelines = [source for source in report.sources if source.has_timeline]
    if len(timelines) == 1:
        return {timelines[0].id: ""}
    return {
        source.id: f"input {number}" if source.rank is None else f"rank {source.rank}"
        for number, source in enumerate(timelines, 1)
    }


def ordinal_place(ordinal: int | None, ordinals: Sequence[int | None]) -> str:
    """
    >>> ordinal_place(3, [3]), ordinal_place(3, [2, 3])
    ('GPU', 'GPU 3')
    """
    return GPU if ordinal is None or len(set(ordinals)) == 1 else f"{GPU} {ordinal}"


def _by_source(report: Document) -> Mapping[int, list[int]]:
    ordinals: defaultdict[int, list[int]] = defaultdict(list)
    for row in report.devices:
        ordinals[row.source].append(row.device)
    return ordinals


def _joined(of_input: str, of_device: str) -> str:
    return f"{of_input}, {of_device}" if of_input else of_device
