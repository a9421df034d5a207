"""What a shell completes beyond verbs, options and choices: names that diag knows.

The shell waits for it at every press of a key, so that nothing which takes time is loaded: no NumPy, no rule, no probe
that needs PyTorch. None of these functions filters by what was typed so far; Typer does.
"""

from __future__ import annotations

import re
from importlib import resources

_RULE = re.compile(r'^@\w+_rule\(\s*"([^"]+)"', re.MULTILINE)


def explained() -> list[str]:
    """Rules, as the source of diag's own declares them: to load them would take three times as long as all the rest."""
    modules = sorted(resources.files("diag.rules").iterdir(), key=lambda file: file.name)
    sources = (file.read_text("utf-8") for file in modules if file.name.endswith(".py"))
    return [*(rule for source in sources for rule in _RULE.findall(source)), "thresholds"]


def probes() -> list[str]:
    from diag.probes import catalogue
    from diag.probes.collective import catalogue as collective

    return [*catalogue.PROBES, catalogue.ALL, *collective.PROBES, collective.ALL]


def operators() -> list[str]:
    """Those that `diag probe inspect` compiles."""
    from diag.kernels.catalogue import NAMES

    return list(NAMES)


def models() -> list[str]:
    from diag.model.model_catalogue import known_models

    return list(known_models())


def lessons() -> list[str]:
    from diag.learn.course import SLUGS

    return [str(number) for number in SLUGS]
