"""Templates: strict, bounded, and in agreement with minijinja wherever both have an answer."""

import json
import re
from pathlib import Path
from typing import Any
from unittest.mock import patch

import minijinja
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters_runtime.expressions.filters import FILTERS
from adapters_runtime.expressions.templates import MiniJinjaTemplates
from wfcore.errors import TemplateFailed
from wfcore.model.json import Json
from wfcore.rules.limits import TEXT_RESULT
from wfcore.testing.strategies.values import json_values

NAMES: dict[str, Any] = {
    "variables": {
        "limit": 100,
        "name": "Ann",
        "big": 2**63 - 1,
        "ratio": 0.5,
        "none": None,
        "l": [3, 1, 2],
    },
    "steps": {
        "fetch": {
            "status": "COMPLETED",
            "output": {"count": 2, "rows": [{"id": "a", "amount": 5}, {"id": "b", "amount": 7}]},
        },
        "by-hand": {"status": "SKIPPED", "output": None},
    },
    "execution": {"id": "exec_1", "workflowId": "wf_1"},
}
KNOWN = {
    "variables": tuple(NAMES["variables"]),
    "steps": tuple(NAMES["steps"]),
    "execution": ("id", "workflowId"),
}
TEMPLATES = MiniJinjaTemplates()


def render(value: Json, /, **names: Json) -> Json:
    return TEMPLATES.render(value, {**NAMES, **names})


