"""NVML itself: loading it through pynvml, or saying why it cannot be had here, and calling what differs by version."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from diag.collect.gpu import gpu_devices
from diag.collect.nvml_errors import Code
from diag.errors import ToolMissing

Answer = TypeVar("Answer")

Handle = Any
"""An opaque pointer of NVML: a GPU or a MIG instance."""

_NOT_INSTALLED = "GPUs are read through nvidia-ml-py, which is not installed: pip install 'gpu-diag[live]'."
_NOT_ITS_LIBRARY = "This nvidia-ml-py cannot start NVML. Update it: pip install --upgrade nvidia-ml-py."
_NO_GPU = (
    "No GPU of NVIDIA here: the driver's library libnvidia-ml.so.1 is absent, and so are its device files. On a "
    "machine with a GPU install the driver; a container needs `--gpus all` (NVIDIA Container Toolkit)."
)
_NO_LIBRARY = (
    "A GPU is here ({devices}), but not the driver's library libnvidia-ml.so.1. Install the driver whole; a container "
    "needs NVIDIA_DRIVER_CAPABILITIES=compute,utility."
)
_AT_START: Mapping[int, str] = {
    Code.DRIVER_NOT_LOADED: (
        "NVIDIA's kernel module is not loaded, or this container has none of its devices. Load it: `sudo modprobe "
        "nvidia`; a container needs `--gpus all`."
    ),
    Code.LIB_RM_VERSION_MISMATCH: (
        "The driver's library and its kernel module are of different versions, as after an update. Reboot, or load the "
        "module anew; in a container, start the container anew."
    ),
    Code.NO_PERMISSION: (
        "This user may not open the driver's devices. Look at the rights of /dev/nvidiactl and /dev/nvidia0; a "
        "rootless container needs the devices passed in (CDI)."
    ),
    Code.UNKNOWN: (
        "NVML does not start, and does not say why. A container loses its GPUs when its host reloads systemd: start it "
        "anew; else look at `dmesg`."
    ),
    Code.GPU_IS_LOST: "NVML does not start because a GPU is lost: look at `dmesg` (XID 79), reset the GPU or reboot.",
}


def load() -> Any:
    """The module pynvml, with NVML started; `close` ends it. ToolMissing says why not, and what to do."""
    try:
        import pynvml
    except ImportError:
        raise ToolMissing(_NOT_INSTALLED) from None
    return start(pynvml)


def start(nvml: Any) -> Any:
    """The module, once its library is."""
    if not hasattr(nvml, "nvmlInit"):
        raise ToolMissing(_NOT_ITS_LIBRARY)
    at_start(nvml, lambda nvml: nvml.nvmlInit())
    return nvml


def at_start(nvml: Any, step: Callable[[Any], Answer]) -> Answer:
    """What a step answers without which nothing can be read. ToolMissing when it fails."""
    try:
        return step(nvml)
    except nvml.NVMLError as error:
        raise ToolMissing(_why_not_started(error.value)) from error


def _why_not_started(code: int) -> str:
    if code == Code.LIBRARY_NOT_FOUND:
        devices = gpu_devices()
        return _NO_LIBRARY.format(devices=", ".join(devices)) if devices else _NO_GPU
    return _AT_START.get(code) or f"NVML does not start (nvmlReturn_t {code}): look at `nvidia-smi` and `dmesg`."


def call(nvml: Any, names: Sequence[str], *arguments: object) -> Any:
    """What the first of several functions answers that both pynvml and the driver have."""
    for name in names[:-1]:
        function = getattr(nvml, name, None)
        if function is None:
            continue
        try:
            return function(*arguments)
        except nvml.NVMLError_FunctionNotFound:
            continue
    return getattr(nvml, names[-1])(*arguments)


def text(ask: Callable[[], object]) -> str:
    """A name as NVML gives it: str or bytes by the version of pynvml, which raises at bytes that are not UTF-8."""
    try:
        said = ask()
    except UnicodeDecodeError as error:
        said = error.object
    return said.decode("utf-8", "backslashreplace") if isinstance(said, bytes) else str(said)
