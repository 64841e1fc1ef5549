"""Named mistakes in what a definition says of its starts. SH-5, SH-6."""

from typing import Any

import pytest

from adapters_runtime.cron import CronCalendar
from adapters_runtime.expressions.templates import MiniJinjaTemplates
from wfcore.errors import InvalidDefinition
from wfcore.model.execution import ExecutionStatus
from wfcore.model.trigger import Chain, Missed, Schedule
from wfcore.model.workflow import Concurrency, Definition, OnLimit
from wfcore.rules.definition.check import check_definition

CODE = {"name": "fetch", "kind": "code", "language": "python", "source": "print(1)"}
DAILY = {"kind": "SCHEDULE", "cron": "0 9 * * *"}
BEHIND = {"kind": "DELAYED_COMPLETION", "workflow": "Import"}


def check(**fields: Any) -> Definition:
    document = {"name": "W", "steps": [CODE], **fields}
    return check_definition(document, MiniJinjaTemplates().problems, CronCalendar().problems)


def said(**fields: Any) -> list[str]:
    with pytest.raises(InvalidDefinition) as caught:
        check(**fields)
    return str(caught.value).splitlines()


def test_triggers_with_their_defaults() -> None:
    """What is left out is UTC, no delay, no end of runs, and as the server is set."""
    in_tokyo = {**DAILY, "timezone": "Asia/Tokyo", "missed": "once"}
    definition = check(triggers=[DAILY, BEHIND, in_tokyo])
    assert definition.triggers == (
        Schedule("0 9 * * *", "UTC", None),
        Chain("Import", 0, None),
        Schedule("0 9 * * *", "Asia/Tokyo", Missed.ONCE),
    )


def test_names_that_look_alike_are_one() -> None:
    """Blanks around and within, and the normal form, make no other workflow. DF-15."""
    odd = "  Cafe\u0301 \u00a0 am  See "
    assert check(name=odd, triggers=[{**BEHIND, "workflow": odd + "2"}]) == check(
        name="Caf\u00e9 am See", triggers=[{**BEHIND, "workflow": "Caf\u00e9 am See 2"}]
    )
    itself = {"name": "again", "kind": "workflow", "workflow": odd}
    assert "names this workflow itself" in said(name="Caf\u00e9 am See", steps=[itself])[0]


TRIGGERS: list[tuple[Any, str]] = [
    (3, "triggers: must be a list, not a number"),
    ([3], "triggers[0]: must be an object, not a number"),
    ([{}], "triggers[0].kind: must be one of SCHEDULE, DELAYED_COMPLETION"),
    (
        [{"kind": "SHEDULE"}],
        "triggers[0].kind: kind 'SHEDULE' is not supported; did you mean SCHEDULE? "
        "known: SCHEDULE, DELAYED_COMPLETION",
    ),
    ([{"kind": "SCHEDULE"}], "triggers[0].cron: is required"),
    ([{"kind": "DELAYED_COMPLETION"}], "triggers[0].workflow: is required"),
    (
        [{**DAILY, "crn": 1}],
        "triggers[0].crn: unknown field; did you mean cron? known: kind, cron, timezone, missed, "
        "pauseAfter, inputs",
    ),
    (
        [{**DAILY, "cron": "@daily"}],
        "triggers[0].cron: must have five fields: minute, hour, day of month, month, day of week",
    ),
    ([{**DAILY, "cron": "61 * * * *"}], "triggers[0].cron: cannot be read: Bad minute"),
    ([{**DAILY, "cron": "0 0 30 2 *"}], "triggers[0].cron: cannot be read: Bad day-of-month"),
    ([{**DAILY, "cron": "0 0 */20 * 1#5"}], "triggers[0].cron: names a time that never comes"),
    (
        [{**DAILY, "cron": "*/90 * * * *"}],
        "triggers[0].cron: */90 as minute means 0 alone: the values end at 59; write 0",
    ),
    (
        [{**DAILY, "cron": "0 8-12/5,20 * * *"}],
        "triggers[0].cron: 8-12/5 as hour means 8 alone: the values end at 12; write 8",
    ),
    *(
        (
            [{**DAILY, "timezone": name}],
            f"triggers[0].timezone: {name!r} is no time zone like Europe/Berlin{meant}",
        )
        for name, meant in {
            "localtime": "",
            "posixrules": "",
            "Factory": "",
            "right/Europe/Berlin": "; did you mean Europe/Berlin?",
            "posix/Europe/Berlin": "; did you mean Europe/Berlin?",
        }.items()
    ),
    (
        [{**DAILY, "timezone": "Middle-earth"}],
        "triggers[0].timezone: 'Middle-earth' is no time zone like Europe/Berlin",
    ),
    (
        [{**DAILY, "timezone": "Europe/Berln"}],
        "triggers[0].timezone: 'Europe/Berln' is no time zone like Europe/Berlin; "
        "did you mean Europe/Berlin?",
    ),
    (
        [{**DAILY, "missed": "all"}],
        "triggers[0].missed: unknown value 'all'; known: skip, once",
    ),
    (
        [{**BEHIND, "delaySeconds": 0.5}],
        "triggers[0].delaySeconds: must be a whole number from 0 to 31,536,000, not a number",
    ),
    (
        [{**BEHIND, "maxRuns": 0}],
        "triggers[0].maxRuns: must be a whole number from 1 to 1,000,000",
    ),
    (
        [{**BEHIND, "on": "FAILED"}],
        "triggers[0].on: must be a list, not text",
    ),
    (
        [{**BEHIND, "on": ["FAILD"]}],
        "triggers[0].on[0]: unknown value 'FAILD'; did you mean FAILED? "
        "known: COMPLETED, FAILED, CANCELLED",
    ),
    ([{**BEHIND, "on": ["FAILED", "FAILED"]}], "triggers[0].on: names a status twice"),
    (
        [{**DAILY, "inputs": {"a": "{{ trigger.scheduledat }}"}}],
        "triggers[0].inputs.a: unknown name trigger.scheduledat; did you mean scheduledAt?",
    ),
    (
        [{**DAILY, "inputs": {"a": "{{ variables.a }}"}}],
        "triggers[0].inputs.a: unknown name variables; known: state, trigger",
    ),
    (
        [{**DAILY, "inputs": {"dya": 1}}],
        "triggers[0].inputs.dya: is no variable of this workflow; did you mean day? "
        "known: a, day, rows",
    ),
    ([{**DAILY, "inputs": {"day": 1}}], "triggers[0].inputs.day: must be a string"),
    (
        [{**DAILY, "inputs": {"rows": "of {{ trigger.kind }}"}}],
        "triggers[0].inputs.rows: must be an array",
    ),
    ([BEHIND, DAILY, {**BEHIND, "maxRuns": 1}], "triggers[2]: repeats triggers[0]"),
    ([DAILY, {**DAILY, "missed": "once"}], "triggers[1]: repeats triggers[0]"),
    ([BEHIND] * 21, "triggers: has 21 items; at most 20"),
]


