"""Named mistakes in mail steps, and what is said about them. ML-2, ML-4."""

from typing import Any

import pytest

from adapters_runtime.expressions.templates import MiniJinjaTemplates
from wfcore.errors import InvalidDefinition
from wfcore.model.workflow import Definition, MailStep
from wfcore.rules.definition.check import check_definition
from wfcore.rules.definition.written import document_of
from wfcore.time import HOUR

REPORT = {"name": "report", "kind": "code", "language": "bash", "source": "true"}
MAIL = {"name": "tell", "kind": "mail", "to": "ann@example.org", "subject": "s", "body": "b"}


def check(**fields: Any) -> Definition:
    mail = {name: value for name, value in {**MAIL, **fields}.items() if value is not ...}
    document = {"name": "W", "steps": [REPORT, {**MAIL, "name": "first"}, mail]}
    return check_definition(document, MiniJinjaTemplates().problems)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"to": ...}, "steps[2].to: is required"),
        ({"to": []}, "steps[2].to: must have at least 1 item"),
        ({"to": ["ann"]}, "steps[2].to[0]: 'ann' can be nobody: write an email address"),
        ({"to": "a@x.org, b@x.org"}, "steps[2].to: 'a@x.org, b@x.org' can be nobody"),
        ({"to": ["Ann {{ variables.a }}"]}, "steps[2].to[0]: must be exactly one template"),
        ({"to": "{{ variables.a }}"}, "steps[2].to: unknown name variables.a"),
        ({"to": [f"u{n}@x.org" for n in range(51)]}, "steps[2].to: has 51 items; at most 50"),
        ({"subject": " "}, "steps[2].subject: must not be empty"),
        ({"body": "{{ steps.repot.output }}"}, "steps[2].body: unknown name steps.repot"),
        ({"attach": ["repot"]}, "'repot' is no step before this one; did you mean report?"),
        ({"attach": ["first"]}, "'first' is no code step, and only these leave artifacts"),
        ({"attach": ["report/"]}, "names no file after the slash; write report for all files"),
        ({"retry": {"attempts": 2}}, "steps[2].retry: unknown field"),
    ],
)
def test_mistakes_have_a_place_and_a_fix(fields: dict[str, Any], message: str) -> None:
    """Each mistake names its field, and what could have been meant."""
    with pytest.raises(InvalidDefinition) as found:
        check(**fields)
    assert message in str(found.value)


def test_a_mail_is_read_and_written() -> None:
    """One recipient is a list of one; a step and a file of it are told apart; three hours. ML-1."""
    found = check(attach=["report", "report/a/b.csv"], to="{{ execution.id }}")
    step = found.step("tell")
    assert isinstance(step, MailStep)
    assert step.to == ("{{ execution.id }}",)
    assert step.files == (("report", None), ("report", "a/b.csv"))
    assert step.timeout_ms == 3 * HOUR
    assert check_definition(document_of(found), MiniJinjaTemplates().problems).steps == found.steps
