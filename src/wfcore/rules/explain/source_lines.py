"""
What an error of a code step says: the line of the code at which the step failed, and the one line
of the error that names the cause. XP-6.
"""

import re
from collections.abc import Sequence

from attrs import frozen

from wfcore.model.work import Language

AROUND = 2
"""The number of lines before and after the line that failed."""
_PLACE = re.compile(r"[/\\]main\.\w+(?:\", line |: line |:)(\d+)")
"""A line of the step's file, which is called `main` in every language: `/step/main.py", line 4`."""


@frozen
class SourceLine:
    """A line of code. `is_cause`: whether the step failed here."""

    number: int
    text: str
    is_cause: bool


def failed_lines(language: Language, source: str, error: str) -> Sequence[SourceLine]:
    """
    The lines of *source* around the line at which *error* says that the code failed; empty if it
    names no such line. In Python the last line that is named is the cause, elsewhere the first.
    """
    named = [int(number) for number in _PLACE.findall(error)]
    lines = source.splitlines()
    known = [number for number in named if 0 < number <= len(lines)]
    if not known:
        return ()
    cause = known[-1] if language is Language.PYTHON else known[0]
    first = max(cause - AROUND, 1)
    shown = lines[first - 1 : cause + AROUND]
    return [SourceLine(number, text, number == cause) for number, text in enumerate(shown, first)]


_EXIT = re.compile(r"(?:.*? )?exited with status \d+: ", re.DOTALL)
_NAMED = re.compile(r"[\w.:]*(?:Error|Exception|Exit|Interrupt)\b.*")


def cause_of(error: str) -> str:
    """
    The line of *error* that names the cause: the last line of a Python traceback, otherwise the
    first line that begins with the name of an error, otherwise the first line.
    """
    lines = [line.strip() for line in error[_prefix(error) :].splitlines() if line.strip()]
    if not lines:
        return error.strip()
    if lines[0].startswith("Traceback (most recent"):
        return lines[-1]
    return next((line for line in lines if _NAMED.match(line)), lines[0])


def brief(error: str) -> str:
    """*error* in one line: how the step ended, and the cause."""
    return error[: _prefix(error)] + cause_of(error)


def _prefix(error: str) -> int:
    found = _EXIT.match(error)
    return found.end() if found else 0
