"""Prompts as text, for servers that take no tokens: a word for each, of which most tokenizers make one token."""

from __future__ import annotations

from collections.abc import Iterable

_WORDS = """
    the of and to in is you that it he was for on are as with his they at be this have from or one had by word but not
    what all were we when your can said there use an each which she do how their if will up other about out many then
    them these so some her would make like him into time has look two more write go see number no way could people my
    than first water been call who oil its now find long down day did get come made may part over new sound take only
    little work know place year live me back give most very after thing our just name good man think say great where
"""
WORDS = tuple(_WORDS.split())


def text(prompt: Iterable[int]) -> str:
    """Prompts with equal first tokens begin with the same words. The server's count may differ: it is in the log.

    >>> text([0, 1, 3, len(WORDS)])
    'the of to the'
    """
    return " ".join(WORDS[token % len(WORDS)] for token in prompt)
