"""
The agreement of an approver: the rows as they stand, the answers to `fields`, the attachments, and
the hash of all three.

A later approver agrees to the answers as they stand, or gives new answers; new answers begin the
count of approvals anew. AP-30.
"""

from collections.abc import Mapping, Sequence

from wfcore.errors import InvalidInput, ItemsChanged
from wfcore.model.approval import Approval
from wfcore.model.json import Json, JsonObject
from wfcore.model.workflow import Column
from wfcore.rules.approval.released_rows import misfit, standing_rows
from wfcore.rules.canonical import digest, rfc8785
from wfcore.rules.visible import is_blank


def given_answers(approval: Approval, given: Mapping[str, Json] | None) -> JsonObject:
    """
    The answers so far with the *given* answers added; null removes an answer. AP-30.

    Raises `InvalidInput` naming the field: unknown, of the wrong type, or required and without an
    answer.
    """
    fields = {one.key: one for one in approval.fields}
    for key, value in (given or {}).items():
        if key not in fields:
            known = ", ".join(fields) or "none"
            raise InvalidInput(f"answers.{key}", f"unknown field; the fields are: {known}")
        if (wanted := misfit(fields[key], value)) is not None:
            raise InvalidInput(f"answers.{key}", wanted)
    merged = {**approval.answers, **(given or {})}
    answers = {key: merged[key] for key in fields if merged.get(key) is not None}
    for key, one in fields.items():
        if one.required and is_blank(answers.get(key)):
            raise InvalidInput(f"answers.{key}", f"is required: {one.title}")
    return answers


def unanswered(approval: Approval) -> Sequence[Column]:
    """The fields that must be answered before the approval can be approved. AP-30."""
    return [
        one for one in approval.fields if one.required and approval.answers.get(one.key) is None
    ]


def require_seen(approval: Approval, expected: str | None) -> None:
    """Raises `ItemsChanged` if *expected* is given and the rows have changed. AP-19."""
    if expected is not None and expected != items_hash(approval):
        raise ItemsChanged(
            "expectedItemsHash: what you saw has changed; read the approval again",
            approval.id,
        )


def items_hash(approval: Approval) -> str:
    """
    A digest of what an approver agrees to. Two digests are equal exactly if the rows, the answers
    and the contents of the attachments are equal. AP-19, AP-29.
    """
    files = files_of(approval)
    return hash_of(agreed_to(standing_rows(approval), files, approval.answers))


def hash_of(agreed: JsonObject) -> str:
    """The digest of a value of `agreed_to`. SR-1."""
    return digest(rfc8785(agreed))


def files_of(approval: Approval) -> Sequence[Json]:
    """The attachments in the form that is hashed: the step, name and SHA-256 of each."""
    return [[one.step_name, one.name, one.sha256] for one in approval.attachments]


def agreed_to(rows: JsonObject, files: Sequence[Json], answers: JsonObject) -> JsonObject:
    """
    The value of which `items_hash` is the digest: the rows alone if there are neither answers nor
    attachments. Rows alone never look like the longer form, because the rows of a group are a list.
    """
    if not files and not answers:
        return rows
    return {"groups": rows, "attachments": files, "answers": answers}
