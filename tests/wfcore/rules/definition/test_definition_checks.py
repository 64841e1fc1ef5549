"""The small checks that the tables of a definition's fields are made of, each by itself."""

from collections.abc import Callable
from enum import StrEnum
from functools import partial
from typing import Any

import pytest
from attrs import frozen
from hypothesis import given

from wfcore.rules.definition.values import (
    Check,
    Field,
    Findings,
    any_object,
    boolean,
    choice,
    described,
    duration,
    known_or,
    list_of,
    number,
    read_object,
    record,
    template,
    templates_within,
    text,
    whole_template,
)
from wfcore.rules.limits import JSON_DEPTH
from wfcore.rules.paths import below
from wfcore.testing.strategies.values import json_values
from wfcore.time import DurationMs


class Colour(StrEnum):
    """Something to choose from."""

    RED = "red"
    DARK_BLUE = "darkBlue"


@frozen
class Dot:
    """Something to build."""

    colour: Colour
    size: float = 1.0


DOT = {
    "colour": Field(choice(Colour), "colour", required=True),
    "size": Field(number(0, 9), "size"),
}
Made = Callable[[], Check]
digits = partial(text, pattern="[0-9]+", wanted="digits")
share = partial(number, 0.25, 1_000)
count = partial(number, -2, 10_000, whole=True)
texts = partial(list_of, text(), least=2, most=3)
named = partial(list_of, any_object, unique="name")


def plain(check: Check) -> Made:
    return lambda: check


def looked_at(made: Made, document: Any) -> tuple[Any, list[str], Findings]:
    """What a check gives back, what it says, and all that it found."""
    findings = Findings()
    value = made()(document, "x", findings)
    return value, [str(problem) for problem in findings.problems], findings


TAKEN: list[tuple[Made, Any, Any]] = [
    (text, "", ""),
    (partial(text, least=2), " ab", " ab"),
    (partial(text, most=3), "abc", "abc"),
    (digits, "123", "123"),
    (partial(choice, Colour), "darkBlue", Colour.DARK_BLUE),
    (share, 0.25, 0.25),
    (share, 1_000, 1_000.0),
    (count, -2, -2),
    (count, 10_000, 10_000),
    (plain(boolean), True, True),
    (plain(boolean), False, False),
    (plain(duration), 5, DurationMs(5)),
    (plain(duration), "1.5s", DurationMs(1_500)),
    (partial(list_of, text()), [], ()),
    (texts, ["a", "a"], ("a", "a")),
    (texts, ("a", "b", "c"), ("a", "b", "c")),
    (partial(record, Dot, DOT), {"colour": "red"}, Dot(Colour.RED)),
    (partial(record, Dot, DOT), {"colour": "red", "size": 2}, Dot(Colour.RED, 2.0)),
    (named, [{"name": "a"}, {"name": "b"}, {}, {}], ({"name": "a"}, {"name": "b"}, {}, {})),
    (named, [{"name": 1}, {"name": 1}], ({"name": 1}, {"name": 1})),
]


@pytest.mark.parametrize(("made", "document", "value"), TAKEN)
def test_what_fits_becomes_what_the_model_wants(made: Made, document: Any, value: Any) -> None:
    """Up to each border: the value in the model's type, and nothing is said. DF-1."""
    found, said, _ = looked_at(made, document)
    assert (found, type(found), said) == (value, type(value), [])


