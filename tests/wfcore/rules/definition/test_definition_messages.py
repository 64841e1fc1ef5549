"""Named mistakes and what is said about them."""

from datetime import date
from typing import Any

import pytest

from adapters_runtime.cron import CronCalendar
from adapters_runtime.expressions.templates import MiniJinjaTemplates
from wfcore.errors import InvalidDefinition
from wfcore.model.workflow import CodeStep, Definition, Language
from wfcore.rules.definition.check import check_definition, language_problems
from wfcore.rules.definition.steps import KINDS

CODE = {"name": "fetch", "kind": "code", "language": "python", "source": "print(1)"}
GROUP = {"name": "rows", "rows": [{"id": 1}]}


def check(document: Any) -> Definition:
    return check_definition(document, MiniJinjaTemplates().problems, CronCalendar().problems)


def said(document: Any) -> list[str]:
    with pytest.raises(InvalidDefinition) as caught:
        check(document)
    return str(caught.value).splitlines()


def with_step(**fields: Any) -> dict[str, Any]:
    return {"name": "W", "steps": [{**CODE, **fields}]}


def approval(**fields: Any) -> dict[str, Any]:
    return {"name": "W", "steps": [CODE, {"name": "ask", "kind": "manual_approval", **fields}]}


def with_variable(**fields: Any) -> dict[str, Any]:
    return {"name": "W", "variables": {"limit": fields}, "steps": [CODE]}


DOCUMENTS: list[tuple[Any, str]] = [
    (3, "definition: must be an object, not a number"),
    ({"steps": [CODE]}, "name: is required"),
    ({"name": " ", "steps": [CODE]}, "name: must not be empty"),
    ({"name": "x" * 201, "steps": [CODE]}, "name: is 201 characters long; at most 200"),
    ({"name": "W"}, "steps: is required"),
    ({"name": "W", "steps": []}, "steps: must have at least 1 item"),
    ({"name": "W", "steps": [CODE] * 501}, "steps: has 501 steps; at most 500"),
    ({"name": "W", "steps": [CODE, CODE]}, "steps[1].name: repeats 'fetch' of steps[0]"),
    ({"name": "W", "steps": [7]}, "steps[0]: must be an object, not a number"),
    (
        {"name": "W", "stps": [], "steps": [CODE]},
        "stps: unknown field; did you mean steps? "
        "known: name, description, variables, state, approverGroups, steps, output, budget, "
        "onInterrupt, onFailure, notifyOnFailure, triggers, concurrency, reference",
    ),
    (
        {"name": "W", "steps": [CODE], "output": {"a": ["{{ steps.ask }}"]}},
        "output.a[0]: unknown name steps.ask; known: fetch",
    ),
]

