"""What diag stands on: Python and packages, its cache and disks, the terminal, and whether there is a GPU."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import diag
from diag.collect.gpu import gpu_devices
from diag.doctor.check import Check
from diag.errors import DiagError, InputError
from diag.ingest import calibrations
from diag.model import units
from diag.store.cache import Cache

CORE = (
    "adbc-driver-manager",
    "adbc-driver-sqlite",
    "lz4",
    "msgspec",
    "numpy",
    "pandas",
    "prometheus-client",
    "protobuf",
    "pyarrow",
    "rich",
    "textual",
    "typer",
)
"""What the core asks for; a test compares it with pyproject.toml, which an installation does not hold."""

OLDEST_PYTHON = (3, 11)
LITTLE_SPACE_BYTES = 2 * 10**9
"""A case of a large trace takes about as much."""

ITSELF, STORAGE, TERMINAL, GPU = "diag itself", "Storage", "Terminal", "GPU (not needed to read)"


def python(version: tuple[int, ...] = sys.version_info[:3]) -> Check:
    text = ".".join(map(str, version))
    said = f"Python {text} at {sys.executable}, diag {diag.__version__} in {Path(diag.__file__).parent}"
    if version[:2] < OLDEST_PYTHON:
        return Check(ITSELF, "Python", "broken", said, "Install diag under Python 3.11 or newer.")
    return Check(ITSELF, "Python", "ok", said)


def packages(needed: Sequence[str] = CORE) -> Check:
    versions = {name: _version(name) for name in needed}
    if absent := [name for name, version in versions.items() if version is None]:
        fix = f"pip install {' '.join(absent)}"
        return Check(ITSELF, "Packages", "broken", f"not installed: {', '.join(absent)}", fix)
    return Check(ITSELF, "Packages", "ok", ", ".join(f"{name} {version}" for name, version in versions.items()))


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def cache() -> Check:
    name = "Cache of cases"
    try:
        found = Cache.of_user()
    except DiagError as error:
        return Check(STORAGE, name, "broken", str(error).rstrip("."), "Correct or unset DIAG_CACHE_BYTES.")
    if found is None:
        fix = "Name a folder that you may write: DIAG_CACHE=FOLDER"
        return Check(STORAGE, name, "limited", "its folder cannot be written, so every report reads anew", fix)
    taken, bound = units.size(found.size_bytes), units.size(found.limit_bytes)
    held = units.count(len(found.newest_first()), "case")
    return Check(STORAGE, name, "ok", f"{found.folder}: {held}, {taken} of at most {bound}")


def free_space(name: str, folder: Path) -> Check:
    """Room on the disk of a folder that exists, or will be made."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    free_bytes = shutil.disk_usage(existing).free
    said = f"{units.size(free_bytes)} free at {existing}"
    if free_bytes < LITTLE_SPACE_BYTES:
        return Check(STORAGE, name, "limited", said, "Large traces need more: free some, or set DIAG_CACHE and TMPDIR.")
    return Check(STORAGE, name, "ok", said)


def ceilings() -> Check:
    """What `diag calibrate` measured, by which rooflines go."""
    name = "Measured ceilings"
    damaged: list[InputError] = []
    try:
        found = calibrations.kept(damaged.append)
    except (OSError, DiagError):
        found = []
    if damaged:
        said = str(damaged[0]).partition(". ")[0]
        return Check(STORAGE, name, "limited", said, "Measure again: diag calibrate")
    if not found:
        return Check(STORAGE, name, "missing", "none: rooflines go by reports and datasheets", "diag calibrate")
    return Check(STORAGE, name, "ok", f"of {', '.join(each.machine.name for each in found)}")


def temporary_folder() -> Check:
    name = "Temporary files"
    try:
        with tempfile.NamedTemporaryFile(prefix="diag-") as file:
            return Check(STORAGE, name, "ok", f"{Path(file.name).parent} can be written")
    except OSError as error:
        said = f"no folder for them can be written ({error.strerror or error})"
        return Check(STORAGE, name, "broken", said, "Name one that you may write: TMPDIR=FOLDER")


def terminal(*, is_terminal: bool, width: int, color: bool, encoding: str | None) -> Check:
    how = f"{width} columns, {'colours' if color else 'no colours'}, {encoding or 'closed'}"
    said = how if is_terminal else f"{how} (standard output is no terminal)"
    if encoding and encoding.lower().replace("-", "").replace("_", "") != "utf8":
        fix = "Set PYTHONIOENCODING=utf-8 or LC_ALL=C.UTF-8 to see other characters than escapes."
        return Check(TERMINAL, "Output", "limited", said, fix)
    return Check(TERMINAL, "Output", "ok", said)


def locale(environment: Mapping[str, str], encoding: str) -> Check:
    named = next((environment[key] for key in ("LC_ALL", "LC_CTYPE", "LANG") if environment.get(key)), "none set")
    said = f"{named}; file names are read as {encoding}"
    if encoding.lower() != "utf-8":
        return Check(TERMINAL, "Locale", "limited", said, "Set LC_ALL=C.UTF-8, or file names may not be found.")
    return Check(TERMINAL, "Locale", "ok", said)


def gpu(devices: Path = Path("/dev"), driver: Path = Path("/proc/driver/nvidia")) -> Iterator[Check]:
    """Signs of a GPU and its driver, found without loading a library."""
    found = gpu_devices(devices)
    if found:
        models = [_model(file) for file in sorted(driver.glob("gpus/*/information"))]
        yield Check(GPU, "Devices", "ok", ", ".join(found) + (f": {', '.join(models)}" if models else ""))
    else:
        yield Check(GPU, "Devices", "missing", f"no {devices}/nvidia0; profile on a machine with a GPU, read here")
    yield _driver(driver / "version")
    smi = shutil.which("nvidia-smi")
    yield Check(GPU, "nvidia-smi", "ok" if smi else "missing", smi or "not on PATH; it comes with the driver")
    has_nvml = find_spec("pynvml") is not None
    fix = None if has_nvml else "To watch a running program: pip install 'gpu-diag[live]'"
    said = "can be imported" if has_nvml else "not installed"
    yield Check(GPU, "nvidia-ml-py", "ok" if has_nvml else "missing", said, fix)


def _driver(version: Path) -> Check:
    try:
        words = version.read_text().partition("\n")[0].split()
    except OSError:
        return Check(GPU, "Driver", "missing", f"no {version}: NVIDIA's kernel module is not loaded here")
    number = next((word for word in words if re.fullmatch(r"\d+(\.\d+)+", word)), None)
    return Check(GPU, "Driver", "ok", f"version {number}" if number else " ".join(words))


def _model(information: Path) -> str:
    lines = information.read_text(errors="replace").splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("Model:")), "unknown model")


def storage() -> Iterator[Check]:
    yield cache()
    try:
        found = Cache.of_user()
    except DiagError:
        found = None
    if found:
        yield free_space("Disk of the cache", found.folder)
    yield ceilings()
    here = temporary_folder()
    yield here
    if here.state == "ok":
        yield free_space("Disk of temporary files", Path(tempfile.gettempdir()))


def output(stream: object, *, width: int, color: bool, is_terminal: bool) -> Iterator[Check]:
    yield terminal(is_terminal=is_terminal, width=width, color=color, encoding=getattr(stream, "encoding", None))
    yield locale(os.environ, sys.getfilesystemencoding())