def why(text: str) -> str:
    with pytest.raises(TemplateFailed) as caught:
        render(text)
    return caught.value.why


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("plain", "plain"),
        ("{ not } a template }}", "{ not } a template }}"),
        ("{{ variables.limit }}", 100),
        ("{{variables.limit}} of {{ variables['name'] }}", "100 of Ann"),
        ("{{ steps.fetch.output.rows[-1].id }}", "b"),
        ('{{ steps["by-hand"].output }}', None),
        ("{{ variables.big + 0 }}", 2**63 - 1),
        ("is {{ true }}, {{ none }}, {{ [1.0, 'ä'] }}", 'is true, null, [1.0,"ä"]'),
        ("{{ steps.fetch.output.rows | length > 0 }}", True),
        ("{{ steps.fetch.output.rows | map(attribute='amount') | sum }}", 12),
        ("{{ steps.fetch.output.rows | sort(attribute='amount', reverse=true) | first }}",
         {"id": "b", "amount": 7}),
        ("{{ steps.fetch.output.rows | map(attribute='note', default='-') | join }}", "--"),
        ("{{ variables.nope | default('x') }}", "x"),
        ("{{ variables.nope is defined }}", False),
        ("{{ variables.none is not defined }}", False),
        ("{{ variables.none | default(5, true) }}", 5),
        ("{{ variables.limit if variables.ratio > 1 else 'low' }}", "low"),
        ("{{ variables.l | sort | join('-') }}", "1-2-3"),
        ("{{ {'a': [variables.limit, {'b': 1}]} }}", {"a": [100, {"b": 1}]}),
        ('{{ "}}" }}', "}}"),
        ("{{ 4 / 2 }}", 2),
        ("{{ ['ab', 1, true] | join }}", "ab1true"),
        ("{{ 7 // 2 * 2 + 7 % 2 - 2.5 }}", 4.5),
        ("{{ '\\u00e4\\ud83d\\ude00' }}", "ä😀"),
        ("{{ 'x' not in variables.name and not variables.none }}", True),
        ("{{ -2 * -2 }}", 4),
        ("{{ variables.l[1:] }}", [1, 2]),
        ("{{ variables.l[-2:-1] }}", [1]),
        ("{{ variables.l[:] }}", [3, 1, 2]),
        ("{{ variables.l[::2] }}", [3, 2]),
        ("{{ variables.l[9:] }}", []),
        ("{{ variables.l[1:3][0] }}", 1),
        ("{{ variables.name[:2] }}…", "An…"),
        ("{{ 1234567.5 | number(2) }}", "1,234,567.50"),
        ("{{ 1234567.5 | number(2, '.', ',') }}", "1.234.567,50"),
        ("{{ -1234 | number(0, thousands='') }}", "-1234"),
        ("{{ 2.675 | number(2) }}", "2.68"),
        ("{{ -0.001 | number(2) }}", "0.00"),
        ("{{ variables.big | number(1) }}", "9,223,372,036,854,775,807.0"),
        ("{{ 1e308 | number(20) | length }}", 309 + 102 + 21),
        ("{{ '2026-03-01T09:05:07Z' | date('%d.%m.%Y') }}", "01.03.2026"),
        ("{{ '2026-03-01T09:05:07Z' | date('%e %B %Y, %H:%M:%S %z') }}",
         "1 March 2026, 09:05:07 +0000"),
        ("{{ 1772355907000 | date('%a %b %e %I:%M %p', zone='Asia/Kolkata') }}",
         "Sun Mar 1 02:35 PM"),
        ("{{ '2026-10-25T00:30Z' | date('%H:%M%z', 'Europe/Berlin') }}", "02:30+0200"),
        ("{{ '2026-10-25T01:30Z' | date('%H:%M%z', 'Europe/Berlin') }}", "02:30+0100"),
        ("{{ '2026-03-01' | date('%A, %Y-%m-%d %H:%M', 'Pacific/Auckland') }}",
         "Sunday, 2026-03-01 00:00"),
        ("{{ '2027-01-01' | date('%G-W%V 100%%') }}", "2026-W53 100%"),
        ("{{ 0 | date('%I%p') }}", "12AM"),
        ("{{ variables.nope | default('2026-03-01') | date('%d') | int + 1 }}", 2),
        ("{{ [1, 'a'] | min }}", 1),
        ("{{ [1, 'a'] | max }}", "a"),
        ("{{ [true, 0] | max }}", 0),
        ("{{ [none, 1] | min }}", None),
        ("{{ ['b', 'A'] | min }}", "A"),
        ("{{ variables.name | max }}", "n"),
        ("{{ [] | min | default(3) }}", 3),
        ("{{ ['B', [1], 2, none, 'a', true] | sort }}", [None, True, 2, "a", "B", [1]]),
    ],
)  # fmt: skip
def test_a_template_gives_this(text: str, value: Json) -> None:
    """A template alone keeps its type; inside text it is JSON, and texts are as they are."""
    found = render(text)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{{ variables.limt }}", "variables.limt is not there"),
        ("{{ steps.fetch.output.cuont }}", "steps.fetch.output.cuont is not there"),
        ("{{ steps.later.output }}", "steps.later is not there"),
        ("{{ steps.later.output | default(1) }}", "steps.later is not there"),
        ("{{ [1, variables.nope] }}", "variables.nope is not there"),
        ("{{ variables.l[7] }}", "variables.l[7] is not there"),
        ("{{ variables.limit.x }}", "variables.limit.x is not there: it would be in a number"),
        ("{{ nope }}", "nope is not there"),
        ("{{ variables[variables.name] }}", "variables[…] is not there"),
        ("{{ [] | first }}", "the list is empty"),
        ("{{ variables.name + 1 }}", "+ wants two numbers, not text and a number"),
        ("{{ variables.l < 3 }}", "< compares two numbers or two texts, not a list and a number"),
        ("{{ 1 / 0 }}", "division by zero"),
        ("{{ variables.big + 1 }}", "the number does not fit 64 bits"),
        ("{{ 1 if true }}", "an `if` needs its `else`"),
        ("{{ variables.l | nope }}", "there is no filter 'nope'; "),
        ("{{ variables.l | sotr }}", "there is no filter 'sotr'; did you mean sort?"),
        ("{{ variables.l | map('upper') }}", "filter map: too many positional arguments"),
        (
            "{{ variables.l | selectattr('a') }}",
            "there is no filter 'selectattr'; known: date, default, ",
        ),
        ("{{ variables.l | default }}", "filter default: takes a value"),
        ("{{ variables.limit[1:] }}", "a slice is of a list or a text, not of a number"),
        ("{{ variables[1:] }}", "a slice is of a list or a text, not of an object"),
        ("{{ variables.none[1:] }}", "a slice is of a list or a text, not of null"),
        ("{{ variables.l['a':] }}", "the bounds of a slice are whole numbers"),
        ("{{ variables.l[:1.0] }}", "the bounds of a slice are whole numbers"),
        ("{{ variables.l[::0] }}", "the step of a slice is 1 or more"),
        ("{{ variables.l[::-1] }}", "the step of a slice is 1 or more"),
        ("{{ variables.l[1:2:1:1] }}", "expected ']' before ':'"),
        ("{{ [] | min }}", "the list is empty"),
        ("{{ 1 | number }}", "filter number: missing a required argument: 'decimals'"),
        ("{{ 1 | number(21) }}", "number wants 0 to 20 decimals"),
        ("{{ 1 | number(true) }}", "number wants 0 to 20 decimals"),
        ("{{ 1 | number(2, ',', ',') }}", "number wants two different marks"),
        ("{{ 1 | number(2, [], '1') }}", "number wants two different marks"),
        ("{{ variables.name | number(2) }}", "this filter wants numbers, not text"),
        ("{{ 'soon' | date('%d') }}", "date wants ISO 8601 like 2026-03-01T09:30Z, or millisec"),
        ("{{ variables.big | date('%d') }}", "date wants ISO 8601 like 2026-03-01T09:30Z, or m"),
        ("{{ '0001-01-01T00:00Z' | date('%d', 'America/New_York') }}", "date wants ISO 8601 "),
        ("{{ true | date('%d') }}", "date wants ISO 8601 or milliseconds since 1970, not a boo"),
        ("{{ 1.5 | date('%d') }}", "date wants ISO 8601 or milliseconds since 1970, not a number"),
        ("{{ 1 | date('%s') }}", "date knows no %s in a format; it knows %Y %m %B"),
        ("{{ 1 | date('%d%') }}", "date knows no % in a format"),
        ("{{ 1 | date(7) }}", "this filter wants text, not a number"),
        ("{{ 1 | date('%d', 'Europe/Berlim') }}", "did you mean Europe/Berlin?"),
        ("{{ 1 | date('%d', 'localtime') }}", "'localtime' is no time zone like Europe/Berlin"),
        ("{{ 1 | date('%d', '../etc/passwd') }}", "is no time zone like Europe/Berlin"),
        ("{{ 1 | date('%d', variables.name) }}", "'Ann' is no time zone like Europe/Berlin"),
        ("{{ variables.none | max }}", "this filter wants a list, not null"),
        ("{{ [{'a': 1}, {'a': 2}] | max }}", "objects have no order"),
        ("{{ [[1, {}], [1, {}]] | sort }}", "objects have no order"),
        ("{{ variables.l[] }}", "[] is empty"),
        ("{{ 'a' ~ 'b' }}", "unexpected '~' after the expression; put two templates side by side"),
        ("{{ 2 ** 3 }}", "unexpected '**' after the expression; multiply"),
        ("{{ variables.name = 'Ann' }}", "to compare, write =="),
        ("{{ 1 is odd }}", "unknown test 'odd'; known: defined, not defined"),
        ("{{ variables.l | length(3) }}", "filter length: too many positional arguments"),
        ("{{ variables.l.append(1) }}", "calls are not supported"),
        ("{{ range(3) }}", "calls are not supported"),
        ("{{ 1 < 2 < 3 }}", "comparisons do not chain"),
        ("{{- 1 }}", "whitespace control"),
        ("{% if true %}", "statements ({%) are not supported"),
        ("{# x #}", "comments ({#) are not supported"),
        ("{{ 1", "opened with {{ and never closed"),
        ("{{ 'a }}", "a text that begins with ' does not end"),
        ("{{ }}", "the expression is incomplete"),
        ("{{ '\\ud83d' }}", "half a character"),
    ],
)
def test_a_template_fails_and_says_why(text: str, said: str) -> None:
    """An unknown name is named, at any depth; a wrong type and wrong syntax are said in words."""
    assert said in why(text)


