"""Reads the GPUs of this machine through NVML, the library that nvidia-smi uses too.

Nothing here needs a change of the workload, and nothing stops a kernel. What NVML does not tell is told as such, by
field and with a reason; a reading never fails.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from diag.collect import nvml_library
from diag.collect.nvml_device import Device
from diag.collect.nvml_events import XidEvents, address
from diag.collect.nvml_listing import Listing, list_devices
from diag.errors import ToolMissing
from diag.model.live import GpuReading, Xid


class Nvml:
    """A context manager. Without GPUs it opens, too: then `untold` says why readings are empty.

    `library`: in place of the module pynvml.
    """

    def __init__(self, library: Any = None) -> None:
        self._library = library
        self._nvml: Any = None
        self._listing: Listing | None = None
        self._events: XidEvents | None = None
        self._refusal: str | None = None

    def __enter__(self) -> Self:
        try:
            self._nvml = nvml_library.start(self._library) if self._library else nvml_library.load()
            self._listing = nvml_library.at_start(self._nvml, list_devices)
        except ToolMissing as error:
            self._refusal = str(error)
        else:
            gpus = [device.handle for device in self.devices if device.identity.parent_uuid is None]
            self._events = XidEvents(self._nvml, gpus)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._nvml is None:
            return
        for device in self.devices:
            device.close()
        with suppress(self._nvml.NVMLError):
            if self._events:
                self._events.close()
        with suppress(self._nvml.NVMLError):
            self._nvml.nvmlShutdown()

    @property
    def devices(self) -> Sequence[Device]:
        return self._listing.devices if self._listing else ()

    @property
    def driver(self) -> str | None:
        """Its version, '550.54.15'."""
        try:
            return nvml_library.text(self._nvml.nvmlSystemGetDriverVersion) if self._listing else None
        except self._nvml.NVMLError:
            return None

    @property
    def untold(self) -> Mapping[str, str]:
        """For a Snapshot: under 'gpus' why there are none, or not all."""
        said = self._listing.missing if self._listing else self._refusal
        return {"gpus": said} if said else {}

    def read(self, time_ns: int) -> tuple[GpuReading, ...]:
        """All devices now. `time_ns`: of the snapshot, for the XIDs that came since the last reading."""
        if self._listing is None or self._events is None:
            return ()
        self._listing.turns.next()
        numbers = self._events.read()
        readings = []
        for device in self.devices:
            at = address(device.handle)
            xids = [Xid(number, time_ns) for number in numbers.get(at, ())]
            readings.append(device.read(xids, self._events.untold.get(at)))
        return tuple(readings)
