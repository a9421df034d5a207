"""The machine that was profiled: properties of its system, and its network cards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from google.protobuf.message import DecodeError

from diag.ingest.messages import BYTES, Field, Message, ints, message_class
from diag.ingest.nsys_rep import properties
from diag.ingest.nsys_rep.events import Rows
from diag.ingest.nsys_rep.tables import table

SYSTEM_ENV = table(
    "TARGET_INFO_SYSTEM_ENV", globalVid="INTEGER", devStateName="TEXT", name="TEXT", nameEnum="INTEGER", value="TEXT"
)
NIC = table(
    "TARGET_INFO_NIC_INFO",
    GUID="INTEGER",
    stateName="TEXT",
    nicId="INTEGER",
    name="TEXT",
    deviceId="INTEGER",
    vendorId="INTEGER",
    linkLayer="INTEGER",
)

_PROPERTY = Message("Property", {"number": Field(1), "value": Field(2, BYTES)})
_PROPERTIES = Message("Properties", {"list": Field(1, _PROPERTY, repeated=True)})
_STATE = Message("DeviceState", {"name": Field(1, BYTES), "properties": Field(2, _PROPERTIES), "globalVid": Field(3)})
_HOST = message_class(Message("Host", {"states": Field(1, _STATE, repeated=True)}))

_NIC = Message("Nic", {"id": Field(1), "name": Field(2, BYTES), **ints(deviceId=3, vendorId=4, linkLayer=5, GUID=6)})
_NICS = message_class(Message("Nics", {"list": Field(1, _NIC, repeated=True)}))


def host_rows(description: bytes) -> Iterator[Rows]:
    """From the description of the host. Raises DecodeError when it is none."""
    states = _HOST.FromString(description).states
    if rows := [row for state in states for row in _property_rows(state)]:
        yield SYSTEM_ENV, SYSTEM_ENV.by_column(rows)
    if rows := [row for state in states for row in _nic_rows(state)]:
        yield NIC, NIC.by_column(rows)


def _property_rows(state: Any) -> Iterator[tuple[Any, ...]]:
    for item in state.properties.list:
        if (name := properties.NAMES.get(item.number)) and name not in properties.LEFT_OUT:
            yield state.globalVid, state.name, name, item.number, item.value


def _nic_rows(state: Any) -> Iterator[tuple[Any, ...]]:
    for item in state.properties.list:
        if item.number == properties.NICS:
            try:
                nics = _NICS.FromString(item.value).list
            except DecodeError:
                continue
            for nic in nics:
                yield nic.GUID, state.name, nic.id, nic.name, nic.deviceId, nic.vendorId, nic.linkLayer