@pytest.mark.parametrize(
    "text",
    [
        "{{ 'a' * 10**9 }}",
        "{{ [0] * 10**9 }}",
        "{{ 10**9 * 'a' }}",
        "{{ range(10**9) }}",
        "{{ 1e308 * 10 }}",
        "{{ " + " * ".join(["1" + "0" * 300] * 99) + " }}",
        "{{ " + "(" * 5_000 + "1" + ")" * 5_000 + " }}",
        "{{ " + "(" * 100 + "1" + ")" * 100 + " }}",
        "{{ " + "[" * 100 + "]" * 100 + " }}",
        "{{ " + "not " * 300 + "1 }}",
        "{{ " + "-" * 100_000 + "1 }}",
        "{{ 1" + " + 1" * 100_000 + " }}",
        "{{ '%1000000000d' | format(1) }}",
        "{{ text | replace('', text) }}",
        "{{ text | split('a') | join(text) }}",
        "{{ text + text + text + text + text + text }}",
        "{{ [text, text, text] }}",
        "{{ [" + ", ".join(["numbers[:]"] * 60) + "] }}",
        "{{ [" + ", ".join(["numbers"] * 60) + "] | max }}",
        "{{ [text, text, text] | tojson | tojson }}",
        "{{ numbers | slice(1000000000) }}",
        "{{ numbers | batch(1000000000) }}",
        "{{ 1 | round(1000000000) }}",
        "{{ text }}{{ text }}",
        "{{ numbers | indent(1000000000) }}",
    ],
    ids=lambda text: text[:40],
)
def test_a_template_that_would_take_too_much_fails(text: str) -> None:
    """Multiplied text, endless ranges, deep nesting and large results are refused, not made."""
    with pytest.raises(TemplateFailed):
        render(text, text="a" * 600_000, numbers=list(range(-100_000, 0)))


