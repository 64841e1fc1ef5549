"""
The answers to an approval's `fields`: which are taken, and what is asked of those who follow.

Answers belong to what is approved, as rows do. Whoever approves after somebody else agrees to the
answers as they stand, or gives others; these begin the count anew. AP-30.
"""

from collections.abc import Mapping

from wfcore.errors import InvalidInput
from wfcore.model.approval import Approval
from wfcore.model.json import Json, JsonObject
from wfcore.rules.approval.edited_items import misfit


def given_answers(approval: Approval, given: Mapping[str, Json] | None) -> JsonObject:
    """
    The answers once *given* ones are added to those that stand; null takes one back. AP-30.

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
        if one.required and key not in answers:
            raise InvalidInput(f"answers.{key}", f"is required: {one.title}")
    return answers
