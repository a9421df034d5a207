"""GPM, NVML's counters of what the SMs do: between two samples, on Hopper and newer, with drivers since 520.

Unlike `utilization.gpu`, which is full as soon as one kernel is resident, they count SMs and pipelines.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from diag.collect.nvml_errors import Code, NvmlReturn, Untold
from diag.collect.nvml_library import Handle

_FIRST = "It is a mean between two readings: from the second one on."
_NOT_COUNTED = "The driver counted nothing between the last two readings."


class Gpm:
    """Activity of the SMs and of their tensor cores, in percent, since the last reading of one device.

    Samples of a MIG instance are asked of its GPU: then `gpu_instance` is NVML's number of the part that it runs on.
    """

    def __init__(self, gpu: Handle, gpu_instance: int | None = None) -> None:
        self._gpu = gpu
        self._gpu_instance = gpu_instance
        self._samples: list[Any] = []  # the last one taken first
        self._is_first = True

    def is_supported(self, nvml: Any) -> bool:
        return bool(nvml.nvmlGpmQueryDeviceSupport(self._gpu).isSupportedDevice)

    def read(self, nvml: Any, _device: Handle) -> Sequence[float]:
        if not self._samples:
            if not self.is_supported(nvml):
                raise NvmlReturn(Code.NOT_SUPPORTED)
            self._samples = [nvml.nvmlGpmSampleAlloc(), nvml.nvmlGpmSampleAlloc()]
        self._take(nvml, self._samples[1])
        self._samples.reverse()
        if self._is_first:
            self._is_first = False
            raise Untold(_FIRST)
        return self._between(nvml, earlier=self._samples[1], later=self._samples[0])

    def _take(self, nvml: Any, sample: Any) -> None:
        if self._gpu_instance is None:
            nvml.nvmlGpmSampleGet(self._gpu, sample)
        else:
            nvml.nvmlGpmMigSampleGet(self._gpu, self._gpu_instance, sample)

    def _between(self, nvml: Any, earlier: Any, later: Any) -> Sequence[float]:
        asked = nvml.c_nvmlGpmMetricsGet_t()
        asked.version = nvml.NVML_GPM_METRICS_GET_VERSION
        asked.sample1, asked.sample2 = earlier, later
        metrics = (nvml.NVML_GPM_METRIC_SM_UTIL, nvml.NVML_GPM_METRIC_ANY_TENSOR_UTIL)
        asked.numMetrics = len(metrics)
        for at, metric in enumerate(metrics):
            asked.metrics[at].metricId = metric
        answer = nvml.nvmlGpmMetricsGet(asked)
        return [_checked(nvml, answer.metrics[at]) for at in range(len(metrics))]

    def close(self, nvml: Any) -> None:
        for sample in self._samples:
            nvml.nvmlGpmSampleFree(sample)
        self._samples = []


def _checked(nvml: Any, metric: Any) -> float:
    if metric.nvmlReturn != nvml.NVML_SUCCESS:
        raise NvmlReturn(metric.nvmlReturn)
    if not math.isfinite(metric.value):
        raise Untold(_NOT_COUNTED)
    return float(metric.value)
