"""Plots read back with an XML parser, and what holds of all of them."""

from __future__ import annotations

import re
from xml.etree import ElementTree

SVG = "{http://www.w3.org/2000/svg}"
MOST_BYTES = 300_000
"""Of one file; docs/plots.md promises it."""

SHAPES = {"svg", "title", "desc", "style", "rect", "path", "text", "g", "defs", "pattern", "circle", "polygon"}


def parsed(svg: str) -> ElementTree.Element:
    """Well-formed, whole in itself, told in words, of a bounded size, and with nothing that could run or load."""
    assert len(svg.encode()) <= MOST_BYTES
    root = ElementTree.fromstring(svg.encode())
    assert root.get("role") == "img"
    assert root.get("aria-labelledby") == "title desc"
    assert root.findtext(f"{SVG}title")
    assert root.findtext(f"{SVG}desc")
    assert {each.tag.removeprefix(SVG) for each in root.iter()} <= SHAPES
    assert {key for each in root.iter() for key in each.attrib if key.startswith("on") or key == "href"} == set()
    assert "prefers-color-scheme: dark" in svg
    assert set(re.findall(r"url\(([^)]*)\)", svg)) <= {f"#{each.get('id')}" for each in root.iter(f"{SVG}pattern")}
    values = [value for each in root.iter() for value in each.attrib.values()] + [str(root.findtext(f"{SVG}style"))]
    assert not [value for value in values if re.search(r"https?:|//|@import|javascript:", value)]
    return root


def texts(svg: str) -> list[str]:
    return [each.text or "" for each in parsed(svg).iter(f"{SVG}text")]


def described(svg: str) -> str:
    return str(parsed(svg).findtext(f"{SVG}desc"))


def shapes(svg: str, look: str) -> list[ElementTree.Element]:
    """Of a class, those of the legend too."""
    return [each for each in parsed(svg).iter() if look in each.get("class", "").split()]


def hints(svg: str) -> list[str]:
    """What is told under the pointer."""
    marks = [each for each in parsed(svg).iter() if each.tag != f"{SVG}svg"]
    return [str(each.findtext(f"{SVG}title")) for each in marks if each.find(f"{SVG}title") is not None]
