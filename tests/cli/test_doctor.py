"""`diag doctor` as its users run it."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Command
from tests.ingest.ncu_output.pages import details, figure
from tests.ingest.ncu_output.test_text_pages import NEW


def test_a_healthy_machine(diag: Command) -> None:
    shown = diag("doctor").is_quiet_success()
    assert max(map(len, shown.splitlines())) <= 80
    assert "What can be read here" in shown
    assert "\x1b" not in shown
    checks = json.loads(diag("doctor", "--format", "json").is_quiet_success())["checks"]
    assert all(check["state"] in ("ok", "limited", "missing") for check in checks)


def test_it_loads_neither_torch_nor_a_gpu_library(diag: Command, tmp_path: Path) -> None:
    for name in ("torch", "pynvml", "triton"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('loaded')")
    diag("doctor", env={"PYTHONPATH": f"{tmp_path}:{diag.environment().get('PYTHONPATH', '')}"}).is_quiet_success()


def test_without_a_home_it_says_so(diag: Command) -> None:
    shown = diag("doctor", env={"DIAG_CACHE": "/dev/null/x"}).is_quiet_success()
    assert "limited" in shown
    assert "DIAG_CACHE=FOLDER" in shown


def test_files(diag: Command, export: Path, tmp_path: Path) -> None:
    assert "an Nsight Systems export" in " ".join(diag("doctor", export).is_quiet_success().split())
    broken = tmp_path / "broken.sqlite"
    broken.write_bytes(export.read_bytes()[:700])
    ran = diag("doctor", export, broken, tmp_path / "gone", "--format", "json")
    assert ran.status == 3
    assert [check["state"] for check in json.loads(ran.out)["checks"]] == ["ok", "broken", "broken"]


def test_what_ncu_printed_is_known(diag: Command, tmp_path: Path) -> None:
    pages = {"page.csv": details(figure("gpu__time_duration.sum", "ns", "5")), "page.txt": NEW}
    files = [tmp_path / name for name in pages]
    for file in files:
        file.write_text(pages[file.name], encoding="utf-8")
    shown = " ".join(diag("doctor", *files).is_quiet_success().split())
    assert "a page of Nsight Compute in CSV" in shown
    assert "a page of Nsight Compute as text" in shown