STEPS: list[tuple[Any, str]] = [
    (
        with_step(kind="sorcery"),
        f"steps[0].kind: kind 'sorcery' is not supported; known: {', '.join(KINDS)}",
    ),
    (with_step(kind=[]), f"steps[0].kind: must be one of {', '.join(KINDS)}, not a list"),
    (with_step(kind=None), f"steps[0].kind: must be one of {', '.join(KINDS)}, not null"),
    (
        with_step(name="2 go"),
        "steps[0].name: must be letters, digits, _ and -, beginning with a letter or _",
    ),
    (
        with_step(timeout="5"),
        "steps[0].timeout: must be a duration: a number with ms, s, m, h or d"
        " (like 30s), or a whole number of milliseconds",
    ),
    (with_step(timeout=0), "steps[0].timeout: must be more than 0 and at most 365d"),
    (with_step(timeout=True), "steps[0].timeout: must be a duration like 30s, not true"),
    (
        approval(requiredApprovals=0),
        "steps[1].requiredApprovals: must be a whole number from 1 to 100",
    ),
    (
        approval(requiredApprovals=True),
        "steps[1].requiredApprovals: must be a whole number from 1 to 100, not true",
    ),
    (
        approval(requiredApprovals=3, approvers=["ann@example.org", " Ann@example.org", "acc_2"]),
        "steps[1].requiredApprovals: is 3, but approvers names 2; nobody else may approve",
    ),
    (
        approval(allowSelfApproval="no"),
        "steps[1].allowSelfApproval: must be true or false, not text",
    ),
    (
        approval(reminders="1h"),
        "steps[1].reminders: must be a list, not text",
    ),
    (
        approval(reminders=["1h", "24h"]),
        "steps[1].reminders[1]: must be shorter than the step's timeout",
    ),
    (
        approval(reminders=["30m"], timeout="30m"),
        "steps[1].reminders[0]: must be shorter than the step's timeout",
    ),
    (approval(reminders=["1h"] * 21), "steps[1].reminders: has 21 items; at most 20"),
    (
        {
            "name": "W",
            "steps": [{"name": "a", "kind": "code", "language": "command", "command": []}],
        },
        "steps[0].command: must have at least 1 item",
    ),
    (with_step(source=""), "steps[0].source: must not be empty"),
    (with_step(source="x" * 262_145), "steps[0].source: is over 256 KiB"),
    (with_step(source="a\0b"), "steps[0].source: must not have NUL characters"),
    (with_step(command=["ls"]), "steps[0].command: is not for language python; use source"),
    (
        {"name": "W", "steps": [{"name": "a", "kind": "code", "language": "command"}]},
        "steps[0].command: is required for language command",
    ),
    (
        {
            "name": "W",
            "steps": [{"name": "a", "kind": "code", "language": "command", "command": [""]}],
        },
        "steps[0].command[0]: must name a program",
    ),
    (
        with_step(language="pyton"),
        "steps[0].language: unknown value 'pyton'; did you mean python? "
        "known: python, javascript, typescript, bash, ruby, lua, command",
    ),
    (
        with_step(retry={"attempts": 101}),
        "steps[0].retry.attempts: must be a whole number from 1 to 100",
    ),
    (
        with_step(retry={"backoff": 0.5}),
        "steps[0].retry.backoff: must be a number from 1 to 100",
    ),
    (
        with_step(when="{{ true }} and {{ false }}"),
        "steps[0].when: must be exactly one template {{ … }} with nothing around it",
    ),
    (with_step(when="{{ '}}"), "steps[0].when: a text that begins with ' does not end"),
    (
        with_step(when="{{ variables.limit > 3 }}"),
        "steps[0].when: unknown name variables.limit; none is known here",
    ),
    (
        with_step(when="{{ steps.fetch.output }}"),
        "steps[0].when: unknown name steps.fetch; none is known here",
    ),
    (
        approval(message="{% if 1 %}"),
        "steps[1].message: statements ({%) are not supported; only {{ expressions }} are",
    ),
    (approval(approvers=["ann@example.org", ""]), "steps[1].approvers[1]: must not be empty"),
    (
        approval(approvers=["notanemail"]),
        "steps[1].approvers[0]: 'notanemail' can be nobody: write an email address or an account "
        "id (acc_…), group:NAME, or one template {{ … }}",
    ),
    (
        approval(approvers=["{{ execution.id }}@example.org"]),
        "steps[1].approvers[0]: must be exactly one template {{ … }} with nothing around it",
    ),
    (
        approval(approvers=["{{ variables.who }}"]),
        "steps[1].approvers[0]: unknown name variables.who; none is known here",
    ),
    (
        approval(assurance="passkey", autoApprove="{{ execution.id }}"),
        "steps[1].autoApprove: a rule has no passkey; leave out autoApprove or assurance",
    ),
    (
        approval(assurance="password"),
        "steps[1].assurance: unknown value 'password'; known: session, passkey",
    ),
    (
        approval(stages=[{"approvers": ["ann@example..org"]}]),
        "steps[1].stages[0].approvers[0]: 'ann@example..org' can be nobody: write an email address "
        "or an account id (acc_…), group:NAME, or one template {{ … }}",
    ),
    (
        approval(approvers=["ann@x.example"], escalate={"after": "1h", "to": ["dan@x.example(x)"]}),
        "steps[1].escalate.to[0]: 'dan@x.example(x)' can be nobody: write an email address or an "
        "account id (acc_…), group:NAME, or one template {{ … }}",
    ),
    (
        {**approval(), "approverGroups": {"board": ["{{ variables.who }}"]}},
        "approverGroups.board[0]: '{{ variables.who }}' can be nobody: write an email address or "
        "an account id (acc_…)",
    ),
    (
        approval(groups=[GROUP, GROUP]),
        "steps[1].groups[1].name: repeats 'rows' of steps[1].groups[0]",
    ),
    (
        approval(groups=[{**GROUP, "rows": "some rows"}]),
        "steps[1].groups[0].rows: must be exactly one template {{ … }} with nothing around it",
    ),
    (
        approval(groups=[{**GROUP, "rows": [{"a": {"b": "{{ nope }}"}}]}]),
        "steps[1].groups[0].rows[0].a.b: unknown name nope; "
        "known: execution, state, steps, trigger, variables",
    ),
    (
        approval(groups=[{**GROUP, "rowKey": "no", "columns": [{"key": "id"}]}]),
        "steps[1].groups[0].rowKey: must be the key of a column: id",
    ),
    (
        approval(groups=[{**GROUP, "columns": [{"key": "id"}, {"key": "id"}]}]),
        "steps[1].groups[0].columns[1].key: repeats 'id' of steps[1].groups[0].columns[0]",
    ),
    (
        approval(groups=[{**GROUP, "columns": [{"key": "id", "type": "enum"}]}]),
        "steps[1].groups[0].columns[0].options: is required for a column of type enum",
    ),
]