LONG: dict[str, Any] = {
    "text": "a" * 400_000 + "b",
    "same": "a" * 400_000 + "b",
    "deep": [[["a" * 400_000]]],
    "alike": [[["a" * 400_000]]],
    "texts": ["a" * 40_000] * 10,
    "path": "a." * 200_000,
}


@pytest.mark.parametrize(
    "text",
    [
        "{{ 'ab' in text }}",
        "{{ 'ab' not in text }}",
        "{{ text == same }}",
        "{{ text != same }}",
        "{{ text < same }}",
        "{{ text >= same }}",
        "{{ deep == alike }}",
        "{{ alike[0] in deep }}",
        "{{ text[-40000:] in texts }}",
        "{{ [deep] | unique | length }}",
        "{{ [text] | sort | length }}",
        "{{ [[text], [same]] | max | length }}",
        "{{ [1] | map(attribute=path, default=0) }}",
        "{{ '' | replace(text, '') }}",
    ],
)
def test_what_an_operator_or_filter_reads_counts(text: str) -> None:
    """However often a template compares or searches long data, it reads 4 MiB in all."""
    render(text, **LONG)
    with pytest.raises(TemplateFailed, match="makes or reads too much"):
        render(text * 11, **LONG)


@pytest.mark.parametrize(
    "text",
    ["{{ text == '' }}", "{{ deep != null }}", "{{ 'a' in texts }}", "{{ text < 'b' }}"],
)
def test_what_differs_in_length_is_not_read(text: str) -> None:
    """A comparison of long data with short ones costs hardly anything."""
    render(text * 1_000, **LONG)


def test_a_few_names_make_no_large_text() -> None:
    """What would exceed the budget as JSON is refused before it is written."""
    many = ", ".join(["deep"] * 20)
    with patch("adapters_runtime.expressions.scope.json.dumps") as written:
        for text in (f"{{{{ [{many}] | tojson }}}}", f"{{{{ [{many}] }}}}."):
            with pytest.raises(TemplateFailed, match="makes or reads too much"):
                render(text, **LONG)
        written.assert_not_called()


