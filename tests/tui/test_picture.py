from __future__ import annotations

import pytest

from tests.tui.picture import seen

FRAME = """<svg xmlns="http://www.w3.org/2000/svg"><style>
.t-1-r1 {{ fill: #fff }}
.t-1-r2 {{ fill: #000 }}
.t-1-r3 {{ fill: #fff;text-decoration: underline; }}
</style>{}</svg>"""


def text(column: int, of: str, style: int = 1, top: float = 20.0) -> str:
    return f'<text class="t-1-r{style}" x="{column * 12.2:.1f}" y="{top}">{of.replace(" ", "&#160;")}</text>'


def ground(column: int, width: int, fill: str) -> str:
    return (
        f'<rect fill="{fill}" x="{column * 12.2:.1f}" y="1.5" width="{width * 12.2:.1f}" shape-rendering="crispEdges"/>'
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (text(0, "ab  "), text(0, "ab")),
        (text(0, "a b"), text(0, "a") + text(2, "b")),
        (text(0, "  ab"), text(2, "a") + text(3, "b")),
        (text(0, "行列x"), text(0, "行") + text(2, "列x")),
        (ground(0, 4, "#111"), ground(0, 1, "#111") + ground(1, 3, "#111")),
    ],
)
def test_how_cells_are_cut_up_is_not_seen(one: str, other: str) -> None:
    assert seen(FRAME.format(one)) == seen(FRAME.format(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (text(0, "ab"), text(0, "ac")),
        (text(0, "ab"), text(1, "ab")),
        (text(0, "ab"), text(0, "ab", top=44.4)),
        (text(0, "ab"), text(0, "ab", style=2)),
        (text(0, "ab", style=3), text(0, "ab ", style=3)),
        (text(0, "ab"), text(0, "ab", style=3)),
        (ground(0, 4, "#111"), ground(0, 5, "#111")),
        (ground(0, 4, "#111"), ground(0, 4, "#112")),
    ],
)
def test_everything_else_is(one: str, other: str) -> None:
    assert seen(FRAME.format(one)) != seen(FRAME.format(other))