VARIABLES: list[tuple[Any, str]] = [
    (
        with_variable(type="string", default="a\0b"),
        "variables.limit.default: must not have NUL characters",
    ),
    (
        with_variable(default=3),
        "variables.limit.default: must be of the declared type string, not a number",
    ),
    (
        with_variable(type="number", default=True),
        "variables.limit.default: must be of the declared type number, not true",
    ),
    (
        {"name": "W", "variables": {"a b": {}}, "steps": [CODE]},
        'variables["a b"]: must be a name of letters, digits, _, - and .',
    ),
    (
        {"name": "W", "variables": {"limit": 100}, "steps": [CODE]},
        "variables.limit: must be an object, not a number",
    ),
]


NOT_HERE = (
    "is for code and ai steps: only these run when a worker dies; say it on the steps that this "
    "one holds, in the definition of the workflow that it starts, or at the top"
)
INTERRUPTIONS: list[tuple[Any, str]] = [
    (
        {"name": "W", "steps": [CODE], "onInterrupt": "resum"},
        "onInterrupt: unknown value 'resum'; did you mean resume? known: resume, fail",
    ),
    (
        with_step(onInterrupt=True),
        "steps[0].onInterrupt: must be one of resume, fail, not true",
    ),
    (approval(onInterrupt="fail"), f"steps[1].onInterrupt: {NOT_HERE}"),
    (
        {
            "name": "W",
            "steps": [{"name": "a", "kind": "workflow", "workflow": "x", "onInterrupt": "fail"}],
        },
        f"steps[0].onInterrupt: {NOT_HERE}",
    ),
]


@pytest.mark.parametrize(("document", "message"), DOCUMENTS + STEPS + VARIABLES + INTERRUPTIONS)
def test_a_mistake_is_said_like_this(document: Any, message: str) -> None:
    """Each of these mistakes is said once, with its path, alone. DF-2 to DF-6, AP-21, EX-25."""
    assert said(document) == [message]


LISTS: list[tuple[Any, list[str]]] = [
    ({"name": "W", "steps": {}}, ["steps: must be a list, not an object"]),
    (
        {"name": "W", "steps": [{}, {"kind": "code"}, {"name": 3, "kind": "delay"}]},
        [
            f"steps[0].kind: is required: one of {', '.join(KINDS)}",
            "steps[1].name: is required",
            "steps[1].language: is required",
            "steps[2].duration: is required",
            "steps[2].name: must be text, not a number",
        ],
    ),
    (
        {"name": "W", "steps": [CODE, {**CODE, "language": "lua"}, {**CODE, "source": 3}]},
        [
            "steps[1].name: repeats 'fetch' of steps[0]",
            "steps[2].name: repeats 'fetch' of steps[0]",
            "steps[2].source: must be text, not a number",
        ],
    ),
    (
        with_step(language="perl", command=3),
        [
            "steps[0].language: unknown value 'perl'; known: "
            "python, javascript, typescript, bash, ruby, lua, command",
            "steps[0].command: must be a list, not a number",
        ],
    ),
    (
        with_step(source=[], command=["ls", "a\0", 3, "{{ x }}"], language="command"),
        [
            "steps[0].source: must be text, not a list",
            "steps[0].command[1]: must not have NUL characters",
            "steps[0].command[2]: must be text, not a number",
            "steps[0].source: is not for language command; use command",
            "steps[0].command[3]: unknown name x; "
            "known: execution, state, steps, trigger, variables",
        ],
    ),
    (
        with_step(source=" \n", when="{{ execution.x }}{{ 1 }}", name="x" * 201),
        [
            "steps[0].name: is 201 characters long; at most 200",
            "steps[0].when: must be exactly one template {{ … }} with nothing around it",
            "steps[0].source: must not be empty",
            "steps[0].when: unknown name execution.x; known: id, workflowId",
        ],
    ),
    (
        {"name": 3, "steps": [CODE], "description": 3, "output": {"a": "{{ steps.fetch }}{{ x }}"}},
        [
            "name: must be text, not a number",
            "description: must be text, not a number",
            "output.a: unknown name x; known: execution, state, steps, trigger, variables",
        ],
    ),
]


