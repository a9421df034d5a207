"""Figures on the screens are those of `diag report --format json` for the same file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from typer.testing import CliRunner

from diag.cli.main import app
from diag.model import units
from diag.tui.widgets.row_table import RowTable
from tests.builders.nsys_export import NsysExport
from tests.tui.driving import drive, press, shown
from tests.tui.synthetic_profile import PROFILE
from tests.tui.test_real_kernels import REAL_REPORTS

