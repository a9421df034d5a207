"""Why NVML gives no value, in sentences that say what to do. Codes: NVML API Reference, nvmlReturn_t."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

from diag.collect.gpu import ALLOW_COUNTERS


class Code(IntEnum):
    """Those of nvmlReturn_t that something follows from."""

    INVALID_ARGUMENT = 2
    NOT_SUPPORTED = 3
    NO_PERMISSION = 4
    NOT_FOUND = 6
    DRIVER_NOT_LOADED = 9
    TIMEOUT = 10
    LIBRARY_NOT_FOUND = 12
    FUNCTION_NOT_FOUND = 13
    GPU_IS_LOST = 15
    RESET_REQUIRED = 16
    OPERATING_SYSTEM = 17
    LIB_RM_VERSION_MISMATCH = 18
    VGPU_ECC_NOT_SUPPORTED = 22
    ARGUMENT_VERSION_MISMATCH = 25
    DEPRECATED = 26
    UNKNOWN = 999


LASTING = frozenset(
    {
        Code.NOT_SUPPORTED,
        Code.NO_PERMISSION,
        Code.FUNCTION_NOT_FOUND,
        Code.LIB_RM_VERSION_MISMATCH,
        Code.VGPU_ECC_NOT_SUPPORTED,
        Code.ARGUMENT_VERSION_MISMATCH,
        Code.DEPRECATED,
    }
)
"""Answers that would only be repeated if the same were asked again."""

ABSENT = LASTING | {Code.INVALID_ARGUMENT}
"""How drivers say that they do not know a number of nvmlDeviceGetFieldValues; older ones call it invalid."""

IN_MIG_MODE = "NVML does not tell it of a GPU in MIG mode: see its instances."
OF_WHOLE_GPU = "A MIG instance has none of its own: see the GPU that it is a part of."
LOST = (
    "The GPU is lost: it fell off the bus or answers no more. Keep what `dmesg` says of it (XID 79) and what "
    "`nvidia-bug-report.sh` writes, then reset it (`sudo nvidia-smi --gpu-reset`) or reboot."
)

_SENTENCES: Mapping[int, str] = {
    Code.NOT_SUPPORTED: "NVML does not offer it on this GPU.",
    Code.NO_PERMISSION: "Only administrators may read it: run diag as root.",
    Code.NOT_FOUND: "NVML knows it no more: start diag anew.",
    Code.INVALID_ARGUMENT: "NVML knows it no more, as after a change of the MIG instances: start diag anew.",
    Code.FUNCTION_NOT_FOUND: "The driver, or nvidia-ml-py, is too old for it: update both.",
    Code.GPU_IS_LOST: LOST,
    Code.RESET_REQUIRED: "The GPU must be reset: end its processes, then `sudo nvidia-smi --gpu-reset`.",
    Code.OPERATING_SYSTEM: "The operating system refuses it: look at cgroup rules and security modules (`dmesg`).",
    Code.VGPU_ECC_NOT_SUPPORTED: "A virtual GPU has no ECC of its own.",
    Code.ARGUMENT_VERSION_MISMATCH: "The driver does not know this version of the question: update it.",
    Code.DEPRECATED: "The driver does not answer it any more: update diag and nvidia-ml-py.",
}

_NO_GPM = "It comes from GPM, which GPUs have since Hopper (H100) and drivers since 520."
_NO_ECC = "This GPU has no ECC, or it is switched off (`nvidia-smi -q -d ECC`)."
_NO_NVLINK = "This GPU has no NVLink, or the driver does not count its traffic."

_OF_FIELD: Mapping[tuple[str, int], str] = {
    ("sm_active_pct", Code.NOT_SUPPORTED): _NO_GPM,
    ("tensor_active_pct", Code.NOT_SUPPORTED): _NO_GPM,
    ("sm_active_pct", Code.FUNCTION_NOT_FOUND): _NO_GPM,
    ("tensor_active_pct", Code.FUNCTION_NOT_FOUND): _NO_GPM,
    ("sm_active_pct", Code.NO_PERMISSION): f"Only administrators may read GPM. {ALLOW_COUNTERS}",
    ("tensor_active_pct", Code.NO_PERMISSION): f"Only administrators may read GPM. {ALLOW_COUNTERS}",
    ("ecc_corrected", Code.NOT_SUPPORTED): _NO_ECC,
    ("ecc_uncorrected", Code.NOT_SUPPORTED): _NO_ECC,
    ("nvlink_rx_bytes", Code.NOT_SUPPORTED): _NO_NVLINK,
    ("nvlink_tx_bytes", Code.NOT_SUPPORTED): _NO_NVLINK,
}


class Untold(Exception):
    """A reason, other than an error of NVML, for which there is no value."""

    def __init__(self, sentence: str, *, is_lasting: bool = False) -> None:
        super().__init__(sentence)
        self.is_lasting = is_lasting


class NvmlReturn(Exception):
    """A code that came inside an answer, where pynvml raises nothing."""

    def __init__(self, value: int) -> None:
        super().__init__(value)
        self.value = value


def code_of(error: Exception) -> int:
    """Of an error of pynvml, of whichever version; what its module lacks, too old a module lacks."""
    known = getattr(error, "value", None)
    # NVMLLibraryMismatchError and AttributeError carry no code.
    return known if isinstance(known, int) else Code.FUNCTION_NOT_FOUND


def sentence(code: int, field: str, *, is_in_mig_mode: bool = False) -> str:
    """Why `field` of a GpuReading has no value."""
    if is_in_mig_mode and code in (Code.NOT_SUPPORTED, Code.NO_PERMISSION) and (field, code) not in _OF_FIELD:
        return IN_MIG_MODE if code == Code.NOT_SUPPORTED else f"{IN_MIG_MODE[:-1]}, or run diag as root."
    return _OF_FIELD.get((field, code)) or _SENTENCES.get(code) or f"NVML answered with error {code} (nvmlReturn_t)."


def is_lasting(error: Exception) -> bool:
    return error.is_lasting if isinstance(error, Untold) else code_of(error) in LASTING
