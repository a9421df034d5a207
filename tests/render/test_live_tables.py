"""What was watched, in every format."""

from __future__ import annotations

import json
from pathlib import Path

from diag.render.json_report import render_json
from diag.render.markdown import render_markdown
from diag.render.text import render_text
from diag.rules.analysis import analyse
from diag.rules.report import Report
from tests.builders.imported import imported
from tests.builders.live import Watched, device, process, watched
from tests.rules.test_live_loader import loading


def report_on(made: Watched, folder: Path) -> Report:
    with imported(made, folder) as case:
        return analyse(case)


def test_a_device_and_its_processes_are_rows(tmp_path: Path) -> None:
    report = report_on(loading(), tmp_path)
    text = render_text(report, width=110)
    assert "Devices as they were watched" in text
    assert "30.0 %     90.0 %" in text
    assert "0.97            0.97  4.3 GB" in text
    assert "| 30.0 % | 90.0 % |" in render_markdown(report)


def test_json_has_them_with_units_in_their_names(tmp_path: Path) -> None:
    told = json.loads(render_json(report_on(loading(), tmp_path)))
    (row,) = told["live_devices"]
    assert (row["device"], row["resident_pct"], row["power_limit_w"], row["xids"]) == (0, 30.0, 700.0, 0)
    assert [(each["process"], each["is_watched"]) for each in told["live_processes"]] == [
        (100, True),
        (201, False),
        (202, False),
    ]


def test_what_is_not_known_is_no_number(tmp_path: Path) -> None:
    made = watched(lambda _: device(power_w=None, sm_active_pct=None), lambda at: [process(at, read_bytes=None)])
    text = render_text(report_on(made, tmp_path), width=110)
    (line,) = (line for line in text.splitlines() if line.endswith("GPU 0, NVIDIA H200"))
    assert line.split()[2] == "-"


def test_many_devices_are_counted(tmp_path: Path) -> None:
    made = watched(lambda _: [device(index=i, uuid=f"GPU-{i}", resident_pct=99.0 - i) for i in range(12)])
    text = render_text(report_on(made, tmp_path), width=110)
    assert "and 4 more" in text
    assert "GPU 11, NVIDIA H200" in text