REFUSED: list[tuple[Made, Any, list[str]]] = [
    (text, 1, ["x: must be text, not a number"]),
    (partial(text, least=1), " \n", ["x: must not be empty"]),
    (partial(text, most=3), "abcd", ["x: is 4 characters long; at most 3"]),
    (digits, "12x", ["x: must be digits"]),
    (digits, "", ["x: must be digits"]),
    (partial(text, most=1, pattern="a*"), "aa", ["x: is 2 characters long; at most 1"]),
    (
        partial(choice, Colour),
        "rad",
        ["x: unknown value 'rad'; did you mean red? known: red, darkBlue"],
    ),
    (partial(choice, Colour), 1, ["x: must be one of red, darkBlue, not a number"]),
    (share, 0.2, ["x: must be a number from 0.25 to 1,000"]),
    (share, 1_000.5, ["x: must be a number from 0.25 to 1,000"]),
    (share, True, ["x: must be a number from 0.25 to 1,000, not true"]),
    (share, "1", ["x: must be a number from 0.25 to 1,000, not text"]),
    (count, -3, ["x: must be a whole number from -2 to 10,000"]),
    (count, 10_001, ["x: must be a whole number from -2 to 10,000"]),
    (count, 1.0, ["x: must be a whole number from -2 to 10,000, not a number"]),
    (count, False, ["x: must be a whole number from -2 to 10,000, not false"]),
    (plain(boolean), 1, ["x: must be true or false, not a number"]),
    (plain(duration), True, ["x: must be a duration like 30s, not true"]),
    (plain(duration), 1.5, ["x: must be a duration like 30s, not a number"]),
    (plain(duration), 0, ["x: must be more than 0 and at most 365d"]),
    (texts, {}, ["x: must be a list, not an object"]),
    (texts, ["a"], ["x: must have at least 2 items"]),
    (partial(list_of, text(), least=1), [], ["x: must have at least 1 item"]),
    (texts, [1, "b", "c", "d"], ["x: has 4 items; at most 3"]),
    (texts, ["a", 1, None], ["x[1]: must be text, not a number", "x[2]: must be text, not null"]),
    (
        named,
        [{"name": "a"}, 1, {"name": "b"}, {"name": "b"}, {"name": "a"}],
        [
            "x[3].name: repeats 'b' of x[2]",
            "x[4].name: repeats 'a' of x[0]",
            "x[1]: must be an object, not a number",
        ],
    ),
    (partial(record, Dot, DOT), [], ["x: must be an object, not a list"]),
    (
        partial(record, Dot, DOT),
        {"color": "red", "size": 10, "a b": 1},
        [
            "x.color: unknown field; did you mean colour? known: colour, size",
            'x["a b"]: unknown field; known: colour, size',
            "x.colour: is required",
            "x.size: must be a number from 0 to 9",
        ],
    ),
    (plain(template), 1, ["x: must be text, not a number"]),
    (plain(whole_template), 1, ["x: must be a template {{ … }}, not a number"]),
    (plain(any_object), [], ["x: must be an object, not a list"]),
    (plain(templates_within), [0.0, float("inf")], ["x[1]: is no number that JSON can hold"]),
    (plain(templates_within), {"a b": float("nan")}, ['x["a b"]: is no number that JSON can hold']),
]


@pytest.mark.parametrize(("made", "document", "messages"), REFUSED)
def test_what_does_not_fit_is_told_like_this(
    made: Made, document: Any, messages: list[str]
) -> None:
    """Just over each border: exactly these words, at the place of the mistake. DF-1, DF-4."""
    _, said, _ = looked_at(made, document)
    assert said == messages


def test_a_record_with_a_mistake_is_none() -> None:
    """A record is built only of what is right, also where mistakes were met before it."""
    findings = Findings()
    findings.add("", "is met before")
    assert record(Dot, DOT)({"colour": "red"}, "x", findings) == Dot(Colour.RED)
    assert record(Dot, DOT)({"size": 1}, "x", findings) is None
    assert [str(one) for one in findings.problems] == [
        "definition: is met before",
        "x.colour: is required",
    ]


