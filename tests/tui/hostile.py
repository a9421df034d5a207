"""Names as an attacker or a broken tool would write them."""

from __future__ import annotations

from collections.abc import Mapping

NAMES: Mapping[str, str] = {
    "mark-up": "[bold red]kernel[/] [@click=app.quit]here[/]",
    "escape codes": "\x1b[31mred\x1b[2J\x1b]0;title\x07",
    "right to left": "\u202eevil\u202c שלום مرحبا",
    "wide": "行列乗算カーネル",
    "combining": "e\u0301" + "a" + "\u0300" * 50 + "z",
    "long": "x" * 100_000,
    "controls": "nul\x01\x7f\x9b\u2028end",
    "joined": "👩\u200d👩\u200d👧 ❤\ufe0f ﷽",
    "surrogate": "caf\udce9",
}
