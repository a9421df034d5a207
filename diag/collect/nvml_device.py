"""One GPU or MIG instance: what it is asked at each reading, and what it has said that it cannot tell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Any

from diag.collect.nvml_errors import LOST, OF_WHOLE_GPU, Code, NvmlReturn, Untold, code_of, is_lasting, sentence
from diag.collect.nvml_gpm import Gpm
from diag.collect.nvml_library import Handle
from diag.collect.nvml_processes import Processes
from diag.collect.nvml_questions import FACTS, OF_BOTH, OF_GPU, Question
from diag.collect.nvml_traffic import PcieTraffic, nvlink_bytes
from diag.model.live import GpuReading, Xid


@dataclass(frozen=True)
class Identity:
    """What a device is. A MIG instance has the index of its GPU."""

    index: int
    uuid: str
    name: str
    parent_uuid: str | None = None
    mig_profile: str | None = None
    is_in_mig_mode: bool = False  # a GPU whose instances do the work


_ALWAYS_THERE = frozenset({"index", "uuid", "name", "parent_uuid", "mig_profile", "xids", "xid_count", "untold"})
_TELLABLE = tuple(field.name for field in fields(GpuReading) if field.name not in _ALWAYS_THERE)


class Device:
    def __init__(
        self, nvml: Any, identity: Identity, handle: Handle, gpm: Gpm, processes: Processes, pcie: PcieTraffic
    ) -> None:
        self.identity = identity
        self.handle = handle
        self.is_lost = False
        self._n_xids = 0
        self._nvml = nvml
        self._gpm = gpm
        of_both = (
            *OF_BOTH,
            Question(("processes",), processes.read),
            Question(("sm_active_pct", "tensor_active_pct"), gpm.read),
        )
        of_gpu = (
            *OF_GPU,
            Question(("pcie_rx_bytes_per_s", "pcie_tx_bytes_per_s"), pcie.read),
            Question(("nvlink_rx_bytes", "nvlink_tx_bytes"), nvlink_bytes),
        )
        is_instance = identity.parent_uuid is not None
        self._each_time: Sequence[Question] = of_both if is_instance else of_both + of_gpu
        self._once: Sequence[Question] = () if is_instance else FACTS
        self._facts: dict[str, Any] = {}
        asked = {field for question in (*self._each_time, *self._once) for field in question.fields}
        self._never = {field: OF_WHOLE_GPU for field in _TELLABLE if field not in asked}
        """Why a field will not be told in this run: it is not asked for again."""
        if is_instance:
            self._never["xids"] = OF_WHOLE_GPU

    def read(self, xids: Sequence[Xid] = (), xids_untold: str | None = None) -> GpuReading:
        untold: dict[str, str] = {}
        told = self._ask_all(untold)
        if self.is_lost:
            told = self._facts
            untold = {field: LOST for field in _TELLABLE if field not in told}
        if xids_untold:
            untold["xids"] = xids_untold
        self._n_xids += len(xids)
        who = self.identity
        return GpuReading(
            index=who.index,
            uuid=who.uuid,
            name=who.name,
            parent_uuid=who.parent_uuid,
            mig_profile=who.mig_profile,
            xids=tuple(xids),
            xid_count=None if "xids" in untold else self._n_xids,
            untold=untold,
            **told,
        )

    def _ask_all(self, untold: dict[str, str]) -> dict[str, Any]:
        self._facts |= self._ask(self._once, untold)
        told = self._facts | self._ask(self._each_time, untold)
        untold |= self._never
        settled = self._facts.keys() | self._never.keys()
        self._once = [question for question in self._once if question.fields[0] not in settled]
        self._each_time = [question for question in self._each_time if question.fields[0] not in self._never]
        return told

    def _ask(self, questions: Iterable[Question], untold: dict[str, str]) -> dict[str, Any]:
        """Answers by field. Why one is missing goes into `untold`, or for good into `_never`."""
        told: dict[str, Any] = {}
        for question in questions:
            if self.is_lost:
                break
            try:
                told.update(zip(question.fields, question.ask(self._nvml, self.handle), strict=True))
            except (self._nvml.NVMLError, NvmlReturn, Untold, AttributeError) as error:
                self.is_lost = code_of(error) == Code.GPU_IS_LOST
                reasons = self._never if is_lasting(error) else untold
                reasons |= {field: self._why(error, field) for field in question.fields}
        return told

    def _why(self, error: Exception, field: str) -> str:
        if isinstance(error, Untold):
            return str(error)
        return sentence(code_of(error), field, is_in_mig_mode=self.identity.is_in_mig_mode)

    @property
    def has_gpm(self) -> bool:
        """Whether it tells the activity of its SMs."""
        try:
            return self._gpm.is_supported(self._nvml)
        except (self._nvml.NVMLError, AttributeError):
            return False

    def close(self) -> None:
        # A sample of a lost GPU cannot be given back.
        with suppress(self._nvml.NVMLError):
            self._gpm.close(self._nvml)
