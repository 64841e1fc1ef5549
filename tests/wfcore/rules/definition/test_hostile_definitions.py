"""Definitions that are made to cost much: their check has a bound. DF-16."""

import difflib
from typing import Any

import pytest

from wfcore.errors import InvalidDefinition
from wfcore.rules.definition.written import read_definition
from wfcore.rules.limits import MAX_MISTAKES
from wfcore.rules.suggestions import nearest

LONG = "n" * 150


def mailing(attached: str, number: int) -> dict[str, Any]:
    step = {"kind": "mail", "to": ["ann@example.org"], "subject": "s", "body": "b"}
    return {**step, "name": f"mail{number}", "attach": [f"{attached}{one}" for one in range(19)]}


def delays(prefix: str) -> list[dict[str, Any]]:
    return [{"name": f"{prefix}{one}", "kind": "delay", "seconds": 1} for one in range(400)]


HOSTILE = {
    "fields": {"name": "a", "steps": [], **{f"field{one}": 1 for one in range(18_000)}},
    "steps": {"name": "a", "steps": [*delays(LONG), *(mailing(LONG + "x", n) for n in range(40))]},
    "short": {"name": "a", "steps": [*delays("step"), *(mailing("stepp", n) for n in range(40))]},
}


@pytest.mark.parametrize("document", HOSTILE.values(), ids=HOSTILE)
def test_mistakes_without_number_cost_a_bounded_amount(
    document: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check lists 100 mistakes in few characters, and compares no long words."""
    compared: list[int] = []
    measured = difflib.SequenceMatcher.ratio

    def ratio(matcher: Any) -> float:
        compared.append(len(matcher.a) * len(matcher.b))
        return measured(matcher)

    monkeypatch.setattr(difflib.SequenceMatcher, "ratio", ratio)
    with pytest.raises(InvalidDefinition) as refused:
        read_definition(document)
    problems = refused.value.problems
    assert len(problems) == MAX_MISTAKES + 1
    assert problems[-1].message == "has more mistakes"
    assert len(str(refused.value)) < 300_000
    assert sum(compared) < 100 * 400 * 40 * 40


def test_a_word_with_a_letter_wrong_is_still_recognized() -> None:
    """The bound leaves suggestions for the names that people type."""
    known = [f"a-usual-name-of-a-step-{one}" for one in range(500)]
    assert nearest("a-usual-nme-of-a-step-77", known) == "a-usual-name-of-a-step-77"
    assert nearest("x" * 41, ["x" * 42]) is None
