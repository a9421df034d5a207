"""What is published: the metadata, both archives, and what the installed program costs and needs."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import time
import tomllib
import zipfile
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest

import diag
from tests import third_party

ROOT = Path(__file__).parents[1]
SHIPPED_SUFFIXES = {".py", ".sql", ".toml", ".md", ".tcss", ".typed", ".css", ".js"}
SHIPPED = ("README.md", "LICENSE", "THIRD-PARTY.md", "CHANGELOG.md")
STARTUP_LIMIT_S = 0.4
OPTIONAL_MODULES = ("torch", "triton", "pynvml", "ncu_report", "distributed", "dask")

needs_cli = pytest.mark.skipif(
    not (ROOT / "diag/cli/app.py").exists(), reason="there is no command line yet (diag.cli.app)"
)


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    metadata: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return metadata


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The sdist, the wheel made from the repository and the wheel made from the sdist."""
    place = tmp_path_factory.mktemp("archives")
    build(ROOT, place / "repository", "--sdist", "--wheel")
    sdist = only(place / "repository", "*.tar.gz")
    (place / "unpacked").mkdir()
    subprocess.run(["tar", "-xzf", sdist, "-C", place / "unpacked"], check=True)
    build(only(place / "unpacked", "*"), place / "sdist", "--wheel")
    return {
        "sdist": sdist,
        "wheel": only(place / "repository", "*.whl"),
        "wheel from sdist": only(place / "sdist", "*.whl"),
    }


def build(source: Path, target: Path, *kinds: str) -> None:
    """Build with the tools of this environment: no network, no environment of its own."""
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(target), *kinds, str(source)]
    done = subprocess.run(command, cwd=target.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def only(folder: Path, pattern: str) -> Path:
    (path,) = folder.glob(pattern)
    return path


def source_files() -> set[str]:
    """Names, as seen through diag/, of the files that a user needs."""
    names = set()
    for folder, subfolders, files in os.walk(ROOT / "diag", followlinks=True):
        subfolders[:] = [name for name in subfolders if name != "__pycache__"]
        paths = (Path(folder, name) for name in files)
        names |= {str(path.relative_to(ROOT)) for path in paths if path.suffix in SHIPPED_SUFFIXES}
    return names


def test_the_version_is_the_same_everywhere() -> None:
    installed = distribution("gpu-diag").version
    assert diag.__version__ == installed, "the installation is older than the sources: run `make dev`"
    changes = (ROOT / "CHANGELOG.md").read_text()
    assert f"## [{installed}]" in changes or "## [Unreleased]" in changes


@needs_cli
def test_the_command_tells_that_version(tmp_path: Path) -> None:
    told = subprocess.run(
        [Path(sys.executable).with_name("diag"), "--version"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert told.stdout == f"diag {distribution('gpu-diag').version}\n" == f"diag {diag.__version__}\n"


def test_the_licence_and_python_version(project: dict[str, Any]) -> None:
    metadata = distribution("gpu-diag").metadata
    assert metadata["License-Expression"] == project["license"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"


def test_the_notices_name_every_package_that_diag_may_bring_along() -> None:
    written = (ROOT / "THIRD-PARTY.md").read_text("utf-8")
    assert third_party.named(written) == third_party.required(), "run: make docs"


def test_every_table_of_figures_states_its_source() -> None:
    tables = sorted((ROOT / "diag/model/data").glob("*.toml"))
    assert len(tables) > 3
    assert [table.name for table in tables if "source" not in table.read_text("utf-8").lower()] == []


def test_the_core_asks_for_neither_torch_nor_a_gpu_library(project: dict[str, Any]) -> None:
    core = {requirement.partition(">=")[0] for requirement in project["dependencies"]}
    assert not core & {"torch", "triton", "nvidia-ml-py", "py-spy", "ncu-report"}


def test_the_constraints_are_exact_and_of_known_packages(project: dict[str, Any]) -> None:
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line and line[0] != "#"]
    pinned = {name for name, equals, version in (line.partition("==") for line in lines) if equals and version}
    assert len(pinned) == len(lines)
    extras = [requirement for extra in project["optional-dependencies"].values() for requirement in extra]
    assert pinned <= {requirement.partition(">=")[0] for requirement in [*project["dependencies"], *extras]}


def test_the_sdist_holds_plain_files_only(archives: dict[str, Path]) -> None:
    with tarfile.open(archives["sdist"]) as tar:
        members = tar.getmembers()
    assert all(member.isfile() for member in members)
    top = {Path(member.name).parts[1] for member in members}
    assert top == {*SHIPPED, "diag", "pyproject.toml", "PKG-INFO", ".gitignore"}


def test_the_archives_hold_every_file_behind_the_links(archives: dict[str, Path]) -> None:
    with zipfile.ZipFile(archives["wheel"]) as wheel:
        in_wheel = set(wheel.namelist())
    with tarfile.open(archives["sdist"]) as tar:
        in_sdist = {str(Path(*Path(name).parts[1:])) for name in tar.getnames()}
    assert source_files() <= in_wheel
    assert source_files() <= in_sdist


def test_the_wheel_installs_diag_alone(archives: dict[str, Path]) -> None:
    with zipfile.ZipFile(archives["wheel"]) as wheel:
        names = wheel.namelist()
    info = f"gpu_diag-{diag.__version__}.dist-info"
    assert {name.partition("/")[0] for name in names} == {"diag", info}
    assert {f"{info}/licenses/LICENSE", f"{info}/licenses/THIRD-PARTY.md"} <= set(names)


def test_a_wheel_from_the_sdist_equals_one_from_the_repository(archives: dict[str, Path]) -> None:
    with zipfile.ZipFile(archives["wheel"]) as first, zipfile.ZipFile(archives["wheel from sdist"]) as second:
        assert first.namelist() == second.namelist()
        assert all(first.read(name) == second.read(name) for name in first.namelist())


def test_the_core_imports_without_its_extras(tmp_path: Path) -> None:
    """Every module but the probes and kernels, with the optional packages made impossible to import."""
    code = f"""
import importlib, pkgutil, sys
sys.modules.update(dict.fromkeys({OPTIONAL_MODULES!r}))
import diag
optional = ("diag.probes", "diag.kernels")
names = [m.name for m in pkgutil.walk_packages(diag.__path__, "diag.") if not m.name.startswith(optional)]
for name in names:
    if not name.endswith("__main__"):
        importlib.import_module(name)
assert len(names) > 5, names
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@needs_cli
def test_the_command_exists() -> None:
    (command,) = (entry for entry in distribution("gpu-diag").entry_points if entry.name == "diag")
    assert command.value == "diag.cli.app:main"
    assert callable(command.load())


@needs_cli
def test_help_is_quick(tmp_path: Path) -> None:
    """A prompt answer to --help: nothing heavy may be imported on the way there."""
    program = Path(sys.executable).with_name("diag")
    tries_s = []
    for _ in range(5):
        began = time.perf_counter()
        subprocess.run([program, "--help"], cwd=tmp_path, stdout=subprocess.DEVNULL, check=True)
        tries_s.append(time.perf_counter() - began)
        if tries_s[-1] < STARTUP_LIMIT_S:
            return
    pytest.fail(f"`diag --help` took {min(tries_s):.2f} s at best")


@needs_cli
@pytest.mark.parametrize("module", ["numpy", "pandas", "pyarrow", "sqlite_utils", *OPTIONAL_MODULES])
def test_help_imports_nothing_heavy(module: str, tmp_path: Path) -> None:
    code = f"import sys, diag.cli.verbs; sys.exit({module!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=False).returncode == 0
