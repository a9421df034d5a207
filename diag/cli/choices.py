"""Choices that several verbs offer."""

from __future__ import annotations

import enum


class TextOrJson(enum.StrEnum):
    TEXT = "text"
    JSON = "json"


class DeviceChoice(enum.StrEnum):
    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"