@pytest.mark.parametrize(("triggers", "message"), TRIGGERS)
def test_a_trigger_that_is_wrong(triggers: Any, message: str) -> None:
    """Exactly this is said of it. SH-12, CH-6."""
    variables = {"a": {}, "day": {}, "rows": {"type": "array"}}
    assert said(triggers=triggers, variables=variables) == [message]


def test_what_triggers_give_needs_no_default() -> None:
    """A required variable has a default, or every trigger gives it. SH-6, SH-12."""
    variables = {"day": {"required": True}}
    gives = {**DAILY, "inputs": {"day": "{{ trigger.scheduledAt }}"}}
    ends = {**BEHIND, "on": ["FAILED", "COMPLETED"], "inputs": {"day": "monday"}}
    found = check(triggers=[gives, ends], variables=variables).triggers
    assert found[1].on == (ExecutionStatus.FAILED, ExecutionStatus.COMPLETED)
    assert said(triggers=[gives, BEHIND], variables=variables) == [
        "variables.day: is required and has no default, and triggers[1] gives no input for it"
    ]


def test_a_chain_never_follows_failures_of_its_own_workflow() -> None:
    """CH-6: it would go round until its depth is reached."""
    own = {**BEHIND, "workflow": "  first ", "on": ["CANCELLED"]}
    assert said(name="first", triggers=[own]) == [
        "triggers[0].on: must not follow CANCELLED of this workflow itself"
    ]


def test_a_reference_that_is_wrong() -> None:
    """Names are judged as in a concurrency key. EX-38."""
    assert said(reference=7) == ["reference: must be a template over variables, not a number"]
    assert said(reference="{{ variables.odrer }}", variables={"order": {}}) == [
        "reference: unknown name variables.odrer; did you mean order?"
    ]


LIMITS: list[tuple[Any, str]] = [
    (2, "concurrency: must be an object, not a number"),
    ({}, "concurrency.limit: is required"),
    ({"limit": 0}, "concurrency.limit: must be a whole number from 1 to 1,000"),
    ({"limit": True}, "concurrency.limit: must be a whole number from 1 to 1,000, not true"),
    (
        {"limit": 1, "onLimit": "wait"},
        "concurrency.onLimit: unknown value 'wait'; known: queue, skip",
    ),
    (
        {"limit": 1, "key": "{{ variables.customer }}"},
        "concurrency.key: unknown name variables.customer; known: a",
    ),
    (
        {"limit": 1, "key": "{{ steps.fetch.output }}"},
        "concurrency.key: unknown name steps.fetch; none is known here",
    ),
    (
        {"limit": 1, "key": "{{ execution.id }}"},
        "concurrency.key: unknown name execution.id; none is known here",
    ),
    ({"limit": 1, "key": 7}, "concurrency.key: must be a template over variables, not a number"),
]


@pytest.mark.parametrize(("concurrency", "message"), LIMITS)
def test_a_limit_that_is_wrong(concurrency: Any, message: str) -> None:
    """Exactly this is said of it. CC-1, CC-3."""
    assert said(concurrency=concurrency, variables={"a": {}}) == [message]


def test_a_limit_with_its_defaults() -> None:
    """What is left out is one lane for all, in which starts wait. CC-1."""
    assert check(concurrency={"limit": 2}).concurrency == Concurrency(2, None, OnLimit.QUEUE)
    each = {"limit": 1_000, "key": "{{ variables.a }}", "onLimit": "skip"}
    found = check(concurrency=each, variables={"a": {}}).concurrency
    assert found == Concurrency(1_000, "{{ variables.a }}", OnLimit.SKIP)


def test_what_starts_by_itself_needs_no_values() -> None:
    """With a trigger, a required variable needs a default; without one, none. SH-6."""
    variables = {"a": {"required": True}, "b": {"required": True, "default": "x"}, "c": {}}
    message = "is required and has no default, so no trigger can start this workflow"
    assert said(variables=variables, triggers=[DAILY]) == [f"variables.a: {message}"]
    assert check(variables=variables)


def test_without_a_calendar_there_are_no_schedules() -> None:
    """Who checks without a calendar is told so, and chains are fine."""
    document = {"name": "W", "steps": [CODE], "triggers": [DAILY]}
    with pytest.raises(InvalidDefinition, match=r"triggers\[0\]\.cron: schedules are not"):
        check_definition(document, MiniJinjaTemplates().problems)
    document["triggers"] = [BEHIND]
    assert check_definition(document, MiniJinjaTemplates().problems).triggers
