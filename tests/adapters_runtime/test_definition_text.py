"""Texts of definitions: a small YAML, JSON in it, and a line number for every mistake."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adapters_runtime.definition_yaml import load_definition_text, with_lines
from adapters_runtime.expressions.templates import MiniJinjaTemplates
from wfcore.errors import InvalidDefinition, Problem
from wfcore.model.json import Json, JsonObject
from wfcore.model.workflow import Definition
from wfcore.rules.definition.check import check_definition
from wfcore.testing.strategies.definition import definitions
from wfcore.testing.strategies.values import payloads
from wfcore.testing.strategies.written import leaves, written


def load(text: bytes | str) -> Any:
    return load_definition_text(text, "flow.yaml")[0]


def said(text: bytes | str) -> list[str]:
    with pytest.raises(InvalidDefinition) as caught:
        load(text)
    return str(caught.value).splitlines()


@given(st.text() | st.text("a:- \n\t[]{}\"'|>&*!%#,?~01.\\u") | st.binary())
@example("a: \x85 [\t\n]")
@example("%YAML 1.1 1\n---\n")
@example("? |\n  a\n: b")
def test_any_text_is_an_object_or_a_mistake_with_a_line(text: bytes | str) -> None:
    """Nothing but an object comes out, and nothing but `InvalidDefinition` is raised."""
    problems: tuple[Problem, ...] = ()
    try:
        document, lines = load_definition_text(text, "f")
        assert isinstance(document, dict)
        assert all(lines[path] >= 1 for path, _ in leaves(document))
    except InvalidDefinition as error:
        problems = error.problems
    assert all(problem.line for problem in problems)


@given(payloads(), st.sampled_from((None, 2, "\t")))
def test_json_is_read_as_json(document: JsonObject, indent: int | str | None) -> None:
    """Whatever object JSON can write is read back the same."""
    text = json.dumps(document, indent=indent).replace("\x7f", "\\u007f")
    assert load(text) == document


@given(definitions())
def test_the_line_of_each_field_is_known(definition: Definition) -> None:
    """In JSON with a line for each value, every leaf has a line of its own."""
    document = written(definition)
    text = json.dumps(document, indent=1).replace("\x7f", "\\u007f")
    _, lines = load_definition_text(text, "f")
    paths = [path for path, _ in leaves(document)]
    numbers = [lines[path] for path in paths]
    assert numbers == sorted(set(numbers))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"), ("on", "on"), ("yes", "yes"), ("y", "y"), ("1:30", "1:30"),
        ("2024-01-01", "2024-01-01"), ("1_000", "1_000"), ("0b1", "0b1"), ("017", 17),
        ("0o17", 15), ("0xff", 255), ("-12", -12), ("1.50", 1.5), ("1e3", 1000.0), (".5", 0.5),
        ("true", True), ("True", True), ("FALSE", False), ("null", None), ("~", None), ("", None),
        ("'1'", "1"), ('"null"', "null"), ("<<", "<<"), ("=", "="),
    ],
)  # fmt: skip
def test_scalars_are_those_of_yaml_1_2(text: str, value: Json) -> None:
    """`no` and `1:30` are text; quoted scalars are always text."""
    found = load(f"a: {text}")["a"]
    assert (found, type(found)) == (value, type(value))


QUOTE = 'a template needs quotes around it: "{{ … }}"'


def test_aliases_are_what_they_stand_for() -> None:
    """As if it were written out; the anchor may be on any value, and be given anew."""
    text = "a: &x {b: [1, &y z]}\nc: *x\nd: [*y, *x]\ne: &x 2\nf: *x"
    block: Json = {"b": [1, "z"]}
    assert load(text) == {"a": block, "c": block, "d": ["z", block], "e": 2, "f": 2}


@pytest.mark.parametrize("how", ["{}", "[{}]"])
def test_aliases_that_multiply_are_refused(how: str) -> None:
    """Past the size of a definition, in no time; and past its depth."""
    lines = ["a0: &a0 [x, x, x, x]"]
    for at in range(1, 60):
        inner = how.format(f"*a{at - 1}")
        lines.append(f"a{at}: &a{at} [{inner}, {inner}, {inner}, {inner}]")
    [problem] = said("\n".join(lines))
    assert "written out, the aliases make more than 256 KiB" in problem
    deep = "\n".join(f"a{at}: &a{at} [*a{at - 1}]" for at in range(1, 80))
    [problem] = said(f"a0: &a0 [1]\n{deep}")
    assert "is nested deeper than 64" in problem


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", ["flow.yaml: line 1: the text is empty"]),
        ("# nothing\n", ["flow.yaml: line 1: the text is empty"]),
        ("- a", ["flow.yaml: line 1: the text must be an object: name, steps, …"]),
        ("a: 1\n---\nb: 2", ["flow.yaml: line 2: only one document may be in the text"]),
        (
            "a: &x [*x]\nd: !!str 1",
            [
                "flow.yaml: line 1: a[0]: *x: no &x has ended before it",
                "flow.yaml: line 2: d: tags (tag:yaml.org,2002:str) are not allowed",
            ],
        ),
        (
            "a: &x {b: 1}\nc:\n  <<: *x\n  '<<': 2",
            [
                'flow.yaml: line 3: c["<<"]: fields are not merged (<<); write them out',
                'flow.yaml: line 4: c["<<"]: repeats the key of line 3',
            ],
        ),
        (
            "a:\n  b: 1\n  b: 2\na: 3",
            [
                "flow.yaml: line 3: a.b: repeats the key of line 2",
                "flow.yaml: line 4: a: repeats the key of line 1",
            ],
        ),
        (
            "a: .inf\nb: .nan\nc: 18446744073709551616\nd: 1e999\ne: 0x" + "f" * 999,
            [
                "flow.yaml: line 1: a: .inf is no number in JSON; quote it if it is text",
                "flow.yaml: line 2: b: .nan is no number in JSON; quote it if it is text",
                "flow.yaml: line 3: c: the number does not fit 64 bits; quote it if it is text",
                "flow.yaml: line 4: d: the number is too large; quote it if it is text",
                "flow.yaml: line 5: e: the number does not fit 64 bits; quote it if it is text",
            ],
        ),
        (
            "a: 9223372036854775808\nb: 1e-400\nc: [1.00000000000000000001, 1.50]",
            [
                "flow.yaml: line 1: a: the number does not fit 64 bits; quote it if it is text",
                "flow.yaml: line 2: b: the number would become 0.0; write that, or quote it",
                "flow.yaml: line 3: c[0]: the number would become 1.0; write that, or quote it",
            ],
        ),
        ("a: 1\nb: {{ variables.x }}", [f"flow.yaml: line 2: b: {QUOTE}"]),
        ("a:\n  - {{ a | join(', ') }} and more", [f"flow.yaml: line 2: {QUOTE}"]),
        ("a: {{ a[\"b\"] if c else '}' }}", [f"flow.yaml: line 1: {QUOTE}"]),
        ("a:\n  1: b", ["flow.yaml: line 2: a: the key 1 must be text; quote it"]),
        ("a: 1\n? [b]\n: c", ["flow.yaml: line 2: a key must be text"]),
        (b"a: 1\nb: \xff", ["flow.yaml: line 2: the text is not UTF-8"]),
        ("a: 1\nb: \x07", ["flow.yaml: line 2: character U+0007 is not allowed"]),
        ('a: 1\nb: "\\ud83d"', ["flow.yaml: line 2: b: half a surrogate pair is no character"]),
        ('a: 1\nb: "\\UFFFFFFFF"', ["flow.yaml: line 2: a number here is too large"]),
        ("a: x" + "x" * 262_144, ["flow.yaml: line 1: the text is over 256 KiB"]),
    ],
    ids=lambda text: str(text)[:20],
)
def test_a_mistake_in_the_text_is_said_with_its_line(text: bytes | str, lines: list[str]) -> None:
    """These and no others, all at once where the text can still be read."""
    assert said(text) == lines


def test_text_that_does_not_end_says_where() -> None:
    """PyYAML's own words, with the line."""
    [line] = said("a: 1\nb: [1,\n2")
    assert line.startswith("flow.yaml: line 3: while parsing a flow sequence")


