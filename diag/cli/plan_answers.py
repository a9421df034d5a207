"""What `diag plan` answers, on standard output."""

from __future__ import annotations

from collections.abc import Sequence

from diag.cli.choices import TextOrJson
from diag.cli.terminal import width, write
from diag.model.plan import Answer
from diag.render.plan import render_json, render_text


def show(answers: Sequence[Answer], output_format: TextOrJson) -> None:
    write(render_json(answers) if output_format is TextOrJson.JSON else render_text(answers, width=width()))
