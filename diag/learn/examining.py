"""An exercise: a sick program runs, and the reader says its cause, the evidence, and what would refute that."""

from __future__ import annotations

import random
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import ascii_lowercase

from diag.learn.dialogue import Dialogue
from diag.learn.lesson import Figure, Incident, Lab, Lesson
from diag.learn.page import FAULT_PARTS, FaultText, page
from diag.learn.words import words
from diag.model import units

ASKED = FAULT_PARTS[:3]
"""Parts of a hypothesis, in the order in which they are asked."""

MOST_OPTIONS = 5


@dataclass(frozen=True)
class Hypothesis:
    """The keys of the faults whose cause, evidence and refutation the reader chose, by part."""

    chosen: Mapping[str, str]
    incident: Incident

    def is_right(self, part: str) -> bool:
        return self.chosen[part] == self.incident.fault

    @property
    def holds(self) -> bool:
        return all(map(self.is_right, ASKED))


def examine(lesson: Lesson, lab: Lab, dialogue: Dialogue, language: str, seed: int) -> Hypothesis:
    """Raises what the sick program raises, and UsageError where answers end too early."""
    text, say, draw = page(lesson.number, language), words(language), random.Random(seed)
    dialogue.say(f"# {lesson.number} · {text.title}: {say['exercise']}\n\n{text.sections['Exercise']}")
    incident = lesson.exercise(lab, draw)
    if incident.claims:
        dialogue.say(claimed(incident.claims, text.labels))
    look = say["look_by_command"] if incident.claims else say["look"]
    dialogue.say("\n\n".join([look, *(f"    diag {shlex.join(command)}" for command in incident.commands)]))
    chosen = {}
    for part in ASKED:
        options = offered(text.faults, incident.fault, draw)
        lines = (
            f"- **{letter}** {getattr(text.faults[key], part)}"
            for letter, key in zip(ascii_lowercase, options, strict=False)
        )
        dialogue.say(f"## {say[f'which_{part}']}\n\n" + "\n".join(lines))
        chosen[part] = _answer(options, dialogue, language)
    hypothesis = Hypothesis(chosen, incident)
    dialogue.say(graded(hypothesis, text.faults, language))
    for command in incident.commands:
        dialogue.run(command)
    return hypothesis


def claimed(claims: Sequence[Figure], labels: Mapping[str, str]) -> str:
    """A list of what is said of the program, before anything is known of it."""
    return "\n".join(f"- {labels[each.key]}: **{units.quantity(each.value, each.unit)}**" for each in claims)


def offered(faults: Mapping[str, FaultText], right: str, draw: random.Random) -> Sequence[str]:
    """Keys of the faults to choose from: the right one and a few others, shuffled."""
    others = [key for key in faults if key != right]
    options = [right, *draw.sample(others, min(MOST_OPTIONS - 1, len(others)))]
    draw.shuffle(options)
    return options


def _answer(options: Sequence[str], dialogue: Dialogue, language: str) -> str:
    """What is chosen; a line that begins with `diag` is run instead, as often as the reader likes."""
    letters, say = ascii_lowercase[: len(options)], words(language)
    while True:
        typed = dialogue.ask(say["your_answer"].format(first=letters[0], last=letters[-1])).strip()
        if typed.startswith("diag "):
            _run(typed, dialogue, language)
        elif len(typed) == 1 and typed.lower() in letters:
            return options[letters.index(typed.lower())]
        else:
            dialogue.say(say["no_answer"].format(first=letters[0], last=letters[-1]))


def _run(typed: str, dialogue: Dialogue, language: str) -> None:
    try:
        _, *command = shlex.split(typed)
    except ValueError:
        dialogue.say(words(language)["no_command"])
        return
    dialogue.run(tuple(command))


def graded(hypothesis: Hypothesis, faults: Mapping[str, FaultText], language: str) -> str:
    """What of the hypothesis holds, what was really wrong, and how that shows."""
    say, incident = words(language), hypothesis.incident
    fault = faults[incident.fault]
    lines = [
        f"- {say[f'which_{part}']} {say['right' if hypothesis.is_right(part) else 'wrong']}"
        + ("" if hypothesis.is_right(part) else f" {getattr(fault, part)}")
        for part in ASKED
    ]
    injected = (
        f"- {say['injected']}: **{units.quantity(each.value, each.unit)}** ({each.formula})"
        for each in incident.figures
    )
    return "\n".join([f"## {say['result']}", "", *lines, *injected, "", fault.why, "", _proof(incident, say)])


def _proof(incident: Incident, say: Mapping[str, str]) -> str:
    if incident.rule:
        return say["proof"].format(rule=incident.rule)
    return say["proof_by_command" if incident.claims else "proof_by_output"]