def test_nesting_over_64_is_refused_before_it_is_built() -> None:
    """However deep the text goes on."""
    assert load("a: " + "[" * 63 + "]" * 63)
    assert said("a: " + "[" * 64 + "]" * 64)[0].endswith("is nested deeper than 64")
    assert said("a: " + "[" * 200_000)[0].endswith("is nested deeper than 64")


def test_bytes_may_begin_with_a_byte_order_mark() -> None:
    """Editors put it there."""
    assert load(b"\xef\xbb\xbfa: \xc3\xa4") == {"a": "ä"}


def test_tabs_between_the_parts_of_json_are_fine() -> None:
    """JSON allows them, so they are read, but only inside brackets."""
    assert load('{\t"a":\t[\t1\t,\t2\t]\t}') == {"a": [1, 2]}
    assert said("a:\n\t- 1")


BROKEN = """\
name: Refunds
steps:
  - name: fetch
    kind: code
    language: python
    source: print(1)
    timeout: soon
  - name: ask
    kind: manual_approval
    groups:
      - name: rows
        columns: [{key: id}]
    message: "{{ steps.ftech.output }}"
"""


def test_mistakes_of_a_definition_get_the_lines_of_their_fields() -> None:
    """A missing field has the line of what it is missing in."""
    document, lines = load_definition_text(BROKEN, "flow.yaml")
    with pytest.raises(InvalidDefinition) as caught:
        check_definition(document, MiniJinjaTemplates().problems)
    error = with_lines(caught.value, lines, "flow.yaml")
    assert [(problem.line, problem.path) for problem in error.problems] == [
        (7, "steps[0].timeout"),
        (11, "steps[1].groups[0].rows"),
        (13, "steps[1].message"),
    ]
    assert str(error).splitlines()[2] == (
        "flow.yaml: line 13: steps[1].message: unknown name steps.ftech; did you mean fetch?"
    )


def test_a_mistake_of_the_whole_has_the_first_line() -> None:
    """A path that is not in the text at all leads to where the document begins."""
    problems = (Problem("name", "is required"), Problem("definition", "is wrong"))
    error = with_lines(InvalidDefinition(problems), {"": 2, "steps": 3}, "f")
    assert [problem.line for problem in error.problems] == [2, 2]
