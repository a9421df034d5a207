"""Rules of plug-ins are asked so that a broken one takes nothing down: it is its own *cannot tell*."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

import msgspec
import numpy as np

from diag import plugins
from diag.errors import PluginError
from diag.model import units
from diag.rules.engine import Rule
from diag.rules.finding import Answer, CannotTell, Clear, Finding, Subject


def asked(
    rule: Rule, about: Subject, decide: Callable[[], Iterator[Answer]], sources: Collection[int] = ()
) -> Iterable[Answer]:
    """The answers of a rule. One of a plug-in that fails over `about` has answered nothing of it.

    `sources`: those that an answer may be about, where `about` is not of the only one.
    """
    if not rule.is_of_plugin:
        return decide()
    try:
        with plugins.blamed(plugins.owner(rule.module)):
            return [checked(answer, sources or (about.source,)) for answer in decide()]
    except PluginError as error:
        return [CannotTell(about, str(error))]


def checked(answer: Answer, sources: Collection[int]) -> Answer:
    """The same answer. Raises TypeError or ValueError for one that a report could not keep or show: no checker of types
    need have seen it.
    """
    if not isinstance(answer, Finding | Clear | CannotTell):
        raise TypeError(f"a rule answers a Finding, Clear or CannotTell, and not {type(answer).__name__}")
    plain = msgspec.to_builtins(answer, enc_hook=_encode)
    msgspec.convert(plain, type(answer), dec_hook=lambda *_: np.empty(0, np.int64))
    if answer.subject.source not in sources:
        raise ValueError(f"it answered about source {answer.subject.source}, which it was not asked about")
    if isinstance(answer, Finding):
        for unit in (evidence.unit for evidence in answer.evidence):
            if unit not in units.EVIDENCE:
                raise ValueError(f"{unit!r} is none of the units of evidence ({', '.join(sorted(units.EVIDENCE))})")
    return answer


def _encode(value: object) -> list[float]:
    if isinstance(value, np.ndarray):  # the extent of a finding, which is kept nowhere
        return []
    raise TypeError(f"a {type(value).__name__} cannot be kept in a report: make it an int or a float")