@pytest.mark.parametrize(("document", "messages"), LISTS)
def test_mistakes_are_said_in_the_order_of_their_fields(document: Any, messages: list[str]) -> None:
    """However many there are, each is said once, a step's templates after its fields. DF-1."""
    assert said(document) == messages


def test_a_source_may_be_so_long() -> None:
    """Bytes are counted, not characters. DF-3."""
    assert check(with_step(source="é" * 131_072))
    assert said(with_step(source="é" * 131_073)) == ["steps[0].source: is over 256 KiB"]
    assert check(with_step(source="\ud800"))


def test_a_command_is_read() -> None:
    """An argument may be empty, but not the program."""
    step = {"name": "a", "kind": "code", "language": "command", "command": ["{{ 1 }}", ""]}
    (found,) = check({"name": "W", "steps": [step]}).steps
    assert isinstance(found, CodeStep)
    assert found.command == ("{{ 1 }}", "")


def test_the_shortest_step_has_the_defaults_of_the_contract() -> None:
    """30 s for code, 24 h for an approval, titles from names, no retry."""
    definition = check(approval(groups=[{**GROUP, "columns": [{"key": "id"}]}]))
    code, ask = definition.steps
    assert (code.timeout_ms, ask.timeout_ms) == (30_000, 86_400_000)
    assert isinstance(code, CodeStep)
    assert code.retry.attempts == 1
    group = definition.steps[1].groups[0]  # type: ignore[union-attr]
    assert (group.title, group.columns[0].title) == ("rows", "id")


def test_whitespace_around_a_whole_template_is_dropped() -> None:
    """A block scalar ends with a newline; `when` and `rows` are one template all the same."""
    definition = check(
        approval(when=" {{ true }}\n", groups=[{**GROUP, "rows": "{{ steps.fetch.output }}\n"}])
    )
    step = definition.steps[1]
    assert step.when == "{{ true }}"
    assert step.groups[0].rows == "{{ steps.fetch.output }}"  # type: ignore[union-attr]


def test_what_the_document_says_of_itself_is_kept() -> None:
    """Its name, its description, and its steps as somebody wrote them."""
    found = check({"name": "W", "description": "What for", "steps": [CODE]})
    assert (found.name, found.description, found.steps_as_written) == ("W", "What for", (CODE,))


def test_source_is_never_a_template() -> None:
    """Braces in code are code. DF-7."""
    assert check(with_step(source="{{ nope }} {% x %}")).steps[0]


def test_an_output_of_null_is_an_output() -> None:
    """Written null is not the same as left out."""
    assert check({"name": "W", "steps": [CODE], "output": None}).has_output
    assert not check({"name": "W", "steps": [CODE]}).has_output


@pytest.mark.parametrize(
    ("value", "words"),
    [(True, "true"), (0.5, "a number"), ((), "a list"), (date(2026, 11, 22), "date")],
)
def test_a_value_is_named_as_its_author_knows_it(value: object, words: str) -> None:
    """Even one that JSON does not have, as an embedder may hand one in."""
    assert said({"name": value, "steps": [CODE]}) == [f"name: must be text, not {words}"]


def test_empty_triggers_are_fine() -> None:
    """An empty list asks for nothing."""
    assert check({"name": "W", "steps": [CODE], "triggers": []})


def test_a_language_that_cannot_run_is_a_problem_with_its_cure() -> None:
    """Each step in such a language is named, with what to install."""
    definition = check({"name": "W", "steps": [CODE, {**CODE, "name": "b", "language": "lua"}]})
    [problem] = language_problems(definition, {(Language.LUA, None): "apt install lua5.4"})
    assert str(problem) == "steps[1].language: lua cannot run here: apt install lua5.4"