def test_fields_of_the_document_itself_have_their_names_as_paths() -> None:
    """What is read of an object: the fields that are there, by attribute; none where it is none."""
    fields = {"delay": Field(duration, "delay_ms"), "on": Field(boolean, "is_on")}
    findings = Findings()
    assert read_object({"delay": "1s"}, "", fields, findings) == {"delay_ms": 1_000}
    assert findings.problems == []
    assert read_object(3, "", fields, findings) == {}
    assert read_object({"on": 1}, "", fields, findings).keys() == {"is_on"}
    assert [str(one) for one in findings.problems] == [
        "definition: must be an object, not a number",
        "on: must be true or false, not a number",
    ]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "null"),
        (True, "true"),
        (False, "false"),
        (0, "a number"),
        (0.5, "a number"),
        ("", "text"),
        ({}, "an object"),
        ([], "a list"),
        ((), "a list"),
    ],
)
def test_values_are_called_by_their_kind(value: Any, words: str) -> None:
    """What somebody wrote is named in JSON's terms."""
    assert described(value) == words


def test_a_misspelt_word_is_answered_with_the_nearest() -> None:
    """The one that is most like it, if any is, and all there are in their order."""
    known = ("steps", "step", "output")
    assert known_or("stepp", known) == "did you mean step? known: steps, step, output"
    assert known_or("zzz", known) == "known: steps, step, output"


WHOLE = [
    "{{ a }}",
    "{{}}",
    "{{{'a': {}}}}",
    "{{'}}'}}",
    "{{ {a: {b: 1}} }}",
    "{{ '}}' ~ \"{{\" }}",
    "{{ 'it\\'s }}' }}",
    '{{ "\\"}}" }}',
    "{{ a\n }}",
    " \n{{ a }}\n",
]
PARTS = [
    *("", "a", "{{ a }} b", "b {{ a }}", "{{ a }}{{ b }}", "{{ a }", "{ a }}"),
    *("{{ a }}}", "{{ {a }}", "{{ '' }}'{{ b }}", "{{ '\\'' }}, {{ b }}", "{{}", "{}}"),
]


@pytest.mark.parametrize("written", WHOLE)
def test_one_template_is_taken_and_noted_without_what_is_around_it(written: str) -> None:
    """Braces within text are text; blanks around the template go. DF-7."""
    value, said, findings = looked_at(plain(whole_template), written)
    assert (value, said) == (written.strip(), [])
    assert findings.templates == [("x", written.strip())]


@pytest.mark.parametrize("written", PARTS)
def test_more_or_less_than_one_template_is_not(written: str) -> None:
    """Two of them, text around, an open end: refused, in these words. DF-7."""
    _, said, _ = looked_at(plain(whole_template), written)
    assert said == ["x: must be exactly one template {{ … }} with nothing around it"]


@given(json_values())
def test_every_text_within_is_noted_as_a_template(document: Any) -> None:
    """Any JSON stays what it is; each text in it, no key, is noted with its path. DF-7."""
    value, said, findings = looked_at(plain(templates_within), {"in": [document]})
    assert (value, said) == ({"in": [document]}, [])
    assert sorted(findings.templates) == sorted(texts_of(document, "x.in[0]"))
    assert looked_at(plain(any_object), {"in": [document]})[2].templates == findings.templates


def texts_of(document: Any, path: str) -> list[tuple[str, str]]:
    match document:
        case str():
            return [(path, document)]
        case dict():
            inner = [texts_of(item, below(path, key)) for key, item in document.items()]
        case list():
            inner = [texts_of(item, f"{path}[{at}]") for at, item in enumerate(document)]
        case _:
            inner = []
    return [one for some in inner for one in some]


@pytest.mark.parametrize("wrap", [lambda inner: [inner], lambda inner: {"a": inner}])
def test_json_may_be_nested_so_deep(wrap: Callable[[Any], Any]) -> None:
    """At the deepest place that is allowed a text is read; one deeper is a mistake there."""
    deep: Any = "t"
    for _ in range(JSON_DEPTH):
        deep = wrap(deep)
    _, said, findings = looked_at(plain(templates_within), deep)
    assert (said, len(findings.templates)) == ([], 1)
    _, said, _ = looked_at(plain(templates_within), wrap(deep))
    step = "[0]" if isinstance(deep, list) else ".a"
    assert said == [f"x{step * (JSON_DEPTH + 1)}: is nested deeper than {JSON_DEPTH}"]
