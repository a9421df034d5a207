from __future__ import annotations

from pathlib import Path

import pytest
from textual.binding import Binding
from textual.dom import DOMNode

from diag.tui.app import DiagApp
from diag.tui.faults import FaultScreen
from diag.tui.screens.evidence import EvidenceScreen
from diag.tui.screens.findings import Findings
from diag.tui.screens.opening import Opening
from diag.tui.screens.overview import Overview
from diag.tui.screens.rule_page import RulePage
from diag.tui.screens.sql import Sql
from diag.tui.widgets.chooser import Chooser
from diag.tui.widgets.files import Files
from diag.tui.widgets.rows import Rows

PAGE = (Path(__file__).parents[2] / "docs" / "tui.md").read_text(encoding="utf-8")
WRITTEN = {"slash": "/", "question_mark": "?", "ctrl+up": "ctrl+↑", "ctrl+down": "ctrl+↓", "f5": "F5"}
IN_A_ROW = {str(number) for number in range(2, 9)}
"""Between `1` and `9`."""


@pytest.mark.parametrize(
    "of", [DiagApp, Opening, Chooser, Files, Overview, Findings, EvidenceScreen, RulePage, Sql, Rows, FaultScreen]
)
def test_every_key_is_documented(of: type[DOMNode]) -> None:
    keys = {key for binding in Binding.make_bindings(of.BINDINGS) for key in binding.key.split(",")}
    assert keys
    missing = [key for key in keys - IN_A_ROW if f"`{WRITTEN.get(key, key)}`" not in PAGE]
    assert missing == []
