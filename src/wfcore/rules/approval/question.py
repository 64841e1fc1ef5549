"""What people read of an approval: a title everywhere, and the whole where it is decided. MD-2."""

from wfcore.model.approval import Approval
from wfcore.rules import markdown


def question(approval: Approval) -> str:
    """The message as Markdown; what nobody wrote as Markdown shows as it is."""
    shown = approval.question
    return markdown.escaped(approval.message) if shown is None else shown


def title(approval: Approval) -> str:
    """The title of the question; without a message the name of the step."""
    return markdown.title(question(approval)[:_FIRST]) or approval.step_name


_FIRST = 8_000
"""Characters in which the first line is looked for: lists show many titles."""
