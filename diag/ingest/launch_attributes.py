"""A device from its attributes, as Nsight Compute lists them among the metrics of each launch."""

from __future__ import annotations

from collections.abc import Mapping

from diag.ingest.launch_records import ProfiledDevice, Value
from diag.ingest.launch_values import integer

ATTRIBUTE = "device__attribute_"
"""How their names begin."""


def attributes_of(values: Mapping[str, Value | None]) -> dict[str, Value]:
    """Those among the metrics of a launch that have a value, by their names in the driver API."""
    return {
        name.removeprefix(ATTRIBUTE): value
        for name, value in values.items()
        if name.startswith(ATTRIBUTE) and value is not None
    }


def described(
    ordinal: int,
    attributes: Mapping[str, Value],
    *,
    name: str | None = None,
    compute_capability: tuple[int, int] | None = None,
    pid: int | None = None,
) -> ProfiledDevice:
    """The device of these attributes. What a report says of it elsewhere, its name or capability, goes before them."""
    shown = attributes.get("display_name")
    return ProfiledDevice(
        ordinal=ordinal,
        name=name or (shown if isinstance(shown, str) else None),
        compute_capability=compute_capability or _capability(attributes),
        attributes=attributes,
        pid=pid,
    )


def _capability(attributes: Mapping[str, Value]) -> tuple[int, int] | None:
    major, minor = (integer(attributes.get(f"compute_capability_{part}")) for part in ("major", "minor"))
    return None if major is None or minor is None else (major, minor)