def test_the_result_may_have_a_megabyte_and_no_more() -> None:
    """The limit is on what comes out, a plain look-up too."""
    assert render("{{ text }}", text="a" * TEXT_RESULT) == "a" * TEXT_RESULT
    half = TEXT_RESULT // 2
    for large in ("a" * (TEXT_RESULT + 1), "ä" * (half + 1), ["ab"] * half):
        with pytest.raises(TemplateFailed, match="over 1 MB"):
            render("{{ value }}", value=large)


def test_templates_inside_lists_and_objects_are_rendered() -> None:
    """Keys stay as they are; every text below is a template."""
    value: Json = {"{{ a }}": ["{{ variables.limit }}", {"b": "{{ execution.id }}!"}, 1, None]}
    assert render(value) == {"{{ a }}": [100, {"b": "exec_1!"}, 1, None]}


def test_data_never_change_and_never_run() -> None:
    """A template in the data is text, and what a template gives back is the data itself."""
    assert render("{{ value }}", value="{{ variables.limit }}") == "{{ variables.limit }}"
    assert render("{{ variables.l | sort }}") == [1, 2, 3]
    assert NAMES["variables"]["l"] == [3, 1, 2]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{{ variables.limt }}", ["unknown name variables.limt; did you mean limit?"]),
        ('{{ steps["fetsch"] }}', ["unknown name steps.fetsch; did you mean fetch?"]),
        ("{{ varables.limit }}", ["unknown name varables; did you mean variables?"]),
        (
            "{{ steps.by-hand.output }}",
            [
                "unknown name hand; known: execution, steps, variables",
                'unknown name steps.by; a name with "-" is written steps["by-hand"]',
            ],
        ),
        ("{{ a }} {{ b | f }}", ["unknown name a", "there is no filter 'f'"]),
        ("{{ variables.limit }} {{ steps[variables.name] }} {{ steps }}", []),
        ("{{ execution.id | default(variables.nope) }}", ["unknown name variables.nope"]),
        ("{{ variables.name | date('%d.%q', variables.name) }}", ["date knows no %q"]),
        ("{{ variables.name | date('%d', 'Berlin') }}", ["'Berlin' is no time zone"]),
        ("{{ variables.limit | number(-1) | round(31) }}", ["round wants a precision"]),
        ("{{ variables.limit | number(21) }}", ["number wants 0 to 20 decimals"]),
        ("{{ variables.name | split('') }}", ["split wants a separator"]),
        ("no template", []),
    ],
)
def test_problems_are_seen_in_the_text(text: str, said: list[str]) -> None:
    """Unknown names on two levels, syntax, filters and their literal arguments. TM-1."""
    found = TEMPLATES.problems(text, KNOWN)
    assert len(found) == len(said)
    assert all(one in " ".join(found) for one in said)


def test_names_below_none_are_free() -> None:
    """A loop's item may have any name below it."""
    assert TEMPLATES.problems("{{ item.anything }}", {"item": None}) == []


WORDS = (
    "{{", "}}", " ", ".", "|", "(", ")", "[", "]", "{", "}", ",", ":", "-", "+", "*", "**", "/",
    "~", "'", '"', "\\", "=", "==", "<", "not", "in", "is", "if", "else", "and", "or", "1", "9",
    "0.5", "variables", "limit", "l", "steps", "fetch", "output", "x", "true", "none", "{%", "#",
    *FILTERS, "default", "defined", "attribute", "'id'", "'upper'", "ä", "[1:", ":2]",
)  # fmt: skip


@given(st.lists(st.sampled_from(WORDS), max_size=20).map(" ".join) | st.text())
@settings(max_examples=500)
def test_any_text_renders_or_fails_as_a_template(text: str) -> None:
    """No text raises anything but `TemplateFailed`; what fails as syntax is a problem before."""
    for each in (text, f"{{{{ {text} }}}}", f"{{{{ variables.l | {text} }}}}"):
        found = TEMPLATES.problems(each, KNOWN)
        try:
            json.dumps(render(each), allow_nan=False)
        except TemplateFailed:
            continue
        assert not [one for one in found if not one.startswith("unknown name")]


