"""The fields of a `mail` step: its recipients and its attachments. ML-2, ML-4."""

from collections.abc import Iterator
from typing import Any

from wfcore.model.json import Json
from wfcore.model.workflow import CodeStep, Definition, MailStep
from wfcore.rules.approval.people import is_template
from wfcore.rules.definition.tree import Fields, Reading
from wfcore.rules.definition.values import (
    Check,
    Field,
    Findings,
    accepting,
    any_of,
    filled,
    known_or,
    list_of,
    whole_template,
)
from wfcore.rules.limits import MAX_MAIL_FILES, MAX_MAIL_RECIPIENTS
from wfcore.rules.mailbox import FORMS, is_name
from wfcore.rules.paths import below


@accepting(any_of(filled.schema, whole_template.schema))
def _recipient(document: Json, path: str, findings: Findings) -> Any:
    if isinstance(document, str) and is_template(document):
        return whole_template(document, path, findings)
    before = len(findings.problems)
    name = filled(document, path, findings)
    if len(findings.problems) == before and not is_name(name):
        findings.add(path, f"{name!r} can be nobody: write {FORMS}, or one template {{{{ … }}}}")
    return name


_recipients = list_of(_recipient, least=1, most=MAX_MAIL_RECIPIENTS)


@accepting(any_of(_recipient.schema, _recipients.schema))
def recipients(document: Json, path: str, findings: Findings) -> Any:
    """One recipient, or a list of recipients: addresses, ids of accounts, or templates. ML-2."""
    if isinstance(document, str):
        return (_recipient(document, path, findings),)
    return _recipients(document, path, findings)


def _attachment(reading: Reading) -> Check:
    @accepting(filled.schema)
    def attached(document: Json, path: str, findings: Findings) -> Any:
        """A code step before this one, perhaps with a slash and the name of its file. ML-4."""
        entry = filled(document, path, findings)
        if not isinstance(entry, str):
            return entry
        (step, slash, name), before = entry.partition("/"), reading.names.steps
        if slash and not name:
            findings.add(path, f"names no file after the slash; write {step} for all files")
        if step not in before:
            findings.add(path, f"{step!r} is no step before this one; {known_or(step, before)}")
        elif (kind := reading.kinds_of.get(step)) and kind.build is not CodeStep:
            findings.add(path, f"{step!r} is no code step, and only these leave artifacts")
        return entry

    return attached


def attach_fields(reading: Reading) -> Fields:
    """The field of a mail that names other steps."""
    return {
        "attach": Field(
            list_of(_attachment(reading), most=MAX_MAIL_FILES),
            "attach",
            "Code steps before this one, whose files go along: `step` for all of them, "
            "`step/name` for one.",
        )
    }


def literal_recipients(definition: Definition) -> Iterator[tuple[str, str]]:
    """The recipients in *definition* that are no templates, each with its path. ML-2."""
    for path, step in definition.located():
        if isinstance(step, MailStep):
            for at, name in enumerate(step.to):
                if not is_template(name):
                    yield below(below(path, "to"), at), name
