"""A picture as PNG: exactly the SVG file, drawn by resvg in its light colours."""

from __future__ import annotations

from functools import cache
from types import ModuleType

from diag.errors import ToolMissing

FAMILIES = (
    "DejaVu Sans", "Liberation Sans", "Noto Sans", "Arial", "Helvetica", "Open Sans", "Ubuntu", "Ubuntu Sans",
    "Roboto", "Cantarell", "Adwaita Sans", "Inter", "FreeSans", "Nimbus Sans", "Lato",
)  # fmt: skip
"""Fonts of Linux distributions. resvg knows no "sans-serif" of its own, and leaves text out where it knows no font."""

_WITH_TEXT, _WITHOUT = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20">'
    f'<text y="15" font-family="sans-serif">{said}</text></svg>'
    for said in ("m", "")
)


def check() -> None:
    """Raises ToolMissing where no PNG can be made here, or none with text in it."""
    sans_serif()


def png_of(svg: str, scale: float = 1.0) -> bytes:
    """`scale` times as many pixels as the picture has units. Raises ToolMissing like `check`."""
    drawn: bytes = _resvg().svg_to_bytes(svg_string=svg, sans_serif_family=sans_serif(), zoom=scale)
    return drawn


@cache
def sans_serif() -> str:
    """The first of `FAMILIES` with which something is drawn."""
    resvg = _resvg()
    nothing = resvg.svg_to_bytes(svg_string=_WITHOUT)
    for family in FAMILIES:
        if resvg.svg_to_bytes(svg_string=_WITH_TEXT, sans_serif_family=family) != nothing:
            return family
    raise ToolMissing(
        "No font was found to draw text with, and a PNG would have none. Install one (apt install fonts-dejavu-core), "
        "or take --format svg."
    )


def _resvg() -> ModuleType:
    try:
        import resvg_py
    except ImportError as error:
        raise ToolMissing(
            "PNG needs resvg, which is not installed: pip install 'gpu-diag[plots]'. Or take --format svg."
        ) from error
    module: ModuleType = resvg_py
    return module