@given(json_values())
def test_a_look_up_gives_the_value_itself(value: Json) -> None:
    """A whole-string template keeps every value; inside text it reads back as the same JSON."""
    assert render("{{ value }}", value=value) is value
    text = render("{{ [value] }} ", value=value)
    assert isinstance(text, str)
    assert json.loads(text) == [value]


def test_the_documentation_names_every_filter() -> None:
    """The page on definitions has a row for each filter, and for no other."""
    page = Path(__file__).parents[3] / "docs/definitions.md"
    _, _, table = page.read_text().partition("| filter | gives |\n|---|---|\n")
    rows = table.partition("\n\n")[0].splitlines()
    named = [name for row in rows for name in re.findall(r"`(\w+)", row.split("|")[1])]
    assert sorted({*named}) == sorted({*FILTERS, "default"})


# The oracle: minijinja itself

NUMBERS = st.sampled_from(("0", "1", "7", "2.5", "variables.limit", "variables.ratio"))
PLACES = ("0", "-1", "1:", ":-1", "::2", "-2:9:1")
LISTS = st.sampled_from(("[]", "[1, 2]", "[3, 1, 3]", "variables.l", "[2, 'b', none, true, [1]]"))
STRINGS = st.sampled_from(
    ("''", "'a'", "'Ann B'", "variables.name", "'1'", "' x,y '", "[3, 'b'] | join('-')")
)


def _binary(part: st.SearchStrategy[str], signs: tuple[str, ...]) -> st.SearchStrategy[str]:
    return st.builds("{} {} {}".format, part, st.sampled_from(signs), part)


def _grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    signs = ("+", "-", "*", "/", "//", "%", "==", "!=", "<", ">=", "and", "or", "in")
    filters = (
        "length", "upper", "lower", "sort", "sort(reverse=true)", "first", "last", "sum", "max",
        "min", "int", "unique", "default(1)", "trim", "split(',')", "replace('a', 'b')", "round",
        "float",
    )  # fmt: skip
    return (
        _binary(inner, signs)
        | st.builds("({})".format, inner)
        | st.builds("not {}".format, inner)
        | st.builds("-{}".format, inner)
        | st.builds("{} if {} else {}".format, inner, inner, inner)
        | st.builds("{} | {}".format, inner, st.sampled_from(filters))
        | st.builds("{} is defined".format, inner)
        | st.builds("[{}, {}]".format, inner, inner)
        | st.builds(
            "({})[{}]".format, inner, st.sampled_from(("0", "-1", "1:", ":-1", "::2", "-2:9:1"))
        )
    )


EXPRESSIONS = st.recursive(NUMBERS | LISTS | STRINGS, _grown, max_leaves=4)
ORACLE = minijinja.Environment(undefined_behavior="strict", pycompat=False, debug=False)


def _plain(value: Any) -> Any:
    """minijinja's values as JSON: tuples and views as lists."""
    if isinstance(value, str | bool | int | float) or value is None:
        return str(value) if isinstance(value, str) else value
    return (
        {k: _plain(v) for k, v in value.items()}
        if isinstance(value, dict)
        else [*map(_plain, value)]
    )


@given(EXPRESSIONS)
@settings(max_examples=1_000)
def test_minijinja_agrees(expression: str) -> None:
    """Where both give a value, it is the same (but `true is number`, which it is not in JSON)."""
    try:
        theirs = _plain(ORACLE.eval_expr(expression, **NAMES))
        ours = render(f"{{{{ {expression} }}}}")
    except (minijinja.TemplateError, TemplateFailed):
        return  # we are stricter: missing items, multiplied text, values of different types
    assert ours == pytest.approx(theirs) if isinstance(theirs, float) else ours == theirs


@pytest.mark.parametrize("item", [[], {}, ()], ids=str)
def test_unique_pays_for_each_list_and_object_that_it_writes(item: Json) -> None:
    """A long list of empty lists is no cheap way to keep the server busy."""
    with pytest.raises(TemplateFailed, match="too much data"):
        MiniJinjaTemplates().render("{{ many | unique }}", {"many": [item] * 300_000})
    assert MiniJinjaTemplates().render("{{ few | unique }}", {"few": [item] * 3}) == [item]
